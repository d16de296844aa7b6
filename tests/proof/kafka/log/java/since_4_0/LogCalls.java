package org.apache.kafka.storage.internals.log;

import java.io.File;
import java.io.IOException;
import java.security.DigestException;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.DescribeProducersResponseData.ProducerState;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.checkpoint.OffsetCheckpointFile;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/** What the log code takes and gives otherwise than before it was Java; the same methods as in `before_4_0`. */
final class LogCalls {
    private static final BrokerTopicStats STATS = new BrokerTopicStats();

    private LogCalls() {
    }

    static UnifiedLog load(File folder, LogConfig config, long logStartOffset, long recoveryPoint, Scheduler scheduler,
            Time time, int maxTimeoutMs, ProducerStateManagerConfig producers, int expirationCheckMs,
            LogDirFailureChannel failures, boolean isClean, Uuid topicId) throws IOException {
        return UnifiedLog.create(folder, config, logStartOffset, recoveryPoint, scheduler, STATS, time, maxTimeoutMs,
            producers, expirationCheckMs, failures, isClean, Optional.of(topicId));
    }

    static void appendAsLeader(UnifiedLog log, MemoryRecords records, int leaderEpoch, AppendOrigin origin,
            short transactionVersion) {
        log.appendAsLeader(records, leaderEpoch, origin, RequestLocal.noCaching(), VerificationGuard.SENTINEL,
            transactionVersion);
    }

    static void roll(UnifiedLog log) throws IOException {
        log.roll();
    }

    static void truncateFullyAndStartAt(UnifiedLog log, long offset) {
        log.truncateFullyAndStartAt(offset, Optional.empty());
    }

    static boolean isUnstable(UnifiedLog log) {
        return log.firstUnstableOffset().isPresent();
    }

    static List<ProducerState> activeProducers(UnifiedLog log) {
        return log.activeProducers();
    }

    /** Clean what is dirty behind an offset; up to where it is clean now, empty where nothing was to be cleaned. */
    static OptionalLong clean(UnifiedLog log, long cleanedTo, CleanerParts parts) throws IOException, DigestException {
        long nowMs = parts.time().milliseconds();
        LogCleanerManager.OffsetsToClean offsets =
            LogCleanerManager.cleanableOffsets(log, Optional.of(cleanedTo), nowMs);
        LogToClean dirty =
            new LogToClean(log, offsets.firstDirtyOffset(), offsets.firstUncleanableDirtyOffset(), false);
        if (dirty.cleanableBytes() <= 0) {
            return OptionalLong.empty();
        }
        Cleaner cleaner = new Cleaner(0, parts.offsets(), parts.ioBufferBytes(), parts.maxBatchBytes(),
            parts.loadFactor(), parts.throttler(), parts.time(), partition -> { });
        return OptionalLong.of(cleaner.doClean(dirty, nowMs).getKey());
    }

    static Map<TopicPartition, Long> read(File checkpoint, LogDirFailureChannel failures) throws IOException {
        return new OffsetCheckpointFile(checkpoint, failures).read();
    }

    static void write(File checkpoint, LogDirFailureChannel failures, Map<TopicPartition, Long> offsets)
            throws IOException {
        new OffsetCheckpointFile(checkpoint, failures).write(offsets);
    }
}

package org.apache.kafka.storage.internals.log;

import java.io.File;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.concurrent.ConcurrentHashMap;
import kafka.log.Cleaner;
import kafka.log.LogCleanerManager;
import kafka.log.LogToClean;
import kafka.log.OffsetsToClean;
import kafka.log.UnifiedLog;
import kafka.server.BrokerTopicStats;
import kafka.server.RequestLocal;
import kafka.server.checkpoints.OffsetCheckpointFile;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.DescribeProducersResponseData.ProducerState;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.server.util.Scheduler;
import scala.Option;
import scala.Some;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.BoxedUnit;

/** What the log code takes and gives otherwise as long as it is Scala; the same methods as in `since_4_0`. */
final class LogCalls {
    private static final BrokerTopicStats STATS = new BrokerTopicStats(false);
    private static final boolean HAS_METADATA_FILE = true;
    private static final boolean IS_TIERED = false;

    private LogCalls() {
    }

    static UnifiedLog load(File folder, LogConfig config, long logStartOffset, long recoveryPoint, Scheduler scheduler,
            Time time, int maxTimeoutMs, ProducerStateManagerConfig producers, int expirationCheckMs,
            LogDirFailureChannel failures, boolean isClean, Uuid topicId) {
        return UnifiedLog.apply(folder, config, logStartOffset, recoveryPoint, scheduler, STATS, time, maxTimeoutMs,
            producers, expirationCheckMs, failures, isClean, new Some<>(topicId), HAS_METADATA_FILE,
            new ConcurrentHashMap<>(), IS_TIERED, LogOffsetsListener.NO_OP_OFFSETS_LISTENER);
    }

    /** No version of transactions is known here. */
    static void appendAsLeader(UnifiedLog log, MemoryRecords records, int leaderEpoch, AppendOrigin origin,
            short transactionVersion) {
        log.appendAsLeader(records, leaderEpoch, origin, MetadataVersion.latestProduction(), RequestLocal.NoCaching(),
            VerificationGuard.SENTINEL);
    }

    static void roll(UnifiedLog log) {
        log.roll(Option.empty());
    }

    static void truncateFullyAndStartAt(UnifiedLog log, long offset) {
        log.truncateFullyAndStartAt(offset, Option.empty());
    }

    static boolean isUnstable(UnifiedLog log) {
        return log.firstUnstableOffset().isDefined();
    }

    static List<ProducerState> activeProducers(UnifiedLog log) {
        return CollectionConverters.asJava(log.activeProducers());
    }

    /** Clean what is dirty behind an offset; up to where it is clean now, empty where nothing was to be cleaned. */
    static OptionalLong clean(UnifiedLog log, long cleanedTo, CleanerParts parts) {
        long nowMs = parts.time().milliseconds();
        OffsetsToClean offsets = LogCleanerManager.cleanableOffsets(log, new Some<>(cleanedTo), nowMs);
        LogToClean dirty = new LogToClean(log.topicPartition(), log, offsets.firstDirtyOffset(),
            offsets.firstUncleanableDirtyOffset(), false);
        if (dirty.cleanableBytes() <= 0) {
            return OptionalLong.empty();
        }
        Cleaner cleaner = new Cleaner(0, parts.offsets(), parts.ioBufferBytes(), parts.maxBatchBytes(),
            parts.loadFactor(), parts.throttler(), parts.time(), partition -> BoxedUnit.UNIT);
        return OptionalLong.of((long) cleaner.doClean(dirty, nowMs)._1());
    }

    static Map<TopicPartition, Long> read(File checkpoint, LogDirFailureChannel failures) {
        Map<TopicPartition, Long> offsets = new HashMap<>();
        CollectionConverters.asJava(new OffsetCheckpointFile(checkpoint, failures).read())
            .forEach((partition, offset) -> offsets.put(partition, (Long) offset));
        return offsets;
    }

    static void write(File checkpoint, LogDirFailureChannel failures, Map<TopicPartition, Long> offsets) {
        Map<TopicPartition, Object> any = new HashMap<>(offsets);
        new OffsetCheckpointFile(checkpoint, failures).write(CollectionConverters.asScala(any));
    }
}

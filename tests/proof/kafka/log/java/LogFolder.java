package org.apache.kafka.storage.internals.log;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.log.UnifiedLog;

/** A log directory with one partition, and what a broker does with it: loads it, writes its checkpoints. */
final class LogFolder {
    private static final TopicPartition PARTITION = new TopicPartition("orders", 0);
    private static final int EXPIRATION_CHECK_MS = 600_000; // producer.id.expiration.check.interval.ms

    final Path root;
    private final JsonNode told;
    private final Time time;
    private final Scheduler scheduler;
    private final LogDirFailureChannel failures = new LogDirFailureChannel(1);

    LogFolder(Path root, JsonNode told, Time time, Scheduler scheduler) {
        this.root = root;
        this.told = told;
        this.time = time;
        this.scheduler = scheduler;
    }

    /** The log as a starting broker loads it; after a clean shutdown, or from offset 0 of its recovery point. */
    UnifiedLog load(boolean isClean, long recoveryPoint) throws IOException {
        Files.deleteIfExists(root.resolve(".kafka_cleanshutdown"));
        File folder = root.resolve(PARTITION.toString()).toFile();
        Files.createDirectories(folder.toPath());
        int maxTimeoutMs = told.get("maxTimeoutMs").asInt();
        ProducerStateManagerConfig producers = new ProducerStateManagerConfig(told.get("expirationMs").asInt(), false);
        return LogCalls.load(folder, config(), read("log-start-offset-checkpoint"), recoveryPoint, scheduler, time,
            maxTimeoutMs, producers, EXPIRATION_CHECK_MS, failures, isClean, new Uuid(1, 1));
    }

    /** What a broker writes of its logs every few seconds: the high watermark, and where the log begins. */
    void checkpoint(UnifiedLog log) throws IOException {
        write("replication-offset-checkpoint", Map.of(PARTITION, log.highWatermark()));
        boolean isMidSegment = log.logStartOffset() > log.logSegments().iterator().next().baseOffset();
        write("log-start-offset-checkpoint", isMidSegment ? Map.of(PARTITION, log.logStartOffset()) : Map.of());
    }

    /** Shut the log down as a broker does. */
    void close(UnifiedLog log) throws IOException {
        log.close();
        checkpoint(log);
        Files.createFile(root.resolve(".kafka_cleanshutdown"));
    }

    /** The same files once more, for another broker. */
    LogFolder copy(Path to) throws IOException {
        try (Stream<Path> files = Files.walk(root)) {
            for (Path file : files.toList()) {
                Files.copy(file, to.resolve(root.relativize(file)));
            }
        }
        return new LogFolder(to, told, time, scheduler);
    }

    /** Take the folder away. */
    void delete() throws IOException {
        try (Stream<Path> files = Files.walk(root)) {
            List<Path> found = files.sorted().collect(Collectors.toList());
            for (int n = found.size() - 1; n >= 0; n--) {
                Files.delete(found.get(n));
            }
        }
    }

    /** The high watermark as it was written last; 0 where it never was. */
    long highWatermark() throws IOException {
        return read("replication-offset-checkpoint");
    }

    private long read(String name) throws IOException {
        return LogCalls.read(root.resolve(name).toFile(), failures).getOrDefault(PARTITION, 0L);
    }

    private void write(String name, Map<TopicPartition, Long> offsets) throws IOException {
        LogCalls.write(root.resolve(name).toFile(), failures, offsets);
    }

    private LogConfig config() {
        Map<String, String> words = new HashMap<>();
        told.get("config").properties().forEach(word -> words.put(word.getKey(), word.getValue().asText()));
        return new LogConfig(words);
    }
}

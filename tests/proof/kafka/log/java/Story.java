package org.apache.kafka.storage.internals.log;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.message.DescribeProducersResponseData.ProducerState;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.storage.internals.log.UnifiedLog;

/**
 * One list of requests to one log of Kafka's, and what the log says when all are done. In Kafka's own package, because
 * 4.3 hides from others where the cleaner may begin and end.
 */
final class Story {
    private static final ObjectMapper JSON = new ObjectMapper();

    private final JsonNode told;
    private final StoppedClock time;
    private final OneThread scheduler;
    private final LogFolder folder;
    private final CleanerParts cleaner;
    private final Set<Long> forgotten = new HashSet<>();
    private final Map<String, Integer> refused = new TreeMap<>();
    private UnifiedLog log;
    private long cleanedTo;
    private long settledTo;
    private boolean isStartLost;
    private int done;

    Story(Path root, JsonNode told, StoppedClock time, CleanerParts cleaner) {
        this.told = told;
        this.time = time;
        this.cleaner = cleaner;
        scheduler = new OneThread(time);
        folder = new LogFolder(root, told, time, scheduler);
    }

    /** Do what is told; what the log says at the end, and what another broker makes of a copy of its files. */
    ObjectNode tell() throws Exception {
        log = folder.load(true, 0L);
        for (JsonNode step : told.get("steps")) {
            Map<Long, Integer> known = coordinatorEpochs();
            Set<Long> written = step.get("do").asText().equals("load") ? withSequences() : Set.of();
            try {
                act(step);
                done++;
            } catch (KafkaException error) {
                refused.merge(error.getClass().getSimpleName(), 1, Integer::sum);
            }
            if (told.get("replicated").asBoolean()) {
                log.updateHighWatermark(log.logEndOffset());
            }
            Map<Long, Integer> knownNow = coordinatorEpochs();
            known.keySet().removeIf(producer -> known.get(producer) <= knownNow.getOrDefault(producer, -2));
            forgotten.addAll(known.keySet());
            Set<Long> still = withSequences();
            written.stream().filter(producer -> !still.contains(producer)).forEach(forgotten::add);
        }
        ObjectNode answer = said(log);
        boolean isClosed = told.get("closed").asBoolean();
        if (isClosed) {
            folder.close(log);
        } else {
            folder.checkpoint(log);
        }
        answer.set("loaded", loadedAnew(isClosed));
        if (!isClosed) {
            log.closeQuietly();
        }
        answer.put("done", done);
        answer.put("startLost", isStartLost);
        answer.set("refused", JSON.valueToTree(refused));
        answer.set("forgotten", JSON.valueToTree(forgotten));
        return answer;
    }

    private void act(JsonNode step) throws Exception {
        switch (step.get("do").asText()) {
            case "data", "marker", "empty" -> append(step);
            case "roll" -> LogCalls.roll(log);
            case "snapshot" -> log.takeProducerSnapshot();
            case "delete" -> deleteRecords(step);
            case "truncate" -> truncate(step);
            case "restart" -> startAnew(step);
            case "clean" -> clean();
            case "load" -> reload(step);
            case "checkpoint" -> folder.checkpoint(log);
            case "wait" -> await(step.get("ms").asLong());
            default -> throw new IllegalArgumentException(step.toString());
        }
    }

    private void append(JsonNode step) throws IOException {
        int leaderEpoch = step.get("leaderEpoch").asInt();
        boolean isLeader = step.get("leader").asBoolean();
        // A leader's cleaner leaves holes only below what is open.
        long gap = LogCalls.isUnstable(log) ? 0 : step.path("gap").asLong();
        long offset = isLeader ? 0 : log.logEndOffset() + gap;
        MemoryRecords records = switch (step.get("do").asText()) {
            case "data" -> Batches.data(step, offset, sequence(step), leaderEpoch);
            case "marker" -> Batches.marker(step, offset, leaderEpoch);
            default -> Batches.empty(step, offset, sequence(step), leaderEpoch);
        };
        if (isLeader) {
            boolean isMarker = step.get("do").asText().equals("marker");
            AppendOrigin origin = isMarker ? AppendOrigin.COORDINATOR : AppendOrigin.CLIENT;
            LogCalls.appendAsLeader(log, records, leaderEpoch, origin, (short) step.path("version").asInt(0));
        } else {
            log.appendAsFollower(records, leaderEpoch);
        }
    }

    /** The next one of the producer, unless the request names another. */
    private int sequence(JsonNode step) {
        if (step.has("sequence")) {
            return step.get("sequence").asInt();
        }
        long producer = step.get("producer").asLong();
        if (producer == RecordBatch.NO_PRODUCER_ID) {
            return RecordBatch.NO_SEQUENCE;
        }
        for (ProducerState known : LogCalls.activeProducers(log)) {
            if (known.producerId() == producer && known.producerEpoch() == step.get("epoch").asInt()) {
                return known.lastSequence() + 1;
            }
        }
        return 0;
    }

    private void deleteRecords(JsonNode step) throws IOException {
        long start = log.logStartOffset();
        long wanted = start + (long) (step.get("at").asDouble() * (log.highWatermark() - start));
        log.maybeIncrementLogStartOffset(wanted, LogStartOffsetIncrementReason.ClientRecordDeletion);
        if (step.path("segments").asBoolean()) {
            log.deleteOldSegments();
        }
    }

    /**
     * A follower gives up what its leader does not have: whole batches, and none that was replicated when the cleaner
     * ran, which removes aborted data below end markers that it has not come to yet.
     */
    private void truncate(JsonNode step) throws IOException {
        List<Long> ends = new ArrayList<>(List.of(log.logSegments().iterator().next().baseOffset()));
        for (LogSegment segment : log.logSegments()) {
            segment.log().batches().forEach(batch -> ends.add(batch.nextOffset()));
        }
        ends.removeIf(end -> end < settledTo);
        if (!ends.isEmpty()) {
            log.truncateTo(ends.get((int) (step.get("at").asDouble() * ends.size())));
        }
    }

    /** A follower that lies behind its leader's first offset begins there. */
    private void startAnew(JsonNode step) {
        LogCalls.truncateFullyAndStartAt(log, log.logEndOffset() + step.get("ahead").asLong());
        cleanedTo = 0;
        settledTo = 0;
    }

    private void clean() throws Exception {
        OptionalLong cleaned = LogCalls.clean(log, cleanedTo, cleaner);
        if (cleaned.isPresent()) {
            cleanedTo = cleaned.getAsLong();
            settledTo = log.logEndOffset();
        }
    }

    /** A clean restart; or a crash, which may take the last bytes with it. */
    private void reload(JsonNode step) throws IOException {
        boolean isClean = step.get("clean").asBoolean();
        long flushed = log.recoveryPoint();
        long start = log.logStartOffset();
        if (isClean) {
            folder.close(log);
        } else {
            Path file = log.activeSegment().log().file().toPath();
            log.closeQuietly();
            cut(file, step.path("cut").asLong());
        }
        scheduler.shutdown();
        log = folder.load(isClean, isClean ? log.logEndOffset() : flushed);
        log.updateHighWatermark(Math.min(folder.highWatermark(), log.logEndOffset()));
        cleanedTo = Math.min(cleanedTo, log.logEndOffset());
        isStartLost |= log.logStartOffset() < start;
    }

    private static void cut(Path file, long bytes) throws IOException {
        try (RandomAccessFile open = new RandomAccessFile(file.toFile(), "rw")) {
            open.setLength(Math.max(0, open.length() - bytes));
        }
    }

    private void await(long ms) {
        time.sleep(ms);
        scheduler.runDue();
    }

    private Map<Long, Integer> coordinatorEpochs() {
        return LogCalls.activeProducers(log).stream()
            .collect(Collectors.toMap(ProducerState::producerId, ProducerState::coordinatorEpoch));
    }

    /** Producers of which it has data in mind, and not their end markers alone. */
    private Set<Long> withSequences() {
        return LogCalls.activeProducers(log).stream().filter(known -> known.lastSequence() != RecordBatch.NO_SEQUENCE)
            .map(ProducerState::producerId).collect(Collectors.toSet());
    }

    private ObjectNode loadedAnew(boolean isClosed) throws IOException {
        LogFolder other = folder.copy(folder.root.resolveSibling(folder.root.getFileName() + "-copy"));
        UnifiedLog loaded = other.load(isClosed, isClosed ? log.logEndOffset() : 0L);
        loaded.updateHighWatermark(Math.min(log.highWatermark(), loaded.logEndOffset()));
        ObjectNode answer = said(loaded);
        loaded.closeQuietly();
        other.delete();
        return answer;
    }

    private ObjectNode said(UnifiedLog of) {
        ObjectNode answer = JSON.createObjectNode();
        answer.put("now", time.milliseconds());
        answer.put("logStartOffset", of.logStartOffset());
        answer.put("logEndOffset", of.logEndOffset());
        answer.put("highWatermark", of.highWatermark());
        answer.put("lastStableOffset", of.lastStableOffset());
        answer.put("hasLateTransaction", of.hasLateTransaction(time.milliseconds()));
        ArrayNode producers = answer.putArray("producers");
        for (ProducerState state : LogCalls.activeProducers(of)) {
            producers.addArray().add(state.producerId()).add(state.producerEpoch()).add(state.coordinatorEpoch())
                .add(state.lastSequence()).add(state.lastTimestamp()).add(state.currentTxnStartOffset());
        }
        return answer;
    }
}

package org.apache.kafka.storage.internals.log;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.DefaultRecordBatch;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.RecordBatch;

/** Batches as Kafka writes them, of what a request says. */
final class Batches {
    private static final byte MAGIC = RecordBatch.MAGIC_VALUE_V2;

    private Batches() {
    }

    /** A data batch: one record for each key, null for none. */
    static MemoryRecords data(JsonNode step, long baseOffset, int sequence, int leaderEpoch) {
        Compression compression = step.path("gzip").asBoolean() ? Compression.gzip().build() : Compression.NONE;
        MemoryRecordsBuilder builder = MemoryRecords.builder(ByteBuffer.allocate(1024), MAGIC, compression,
            TimestampType.CREATE_TIME, baseOffset, RecordBatch.NO_TIMESTAMP, step.get("producer").asLong(),
            (short) step.get("epoch").asInt(), sequence, step.get("transactional").asBoolean(), leaderEpoch);
        for (JsonNode key : step.get("keys")) {
            // Without a value it is a tombstone, as soon as it has a key.
            byte[] value = step.path("tombstones").asBoolean() ? null : "value".getBytes(StandardCharsets.ISO_8859_1);
            builder.append(step.get("time").asLong(), bytes(key), value);
        }
        return builder.build();
    }

    /** An end marker. */
    static MemoryRecords marker(JsonNode step, long baseOffset, int leaderEpoch) {
        ControlRecordType type = step.get("commit").asBoolean() ? ControlRecordType.COMMIT : ControlRecordType.ABORT;
        EndTransactionMarker marker = new EndTransactionMarker(type, step.get("coordinatorEpoch").asInt());
        return MemoryRecords.withEndTransactionMarker(baseOffset, step.get("time").asLong(), leaderEpoch,
            step.get("producer").asLong(), (short) step.get("epoch").asInt(), marker);
    }

    /** A batch without records, as the cleaner leaves it of an end marker or of data. */
    static MemoryRecords empty(JsonNode step, long baseOffset, int sequence, int leaderEpoch) {
        ByteBuffer buffer = ByteBuffer.allocate(DefaultRecordBatch.RECORD_BATCH_OVERHEAD);
        boolean isControl = step.get("control").asBoolean();
        long lastOffset = baseOffset + step.get("count").asInt() - 1;
        DefaultRecordBatch.writeEmptyHeader(buffer, MAGIC, step.get("producer").asLong(),
            (short) step.get("epoch").asInt(), isControl ? RecordBatch.NO_SEQUENCE : sequence, baseOffset, lastOffset,
            leaderEpoch, TimestampType.CREATE_TIME, step.get("time").asLong(),
            step.get("transactional").asBoolean(), isControl);
        buffer.flip();
        return MemoryRecords.readableRecords(buffer);
    }

    private static byte[] bytes(JsonNode text) {
        return text.isNull() ? null : text.asText().getBytes(StandardCharsets.ISO_8859_1);
    }
}

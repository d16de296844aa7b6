package org.apache.kafka.storage.internals.log;

import java.security.NoSuchAlgorithmException;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.storage.internals.utils.Throttler;

/** What a cleaner is made of in every version. */
record CleanerParts(OffsetMap offsets, int ioBufferBytes, int maxBatchBytes, double loadFactor, Throttler throttler,
        Time time) {
    private static final int OFFSET_MAP_BYTES = 24 * 1024;
    private static final int IO_BUFFER_BYTES = 16 * 1024;
    private static final int MAX_BATCH_BYTES = 1024 * 1024;

    /** Small buffers, and no throttling. */
    static CleanerParts small(Time time) throws NoSuchAlgorithmException {
        Throttler none = new Throttler(Double.MAX_VALUE, Long.MAX_VALUE, "cleaner", "bytes", time);
        return new CleanerParts(new SkimpyOffsetMap(OFFSET_MAP_BYTES), IO_BUFFER_BYTES, MAX_BATCH_BYTES, 0.9, none,
            time);
    }
}

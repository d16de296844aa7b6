import java.io.File;
import java.io.PrintStream;
import java.util.List;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.tools.consumer.TransactionLogMessageFormatter;

/** What the console consumer's formatter prints of segments of `__transaction_state`, without a broker. */
public final class Export {
    public static void main(String[] segments) throws Exception {
        var formatter = new TransactionLogMessageFormatter();
        var output = new PrintStream(System.out, false, "UTF-8");
        for (var segment : segments) {
            try (var records = FileRecords.open(new File(segment))) {
                for (var batch : records.batches()) {
                    for (var record : batch.isControlBatch() ? List.<Record>of() : batch) {
                        byte[] key = Utils.toNullableArray(record.key()), value = Utils.toNullableArray(record.value());
                        formatter.writeTo(new ConsumerRecord<>("", 0, record.offset(), key, value), output);
                    }
                }
            }
        }
        output.flush();
    }
}

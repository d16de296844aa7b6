import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.AbortTransactionSpec;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.ProducerState;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.TransactionDescription;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.message.WriteTxnMarkersRequestData;
import org.apache.kafka.common.message.WriteTxnMarkersRequestDataJsonConverter;
import org.apache.kafka.common.message.WriteTxnMarkersResponseData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.requests.ResponseHeader;
import org.apache.kafka.common.requests.WriteTxnMarkersRequest;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Kafka's own clients behind one line of JSON per call: `{"do": verb, ...}` on stdin, `{"ok": answer}` or
 * `{"error": words, "code": Kafka's error code}` on stdout.
 */
public class Driver {
    private static final ObjectMapper JSON = new ObjectMapper();

    private final String bootstrap;
    private final Admin admin;
    private final Map<String, KafkaProducer<String, String>> producers = new HashMap<>();
    private final List<Load> loads = new ArrayList<>();

    Driver(String bootstrap) {
        this.bootstrap = bootstrap;
        this.admin = Admin.create(Map.of("bootstrap.servers", bootstrap));
    }

    public static void main(String[] words) throws Exception {
        Driver driver = words.length > 0 ? new Driver(words[0]) : null;
        PrintStream answers = System.out;
        System.setOut(System.err);
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            ObjectNode answer = JSON.createObjectNode();
            try {
                answer.set("ok", answer(driver, JSON.readTree(line)));
            } catch (Exception error) {
                Throwable cause = error instanceof ExecutionException ? error.getCause() : error;
                answer.put("error", cause.toString());
                answer.put("code", cause instanceof ApiException ? Errors.forException(cause).code() : -1);
            }
            answers.println(JSON.writeValueAsString(answer));
            answers.flush();
        }
        System.exit(0);
    }

    private static JsonNode answer(Driver driver, JsonNode call) throws Exception {
        return call.get("do").asText().equals("read_markers") ? readMarkers(call) : driver.connected(call);
    }

    private JsonNode connected(JsonNode call) throws Exception {
        switch (call.get("do").asText()) {
            case "create_topic": return createTopic(call);
            case "delete_records": return deleteRecords(call);
            case "begin": return begin(call);
            case "send": return send(call);
            case "send_offsets": return sendOffsets(call);
            case "commit": producer(call).commitTransaction(); return JSON.nullNode();
            case "abort": producer(call).abortTransaction(); return JSON.nullNode();
            case "start_load": return startLoad(call);
            case "stop_load": return stopLoad();
            case "consume": return consume(call);
            case "describe_producers": return describeProducers(call);
            case "describe_transaction": return describeTransaction(call);
            case "abort_record": return abortRecord(call.get("record"));
            case "write_markers": return writeMarkers(call);
            default: throw new IllegalArgumentException("unknown verb: " + call);
        }
    }

    private JsonNode createTopic(JsonNode call) throws Exception {
        Map<Integer, List<Integer>> replicas = new HashMap<>();
        for (JsonNode nodes : call.get("replicas")) {
            replicas.put(replicas.size(), JSON.convertValue(nodes, new TypeReference<>() {}));
        }
        Map<String, String> configs = JSON.convertValue(call.get("configs"), new TypeReference<>() {});
        admin.createTopics(Set.of(new NewTopic(call.get("topic").asText(), replicas).configs(configs))).all().get();
        return JSON.nullNode();
    }

    private JsonNode deleteRecords(JsonNode call) throws Exception {
        admin.deleteRecords(Map.of(partition(call), RecordsToDelete.beforeOffset(call.get("before").asLong()))).all().get();
        return JSON.nullNode();
    }

    private static TopicPartition partition(JsonNode call) {
        return new TopicPartition(call.get("topic").asText(), call.get("partition").asInt());
    }

    // --- transactions of well-behaved clients ---

    private KafkaProducer<String, String> producer(JsonNode call) {
        return producers.get(call.get("id").asText());
    }

    private KafkaProducer<String, String> newProducer(String id, int timeoutMs) {
        KafkaProducer<String, String> producer = new KafkaProducer<>(Map.of(
            "bootstrap.servers", bootstrap, "transactional.id", id, "transaction.timeout.ms", timeoutMs, "linger.ms", 0,
            "key.serializer", StringSerializer.class, "value.serializer", StringSerializer.class));
        producer.initTransactions();
        return producer;
    }

    private JsonNode begin(JsonNode call) {
        String id = call.get("id").asText();
        if (!producers.containsKey(id)) {
            producers.put(id, newProducer(id, call.get("timeout_ms").asInt()));
        }
        producers.get(id).beginTransaction();
        return JSON.nullNode();
    }

    private JsonNode send(JsonNode call) throws Exception {
        long timestampMs = call.hasNonNull("timestamp_ms") ? call.get("timestamp_ms").asLong() : System.currentTimeMillis();
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (int number = 0; number < call.get("count").asInt(); number++) {
            sent.add(producer(call).send(new ProducerRecord<>(
                call.get("topic").asText(), call.get("partition").asInt(), timestampMs, call.get("id").asText(), "value " + number)));
        }
        ArrayNode offsets = JSON.createArrayNode();
        for (Future<RecordMetadata> record : sent) {
            offsets.add(record.get().offset());
        }
        return offsets;
    }

    private JsonNode sendOffsets(JsonNode call) {
        Map<TopicPartition, OffsetAndMetadata> offsets = Map.of(partition(call), new OffsetAndMetadata(call.get("offset").asLong()));
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(
            Map.of("bootstrap.servers", bootstrap, "group.id", call.get("group").asText()),
            new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            producer(call).sendOffsetsToTransaction(offsets, consumer.groupMetadata());
        }
        return JSON.nullNode();
    }

    /** One producer that runs transactions of random size and length until it is told to stop. */
    private final class Load extends Thread {
        final Map<String, Set<Long>> committed = new HashMap<>();
        final KafkaProducer<String, String> producer;
        final String id;
        final JsonNode call;
        volatile boolean stopping;
        Exception failure;

        Load(String id, JsonNode call) {
            this.id = id;
            this.call = call;
            this.producer = newProducer(id, call.get("timeout_ms").asInt());
        }

        @Override
        public void run() {
            Random random = new Random(id.hashCode());
            try {
                while (!stopping) {
                    transaction(random);
                }
                producer.close();
            } catch (Exception error) {
                failure = error;
            }
        }

        private void transaction(Random random) throws Exception {
            Map<String, Set<Long>> written = new HashMap<>();
            producer.beginTransaction();
            for (int number = 1 + random.nextInt(3); number > 0; number--) {
                JsonNode place = call.get("partitions").get(random.nextInt(call.get("partitions").size()));
                TopicPartition partition = partition(place);
                long timestampMs = System.currentTimeMillis() - call.get("age_ms").asLong();
                RecordMetadata record = producer.send(
                    new ProducerRecord<>(partition.topic(), partition.partition(), timestampMs, id, "load")).get();
                written.computeIfAbsent(partition.toString(), name -> new TreeSet<>()).add(record.offset());
                Thread.sleep(random.nextInt(1 + call.get("pause_ms").asInt()));
            }
            if (random.nextInt(5) == 0) {
                producer.abortTransaction();
                return;
            }
            producer.commitTransaction();
            written.forEach((name, offsets) -> committed.computeIfAbsent(name, n -> new TreeSet<>()).addAll(offsets));
        }
    }

    private JsonNode startLoad(JsonNode call) {
        for (JsonNode id : call.get("ids")) {
            Load load = new Load(id.asText(), call);
            loads.add(load);
            load.start();
        }
        return JSON.nullNode();
    }

    /** The offsets of records whose commit was acknowledged, by partition. */
    private JsonNode stopLoad() throws Exception {
        Map<String, Set<Long>> committed = new HashMap<>();
        loads.forEach(load -> load.stopping = true);
        for (Load load : loads) {
            load.join();
            if (load.failure != null) {
                throw load.failure;
            }
            load.committed.forEach((name, offsets) -> committed.computeIfAbsent(name, n -> new TreeSet<>()).addAll(offsets));
        }
        loads.clear();
        return JSON.valueToTree(committed);
    }

    // --- what readers and administrators see ---

    /** Reads a partition as read_committed, until its end or until nothing came for a while. */
    private JsonNode consume(JsonNode call) throws Exception {
        TopicPartition partition = partition(call);
        long end = admin.listOffsets(Map.of(partition, OffsetSpec.latest())).all().get().get(partition).offset();
        ObjectNode answer = JSON.createObjectNode().put("end", end);
        ArrayNode offsets = answer.putArray("offsets");
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(
            Map.of("bootstrap.servers", bootstrap, "isolation.level", "read_committed", "auto.offset.reset", "earliest"),
            new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.assign(Set.of(partition));
            consumer.seekToBeginning(Set.of(partition));
            long until = System.nanoTime() + call.get("timeout_ms").asLong() * 1_000_000;
            while (consumer.position(partition) < end && System.nanoTime() < until) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(100))) {
                    offsets.add(record.offset());
                }
            }
            answer.put("position", consumer.position(partition));
            answer.put("last_stable_offset", consumer.endOffsets(Set.of(partition)).get(partition));
        }
        return answer;
    }

    private JsonNode describeProducers(JsonNode call) throws Exception {
        TopicPartition partition = partition(call);
        ArrayNode rows = JSON.createArrayNode();
        for (ProducerState state : admin.describeProducers(Set.of(partition)).partitionResult(partition).get().activeProducers()) {
            ObjectNode row = rows.addObject().put("producer_id", state.producerId()).put("producer_epoch", state.producerEpoch());
            row.put("txn_start_offset", state.currentTransactionStartOffset().isPresent()
                ? Long.valueOf(state.currentTransactionStartOffset().getAsLong()) : null);
            row.put("coordinator_epoch", state.coordinatorEpoch().isPresent()
                ? Integer.valueOf(state.coordinatorEpoch().getAsInt()) : null);
            row.put("last_timestamp_ms", state.lastTimestamp()).put("last_sequence", state.lastSequence());
        }
        return rows;
    }

    private JsonNode describeTransaction(JsonNode call) throws Exception {
        String id = call.get("id").asText();
        TransactionDescription found = admin.describeTransactions(Set.of(id)).description(id).get();
        ObjectNode row = JSON.createObjectNode().put("state", found.state().toString());
        row.put("producer_id", found.producerId()).put("producer_epoch", found.producerEpoch());
        ArrayNode partitions = row.putArray("partitions");
        found.topicPartitions().forEach(partition -> partitions.add(partition.toString()));
        return row;
    }

    // --- executors of an abort plan ---

    /** `Admin.abortTransaction`, from one line of `--format ndjson` as it is. */
    private JsonNode abortRecord(JsonNode record) throws Exception {
        admin.abortTransaction(new AbortTransactionSpec(
            partition(record), record.get("producer_id").asLong(), (short) record.get("producer_epoch").asInt(),
            record.get("coordinator_epoch").asInt())).all().get();
        return JSON.nullNode();
    }

    /** The document of `--format write-txn-markers` as Kafka's own classes read it and put it on the wire. */
    private static WriteTxnMarkersRequest request(JsonNode call) throws Exception {
        short version = (short) call.get("version").asInt();
        WriteTxnMarkersRequestData data = WriteTxnMarkersRequestDataJsonConverter.read(call.get("document"), version);
        return new WriteTxnMarkersRequest.Builder(data).build(version);
    }

    private static ByteBuffer wire(WriteTxnMarkersRequest request) {
        return request.serializeWithHeader(new RequestHeader(ApiKeys.WRITE_TXN_MARKERS, request.version(), "executor", 1));
    }

    /** What Kafka's reader took from the document, written again by Kafka's writer, and its bytes. */
    private static JsonNode readMarkers(JsonNode call) throws Exception {
        WriteTxnMarkersRequest request = request(call);
        ObjectNode answer = JSON.createObjectNode();
        answer.set("document", WriteTxnMarkersRequestDataJsonConverter.write(request.data(), request.version()));
        ByteBuffer wire = wire(request);
        byte[] bytes = new byte[wire.remaining()];
        wire.get(bytes);
        return answer.put("wire", HexFormat.of().formatHex(bytes));
    }

    /** Sends the document to one broker, and says Kafka's error code of each partition. */
    private JsonNode writeMarkers(JsonNode call) throws Exception {
        WriteTxnMarkersRequest request = request(call);
        ByteBuffer wire = wire(request);
        String[] address = bootstrap.split(":");
        ObjectNode codes = JSON.createObjectNode();
        try (Socket socket = new Socket(address[0], Integer.parseInt(address[1]))) {
            DataOutputStream out = new DataOutputStream(socket.getOutputStream());
            byte[] bytes = new byte[wire.remaining()];
            wire.get(bytes);
            out.writeInt(bytes.length);
            out.write(bytes);
            DataInputStream in = new DataInputStream(socket.getInputStream());
            ByteBuffer answer = ByteBuffer.wrap(in.readNBytes(in.readInt()));
            ResponseHeader.parse(answer, ApiKeys.WRITE_TXN_MARKERS.responseHeaderVersion(request.version()));
            new WriteTxnMarkersResponseData(new ByteBufferAccessor(answer), request.version()).markers().forEach(marker ->
                marker.topics().forEach(topic -> topic.partitions().forEach(partition -> codes.put(
                    marker.producerId() + "/" + topic.name() + "-" + partition.partitionIndex(), (int) partition.errorCode()))));
        }
        return codes;
    }
}

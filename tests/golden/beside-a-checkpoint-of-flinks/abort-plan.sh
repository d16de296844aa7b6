#!/bin/sh
plan='Abort plan 00000000000000000000000000000000 of run run-0000000000000001: 2 transactions, not after 2026-11-29T02:38:09.699Z.'
# … plan_script.sh …

fence_timeout_ms=

how_to_look() {
    cat << 'END'
kafka-transactions.sh --bootstrap-server "$BROKERS" describe --transactional-id="$ID" | awk '1; END { exit !/[ \t](Empty|CompleteCommit|CompleteAbort)[ \t]+[0-9]+[ \t]+[^ \t]+[ \t]+[^ \t]+[ \t]*[^ \t]*[ \t\r]*$/ }'
END
}

how_to_fence() {
    cat << 'END'
# Kafka's tools of 4.1 or newer:
kafka-transactions.sh --bootstrap-server "$BROKERS" forceTerminateTransaction --transactionalId="$ID"
# a JDK, and in KAFKA_HOME the jars of Kafka 3.2 or newer:
echo 'org.apache.kafka.clients.admin.Admin.create(Map.of("bootstrap.servers", System.getenv("BROKERS"))).fenceProducers(List.of(System.getenv("ID"))).all().get()' | BROKERS="$BROKERS" ID="$ID" jshell --class-path "${KAFKA_HOME:?}/libs/*" -s -
# Python and its package confluent-kafka:
python3 -c 'import sys; from confluent_kafka import Producer; Producer({"bootstrap.servers": sys.argv[1], "transactional.id": sys.argv[2]}).init_transactions(60)' "$BROKERS" "$ID"
# Kafka's tools of 3.x, which fence, write nothing, and then fail with `/ by zero`:
kafka-producer-perf-test.sh --topic none --num-records 0 --record-size 1 --throughput 1 --producer-props bootstrap.servers="$BROKERS" --transaction-duration-ms 1 --transactional-id="$ID"
END
}

# out.orders-sink-0@367: producer id 0, epoch 5; partition_not_in_transaction
#   record 64fb3ada2d4901ce
#   transactional id: orders-sink-0-1
#   not before 2026-11-28T02:38:09.699Z, not after 2026-11-29T02:38:09.699Z
#   check first: first end the producer, which may come back and write into the open transaction: stop its application, let what its id has in progress end, and fence the id. Then a fresh `kafka-transactions.sh --bootstrap-server "$BROKERS" describe --transactional-id orders-sink-0-1` must show an epoch above 5 and not list out.orders-sink-0, and a fresh `kafka-transactions.sh --bootstrap-server "$BROKERS" describe-producers --topic out.orders-sink --partition 0` must show producer id 0 with epoch 5 and CurrentTransactionStartOffset 367, and no LastTimestamp after 1795825090181. Then abort with the recorded epochs, never by --start-offset, which takes whatever epoch it finds
if begin 64fb3ada2d4901ce 'out.orders-sink-0@367, producer id 0' 1795833490 1795919889 "$@" &&
    is_said_to_be_ended orders-sink-0-1 orders-sink-0-1 "$@" &&
    is_open 0 5 367 1795825090181 --topic out.orders-sink --partition 0 &&
    is_ended 0 5 out.orders-sink-0 orders-sink-0-1 --transactional-id orders-sink-0-1; then
    send abort --topic out.orders-sink --partition 0 --producer-id 0 --producer-epoch 5 --coordinator-epoch 0
fi

# out.pay-sink-0@16: producer id 42, epoch 0; partition_not_in_transaction
#   record e4dbe5075a9eb025
#   transactional id: pay-sink-0-6
#   not before 2026-11-28T02:38:09.699Z, not after 2026-11-29T02:38:09.699Z
#   check first: first end the producer, which may come back and write into the open transaction: stop its application, let what its id has in progress end, and fence the id. Then a fresh `kafka-transactions.sh --bootstrap-server "$BROKERS" describe --transactional-id pay-sink-0-6` must show an epoch above 0 and not list out.pay-sink-0, and a fresh `kafka-transactions.sh --bootstrap-server "$BROKERS" describe-producers --topic out.pay-sink --partition 0` must show producer id 42 with epoch 0 and CurrentTransactionStartOffset 16, and no LastTimestamp after 1795825090238. Then abort with the recorded epochs, never by --start-offset, which takes whatever epoch it finds
if begin e4dbe5075a9eb025 'out.pay-sink-0@16, producer id 42' 1795833490 1795919889 "$@" &&
    is_said_to_be_ended pay-sink-0-6 pay-sink-0-6 "$@" &&
    is_open 42 0 16 1795825090238 --topic out.pay-sink --partition 0 &&
    is_ended 42 0 out.pay-sink-0 pay-sink-0-6 --transactional-id pay-sink-0-6; then
    send abort --topic out.pay-sink --partition 0 --producer-id 42 --producer-epoch 0 --coordinator-epoch 0
fi

exit "$status"

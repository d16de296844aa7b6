#!/bin/sh
plan='Abort plan bec9f63de2d2da66f242f081b8af0c49 of run run-1: 4 transactions, not after 2026-11-22T03:00:00.000Z.'
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

# -rf-2@155: producer id 987654321, epoch 3; partition_not_in_transaction
#   record f1
#   transactional id: evil\nkafka-transactions.sh abort --everything\x1b[2J\u202e\u2028'"`$(rm -rf ~)`
#   not before 2026-11-21T00:20:01.000Z, not after 2026-11-22T03:00:00.000Z
#   check first: first end the producer, which may come back and write into the open transaction: stop its application, let what its id has in progress end, and fence the id. Then a fresh `kafka-transactions.sh --bootstrap-server "$BROKERS" describe --transactional-id "$(printf 'evil\012kafka\055transactions.sh abort \055\055everything\033[2J\342\200\256\342\200\250\047"`$(rm \055rf ~)`')"` must show an epoch above 3 and not list -rf-2, and a fresh `kafka-transactions.sh --bootstrap-server "$BROKERS" describe-producers --topic=-rf --partition 2` must show producer id 987654321 with epoch 3 and CurrentTransactionStartOffset 155, and no LastTimestamp after 1795219200000. Then abort with the recorded epochs, never by --start-offset, which takes whatever epoch it finds
if begin f1 '-rf-2@155, producer id 987654321' 1795220401 1795316400 "$@" &&
    is_said_to_be_ended "$(printf 'evil\012kafka\055transactions.sh abort \055\055everything\033[2J\342\200\256\342\200\250\047"`$(rm \055rf ~)`')" '"$(printf '"'"'evil\012kafka\055transactions.sh abort \055\055everything\033[2J\342\200\256\342\200\250\047"`$(rm \055rf ~)`'"'"')"' "$@" &&
    is_open 987654321 3 155 1795219200000 --topic=-rf --partition 2 &&
    is_ended 987654321 3 -rf-2 "$(printf 'evil\012kafka\055transactions.sh abort \055\055everything\033[2J\342\200\256\342\200\250\047"`$(rm \055rf ~)`')" --transactional-id "$(printf 'evil\012kafka\055transactions.sh abort \055\055everything\033[2J\342\200\256\342\200\250\047"`$(rm \055rf ~)`')"; then
    send abort --topic=-rf --partition 2 --producer-id 987654321 --producer-epoch 3 --coordinator-epoch 0
fi

# orders-2@155: producer id 987654321, epoch 3; unknown_producer
#   record f0
#   transactional id: evil\nkafka-transactions.sh abort --everything\x1b[2J\u202e\u2028'"`$(rm -rf ~)`
#   not before 2026-11-21T00:20:01.000Z, not after 2026-11-22T03:00:00.000Z
#   check first: a fresh `kafka-transactions.sh --bootstrap-server "$BROKERS" describe-producers --topic orders --partition 2` must show producer id 987654321 with epoch 3 and CurrentTransactionStartOffset 155, and no LastTimestamp after 1795219200000
if begin f0 'orders-2@155, producer id 987654321' 1795220401 1795316400 "$@" &&
    is_open 987654321 3 155 1795219200000 --topic orders --partition 2; then
    send abort --topic orders --partition 2 --start-offset 155
fi
#   brokers before 3.0: kafka-transactions.sh --bootstrap-server "$BROKERS" ${COMMAND_CONFIG:+--command-config "$COMMAND_CONFIG"} abort --topic orders --partition 2 --producer-id 987654321 --producer-epoch 3 --coordinator-epoch 0

# orders-3@155 (or below): producer id 987654321, epoch 3; unknown_producer
#   record f0
#   not before 2026-11-21T00:20:01.000Z, not after 2026-11-22T03:00:00.000Z
#   check first: a fresh `kafka-transactions.sh --bootstrap-server "$BROKERS" describe-producers --topic orders --partition 3` must show producer id 987654321 with epoch 3 and CurrentTransactionStartOffset 155, and no LastTimestamp after 1795219200000
if begin f0 'orders-3@155, producer id 987654321' 1795220401 1795316400 "$@" &&
    is_open 987654321 3 155 1795219200000 --topic orders --partition 3; then
    send abort --topic orders --partition 3 --start-offset 155
fi

# payments-0@187: producer id 3, epoch 0; partition_not_in_transaction
#   record f1
#   transactional id: inventory-sync
#   not before 2026-11-21T00:20:01.000Z, not after 2026-11-22T03:00:00.000Z
#   check first: first end the producer, which may come back and write into the open transaction: stop its application, let what its id has in progress end, and fence the id. Then a fresh `kafka-transactions.sh --bootstrap-server "$BROKERS" describe --transactional-id inventory-sync` must show an epoch above 0 and not list payments-0, and a fresh `kafka-transactions.sh --bootstrap-server "$BROKERS" describe-producers --topic payments --partition 0` must show producer id 3 with epoch 0 and CurrentTransactionStartOffset 187, and no LastTimestamp after 1795219200000. Then abort with the recorded epochs, never by --start-offset, which takes whatever epoch it finds
record='payments-0@187, producer id 3'
refuse 'no command: its coordinator epoch is unknown; audit a deep dump (--deep-iteration) or a producer snapshot' || :

exit "$status"

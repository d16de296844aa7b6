#!/bin/sh
plan='Abort plan 00000000000000000000000000000000 of run run-0000000000000003: 3 transactions, not after 2026-11-22T03:19:22.199Z.'
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

# ledger.events-1@135: producer id 1004, epoch 0; partition_not_in_transaction
#   record 87661af713b7e77e
#   transactional id: ledger-writer
#   not before 2026-11-21T03:18:54.658Z, not after 2026-11-22T03:19:22.199Z
#   check first: first end the producer, which may come back and write into the open transaction: stop its application, let what its id has in progress end, and fence the id. Then a fresh `kafka-transactions.sh --bootstrap-server "$BROKERS" describe --transactional-id ledger-writer` must show an epoch above 0 and not list ledger.events-1, and a fresh `kafka-transactions.sh --bootstrap-server "$BROKERS" describe-producers --topic ledger.events --partition 1` must show producer id 1004 with epoch 0 and CurrentTransactionStartOffset 135, and no LastTimestamp after 1795219115073. Then abort with the recorded epochs, never by --start-offset, which takes whatever epoch it finds
if begin 87661af713b7e77e 'ledger.events-1@135, producer id 1004' 1795231135 1795317562 "$@" &&
    is_said_to_be_ended ledger-writer ledger-writer "$@" &&
    is_open 1004 0 135 1795219115073 --topic ledger.events --partition 1 &&
    is_ended 1004 0 ledger.events-1 ledger-writer --transactional-id ledger-writer; then
    send abort --topic ledger.events --partition 1 --producer-id 1004 --producer-epoch 0 --coordinator-epoch 0
fi

# orders-2@155: producer id 987654321, epoch 3; unknown_producer
#   record 4605117fa123a1b2
#   not before 2026-11-21T03:18:54.659Z, not after 2026-11-22T03:19:22.199Z
#   check first: a fresh `kafka-transactions.sh --bootstrap-server "$BROKERS" describe-producers --topic orders --partition 2` must show producer id 987654321 with epoch 3 and CurrentTransactionStartOffset 155, and no LastTimestamp after 1795219115073
if begin 4605117fa123a1b2 'orders-2@155, producer id 987654321' 1795231135 1795317562 "$@" &&
    is_open 987654321 3 155 1795219115073 --topic orders --partition 2; then
    send abort --topic orders --partition 2 --start-offset 155
fi
#   brokers before 3.0: kafka-transactions.sh --bootstrap-server "$BROKERS" ${COMMAND_CONFIG:+--command-config "$COMMAND_CONFIG"} abort --topic orders --partition 2 --producer-id 987654321 --producer-epoch 3 --coordinator-epoch 0

# payments-0@187: producer id 3, epoch 0; partition_not_in_transaction
#   record 59a9f07c4e0549da
#   transactional id: inventory-sync
#   not before 2026-11-21T03:18:54.140Z, not after 2026-11-22T03:19:22.199Z
#   check first: first end the producer, which may come back and write into the open transaction: stop its application, let what its id has in progress end, and fence the id. Then a fresh `kafka-transactions.sh --bootstrap-server "$BROKERS" describe --transactional-id inventory-sync` must show an epoch above 0 and not list payments-0, and a fresh `kafka-transactions.sh --bootstrap-server "$BROKERS" describe-producers --topic payments --partition 0` must show producer id 3 with epoch 0 and CurrentTransactionStartOffset 187, and no LastTimestamp after 1795219115073. Then abort with the recorded epochs, never by --start-offset, which takes whatever epoch it finds
if begin 59a9f07c4e0549da 'payments-0@187, producer id 3' 1795231135 1795317562 "$@" &&
    is_said_to_be_ended inventory-sync inventory-sync "$@" &&
    is_open 3 0 187 1795219115073 --topic payments --partition 0 &&
    is_ended 3 0 payments-0 inventory-sync --transactional-id inventory-sync; then
    send abort --topic payments --partition 0 --producer-id 3 --producer-epoch 0 --coordinator-epoch 0
fi

exit "$status"

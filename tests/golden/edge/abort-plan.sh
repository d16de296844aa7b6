#!/bin/sh
plan='Abort plan 00000000000000000000000000000000 of run run-0000000000000002: 6 transactions, not after 2026-11-22T03:50:45.481Z.'
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

# __consumer_offsets-0@1: producer id 2, epoch 0; partition_not_in_transaction
#   record d7ccc717a81724c0
#   transactional id: stream-app-7
#   not before 2026-11-21T03:48:04.998Z, not after 2026-11-22T03:50:45.481Z
#   check first: first end the producer, which may come back and write into the open transaction: stop its application, let what its id has in progress end, and fence the id. Then a fresh `kafka-transactions.sh --bootstrap-server "$BROKERS" describe --transactional-id stream-app-7` must show an epoch above 0 and not list __consumer_offsets-0, and a fresh `kafka-transactions.sh --bootstrap-server "$BROKERS" describe-producers --topic __consumer_offsets --partition 0` must show producer id 2 with epoch 0 and CurrentTransactionStartOffset 1, and no LastTimestamp after 1795231684998. Then abort with the recorded epochs, never by --start-offset, which takes whatever epoch it finds
if begin d7ccc717a81724c0 '__consumer_offsets-0@1, producer id 2' 1795232885 1795319445 "$@" &&
    is_said_to_be_ended stream-app-7 stream-app-7 "$@" &&
    is_open 2 0 1 1795231684998 --topic __consumer_offsets --partition 0 &&
    is_ended 2 0 __consumer_offsets-0 stream-app-7 --transactional-id stream-app-7; then
    send abort --topic __consumer_offsets --partition 0 --producer-id 2 --producer-epoch 0 --coordinator-epoch 0
fi

# accounts-0@54: producer id 6, epoch 0; partition_not_in_transaction
#   record e06c1e096be008c0
#   transactional id: cdc-accounts
#   not before 2026-11-21T03:48:07.474Z, not after 2026-11-22T03:50:45.481Z
#   check first: first end the producer, which may come back and write into the open transaction: stop its application, let what its id has in progress end, and fence the id. Then a fresh `kafka-transactions.sh --bootstrap-server "$BROKERS" describe --transactional-id cdc-accounts` must show an epoch above 0 and not list accounts-0, and a fresh `kafka-transactions.sh --bootstrap-server "$BROKERS" describe-producers --topic accounts --partition 0` must show producer id 6 with epoch 0 and CurrentTransactionStartOffset 54, and no LastTimestamp after 1795210076291. Then abort with the recorded epochs, never by --start-offset, which takes whatever epoch it finds
if begin e06c1e096be008c0 'accounts-0@54, producer id 6' 1795232888 1795319445 "$@" &&
    is_said_to_be_ended cdc-accounts cdc-accounts "$@" &&
    is_open 6 0 54 1795210076291 --topic accounts --partition 0 &&
    is_ended 6 0 accounts-0 cdc-accounts --transactional-id cdc-accounts; then
    send abort --topic accounts --partition 0 --producer-id 6 --producer-epoch 0 --coordinator-epoch 0
fi

# accounts-1@0: producer id 5, epoch 1; partition_not_in_transaction
#   record 2bfddc909ac60e67
#   transactional id: reindexer
#   not before 2026-11-21T03:48:08.730Z, not after 2026-11-22T03:50:45.481Z
#   check first: first end the producer, which may come back and write into the open transaction: stop its application, let what its id has in progress end, and fence the id. Then a fresh `kafka-transactions.sh --bootstrap-server "$BROKERS" describe --transactional-id reindexer` must show an epoch above 1 and not list accounts-1, and a fresh `kafka-transactions.sh --bootstrap-server "$BROKERS" describe-producers --topic accounts --partition 1` must show producer id 5 with epoch 1 and CurrentTransactionStartOffset 0, and no LastTimestamp after 1795210081291. Then abort with the recorded epochs, never by --start-offset, which takes whatever epoch it finds
if begin 2bfddc909ac60e67 'accounts-1@0, producer id 5' 1795232889 1795319445 "$@" &&
    is_said_to_be_ended reindexer reindexer "$@" &&
    is_open 5 1 0 1795210081291 --topic accounts --partition 1 &&
    is_ended 5 1 accounts-1 reindexer --transactional-id reindexer; then
    send abort --topic accounts --partition 1 --producer-id 5 --producer-epoch 1 --coordinator-epoch 0
fi

# accounts-1@4: producer id 9, epoch 0; partition_not_in_transaction
#   record 0cc905c86af50434
#   transactional id: clockless
#   not before 2026-11-21T03:48:08.730Z, not after 2026-11-22T03:50:45.481Z
#   check first: first end the producer, which may come back and write into the open transaction: stop its application, let what its id has in progress end, and fence the id. Then a fresh `kafka-transactions.sh --bootstrap-server "$BROKERS" describe --transactional-id clockless` must show an epoch above 0 and not list accounts-1, and a fresh `kafka-transactions.sh --bootstrap-server "$BROKERS" describe-producers --topic accounts --partition 1` must show producer id 9 with epoch 0 and CurrentTransactionStartOffset 4, and no LastTimestamp after 1795234676291. Then abort with the recorded epochs, never by --start-offset, which takes whatever epoch it finds
if begin 0cc905c86af50434 'accounts-1@4, producer id 9' 1795232889 1795319445 "$@" &&
    is_said_to_be_ended clockless clockless "$@" &&
    is_open 9 0 4 1795234676291 --topic accounts --partition 1 &&
    is_ended 9 0 accounts-1 clockless --transactional-id clockless; then
    send abort --topic accounts --partition 1 --producer-id 9 --producer-epoch 0 --coordinator-epoch 0
fi

# trades-0@54: producer id 3, epoch 0; partition_not_in_transaction
#   record e1582937448b0f78
#   transactional id: old-importer
#   not before 2026-11-21T03:48:05.526Z, not after 2026-11-22T03:50:45.481Z
#   check first: first end the producer, which may come back and write into the open transaction: stop its application, let what its id has in progress end, and fence the id. Then a fresh `kafka-transactions.sh --bootstrap-server "$BROKERS" describe --transactional-id old-importer` must show an epoch above 0 and not list trades-0, and a fresh `kafka-transactions.sh --bootstrap-server "$BROKERS" describe-producers --topic trades --partition 0` must show producer id 3 with epoch 0 and CurrentTransactionStartOffset 54, and no LastTimestamp after 1795210076291. Then abort with the recorded epochs, never by --start-offset, which takes whatever epoch it finds
if begin e1582937448b0f78 'trades-0@54, producer id 3' 1795232886 1795319445 "$@" &&
    is_said_to_be_ended old-importer old-importer "$@" &&
    is_open 3 0 54 1795210076291 --topic trades --partition 0 &&
    is_ended 3 0 trades-0 old-importer --transactional-id old-importer; then
    send abort --topic trades --partition 0 --producer-id 3 --producer-epoch 0 --coordinator-epoch 0
fi

# trades-eu-1@0: producer id 8, epoch 0; partition_not_in_transaction
#   record a22c53d49c1506d4
#   transactional id: eu-loader
#   not before 2026-11-21T03:48:08.667Z, not after 2026-11-22T03:50:45.481Z
#   check first: first end the producer, which may come back and write into the open transaction: stop its application, let what its id has in progress end, and fence the id. Then a fresh `kafka-transactions.sh --bootstrap-server "$BROKERS" describe --transactional-id eu-loader` must show an epoch above 0 and not list trades-eu-1, and a fresh `kafka-transactions.sh --bootstrap-server "$BROKERS" describe-producers --topic trades-eu --partition 1` must show producer id 8 with epoch 0 and CurrentTransactionStartOffset 0, and no LastTimestamp after 1795231688667. Then abort with the recorded epochs, never by --start-offset, which takes whatever epoch it finds
if begin a22c53d49c1506d4 'trades-eu-1@0, producer id 8' 1795232889 1795319445 "$@" &&
    is_said_to_be_ended eu-loader eu-loader "$@" &&
    is_open 8 0 0 1795231688667 --topic trades-eu --partition 1 &&
    is_ended 8 0 trades-eu-1 eu-loader --transactional-id eu-loader; then
    send abort --topic trades-eu --partition 1 --producer-id 8 --producer-epoch 0 --coordinator-epoch 0
fi

exit "$status"

#!/bin/sh
plan='Abort plan 00000000000000000000000000000000 of run run-0000000000000001: 21 transactions, not after 2026-11-22T00:40:00.000Z.'
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

# bench.orders-0@546: producer id 1013, epoch 0; partition_not_in_transaction
#   record 151773f2324f78d0
#   transactional id: writer-00000013
#   not before 2026-11-20T21:30:02.512Z, not after 2026-11-22T00:40:00.000Z
#   check first: first end the producer, which may come back and write into the open transaction: stop its application, let what its id has in progress end, and fence the id. Then a fresh `kafka-transactions.sh --bootstrap-server "$BROKERS" describe --transactional-id writer-00000013` must show an epoch above 0 and not list bench.orders-0, and a fresh `kafka-transactions.sh --bootstrap-server "$BROKERS" describe-producers --topic bench.orders --partition 0` must show producer id 1013 with epoch 0 and CurrentTransactionStartOffset 546, and no LastTimestamp after 1795207419466. Then abort with the recorded epochs, never by --start-offset, which takes whatever epoch it finds
if begin 151773f2324f78d0 'bench.orders-0@546, producer id 1013' 1795210203 1795308000 "$@" &&
    is_said_to_be_ended writer-00000013 writer-00000013 "$@" &&
    is_open 1013 0 546 1795207419466 --topic bench.orders --partition 0 &&
    is_ended 1013 0 bench.orders-0 writer-00000013 --transactional-id writer-00000013; then
    send abort --topic bench.orders --partition 0 --producer-id 1013 --producer-epoch 0 --coordinator-epoch 7
fi

# bench.orders-0@563: producer id 1016, epoch 0; partition_not_in_transaction
#   record 5a341fc0b86561f7
#   transactional id: writer-00000016
#   not before 2026-11-20T21:30:02.512Z, not after 2026-11-22T00:40:00.000Z
#   check first: first end the producer, which may come back and write into the open transaction: stop its application, let what its id has in progress end, and fence the id. Then a fresh `kafka-transactions.sh --bootstrap-server "$BROKERS" describe --transactional-id writer-00000016` must show an epoch above 0 and not list bench.orders-0, and a fresh `kafka-transactions.sh --bootstrap-server "$BROKERS" describe-producers --topic bench.orders --partition 0` must show producer id 1016 with epoch 0 and CurrentTransactionStartOffset 563, and no LastTimestamp after 1795207476923. Then abort with the recorded epochs, never by --start-offset, which takes whatever epoch it finds
if begin 5a341fc0b86561f7 'bench.orders-0@563, producer id 1016' 1795210203 1795308000 "$@" &&
    is_said_to_be_ended writer-00000016 writer-00000016 "$@" &&
    is_open 1016 0 563 1795207476923 --topic bench.orders --partition 0 &&
    is_ended 1016 0 bench.orders-0 writer-00000016 --transactional-id writer-00000016; then
    send abort --topic bench.orders --partition 0 --producer-id 1016 --producer-epoch 0 --coordinator-epoch 7
fi

# bench.orders-0@593: producer id 1006, epoch 0; partition_not_in_transaction
#   record 09c11bb940f50d44
#   transactional id: writer-00000006
#   not before 2026-11-20T21:30:02.512Z, not after 2026-11-22T00:40:00.000Z
#   check first: first end the producer, which may come back and write into the open transaction: stop its application, let what its id has in progress end, and fence the id. Then a fresh `kafka-transactions.sh --bootstrap-server "$BROKERS" describe --transactional-id writer-00000006` must show an epoch above 0 and not list bench.orders-0, and a fresh `kafka-transactions.sh --bootstrap-server "$BROKERS" describe-producers --topic bench.orders --partition 0` must show producer id 1006 with epoch 0 and CurrentTransactionStartOffset 593, and no LastTimestamp after 1795207524703. Then abort with the recorded epochs, never by --start-offset, which takes whatever epoch it finds
if begin 09c11bb940f50d44 'bench.orders-0@593, producer id 1006' 1795210203 1795308000 "$@" &&
    is_said_to_be_ended writer-00000006 writer-00000006 "$@" &&
    is_open 1006 0 593 1795207524703 --topic bench.orders --partition 0 &&
    is_ended 1006 0 bench.orders-0 writer-00000006 --transactional-id writer-00000006; then
    send abort --topic bench.orders --partition 0 --producer-id 1006 --producer-epoch 0 --coordinator-epoch 7
fi

# bench.orders-0@614: producer id 1000, epoch 0; partition_not_in_transaction
#   record 50a6add0dadbb66b
#   transactional id: writer-00000000
#   not before 2026-11-20T21:30:02.512Z, not after 2026-11-22T00:40:00.000Z
#   check first: first end the producer, which may come back and write into the open transaction: stop its application, let what its id has in progress end, and fence the id. Then a fresh `kafka-transactions.sh --bootstrap-server "$BROKERS" describe --transactional-id writer-00000000` must show an epoch above 0 and not list bench.orders-0, and a fresh `kafka-transactions.sh --bootstrap-server "$BROKERS" describe-producers --topic bench.orders --partition 0` must show producer id 1000 with epoch 0 and CurrentTransactionStartOffset 614, and no LastTimestamp after 1795207654338. Then abort with the recorded epochs, never by --start-offset, which takes whatever epoch it finds
if begin 50a6add0dadbb66b 'bench.orders-0@614, producer id 1000' 1795210203 1795308000 "$@" &&
    is_said_to_be_ended writer-00000000 writer-00000000 "$@" &&
    is_open 1000 0 614 1795207654338 --topic bench.orders --partition 0 &&
    is_ended 1000 0 bench.orders-0 writer-00000000 --transactional-id writer-00000000; then
    send abort --topic bench.orders --partition 0 --producer-id 1000 --producer-epoch 0 --coordinator-epoch 7
fi

# bench.orders-0@640: producer id 50000000, epoch 0; unknown_producer
#   record 8e2c5139ac54123b
#   not before 2026-11-20T21:30:02.512Z, not after 2026-11-22T00:40:00.000Z
#   check first: a fresh `kafka-transactions.sh --bootstrap-server "$BROKERS" describe-producers --topic bench.orders --partition 0` must show producer id 50000000 with epoch 0 and CurrentTransactionStartOffset 640, and no LastTimestamp after 1795207693806
if begin 8e2c5139ac54123b 'bench.orders-0@640, producer id 50000000' 1795210203 1795308000 "$@" &&
    is_open 50000000 0 640 1795207693806 --topic bench.orders --partition 0; then
    send abort --topic bench.orders --partition 0 --start-offset 640
fi
#   brokers before 3.0: kafka-transactions.sh --bootstrap-server "$BROKERS" ${COMMAND_CONFIG:+--command-config "$COMMAND_CONFIG"} abort --topic bench.orders --partition 0 --producer-id 50000000 --producer-epoch 0 --coordinator-epoch 0

# bench.orders-1@497: producer id 1007, epoch 0; partition_not_in_transaction
#   record 1a819477a1b792e1
#   transactional id: writer-00000007
#   not before 2026-11-20T21:30:02.505Z, not after 2026-11-22T00:40:00.000Z
#   check first: first end the producer, which may come back and write into the open transaction: stop its application, let what its id has in progress end, and fence the id. Then a fresh `kafka-transactions.sh --bootstrap-server "$BROKERS" describe --transactional-id writer-00000007` must show an epoch above 0 and not list bench.orders-1, and a fresh `kafka-transactions.sh --bootstrap-server "$BROKERS" describe-producers --topic bench.orders --partition 1` must show producer id 1007 with epoch 0 and CurrentTransactionStartOffset 497, and no LastTimestamp after 1795207340525. Then abort with the recorded epochs, never by --start-offset, which takes whatever epoch it finds
if begin 1a819477a1b792e1 'bench.orders-1@497, producer id 1007' 1795210203 1795308000 "$@" &&
    is_said_to_be_ended writer-00000007 writer-00000007 "$@" &&
    is_open 1007 0 497 1795207340525 --topic bench.orders --partition 1 &&
    is_ended 1007 0 bench.orders-1 writer-00000007 --transactional-id writer-00000007; then
    send abort --topic bench.orders --partition 1 --producer-id 1007 --producer-epoch 0 --coordinator-epoch 7
fi

# bench.orders-1@509: producer id 50000003, epoch 0; unknown_producer
#   record d3bc579b0af26f52
#   not before 2026-11-20T21:30:02.505Z, not after 2026-11-22T00:40:00.000Z
#   check first: a fresh `kafka-transactions.sh --bootstrap-server "$BROKERS" describe-producers --topic bench.orders --partition 1` must show producer id 50000003 with epoch 0 and CurrentTransactionStartOffset 509, and no LastTimestamp after 1795207656178
if begin d3bc579b0af26f52 'bench.orders-1@509, producer id 50000003' 1795210203 1795308000 "$@" &&
    is_open 50000003 0 509 1795207656178 --topic bench.orders --partition 1; then
    send abort --topic bench.orders --partition 1 --start-offset 509
fi
#   brokers before 3.0: kafka-transactions.sh --bootstrap-server "$BROKERS" ${COMMAND_CONFIG:+--command-config "$COMMAND_CONFIG"} abort --topic bench.orders --partition 1 --producer-id 50000003 --producer-epoch 0 --coordinator-epoch 0

# bench.orders-1@511: producer id 1017, epoch 0; partition_not_in_transaction
#   record 7067a03371fddfc5
#   transactional id: writer-00000017
#   not before 2026-11-20T21:30:02.505Z, not after 2026-11-22T00:40:00.000Z
#   check first: first end the producer, which may come back and write into the open transaction: stop its application, let what its id has in progress end, and fence the id. Then a fresh `kafka-transactions.sh --bootstrap-server "$BROKERS" describe --transactional-id writer-00000017` must show an epoch above 0 and not list bench.orders-1, and a fresh `kafka-transactions.sh --bootstrap-server "$BROKERS" describe-producers --topic bench.orders --partition 1` must show producer id 1017 with epoch 0 and CurrentTransactionStartOffset 511, and no LastTimestamp after 1795207717419. Then abort with the recorded epochs, never by --start-offset, which takes whatever epoch it finds
if begin 7067a03371fddfc5 'bench.orders-1@511, producer id 1017' 1795210203 1795308000 "$@" &&
    is_said_to_be_ended writer-00000017 writer-00000017 "$@" &&
    is_open 1017 0 511 1795207717419 --topic bench.orders --partition 1 &&
    is_ended 1017 0 bench.orders-1 writer-00000017 --transactional-id writer-00000017; then
    send abort --topic bench.orders --partition 1 --producer-id 1017 --producer-epoch 0 --coordinator-epoch 7
fi

# bench.orders-1@524: producer id 50000006, epoch 0; unknown_producer
#   record 3e639b608a430a84
#   not before 2026-11-20T21:30:02.505Z, not after 2026-11-22T00:40:00.000Z
#   check first: a fresh `kafka-transactions.sh --bootstrap-server "$BROKERS" describe-producers --topic bench.orders --partition 1` must show producer id 50000006 with epoch 0 and CurrentTransactionStartOffset 524, and no LastTimestamp after 1795207758459
if begin 3e639b608a430a84 'bench.orders-1@524, producer id 50000006' 1795210203 1795308000 "$@" &&
    is_open 50000006 0 524 1795207758459 --topic bench.orders --partition 1; then
    send abort --topic bench.orders --partition 1 --start-offset 524
fi
#   brokers before 3.0: kafka-transactions.sh --bootstrap-server "$BROKERS" ${COMMAND_CONFIG:+--command-config "$COMMAND_CONFIG"} abort --topic bench.orders --partition 1 --producer-id 50000006 --producer-epoch 0 --coordinator-epoch 0

# bench.orders-2@408: producer id 1005, epoch 0; partition_not_in_transaction
#   record 0a5251d0a2e0898a
#   transactional id: writer-00000005
#   not before 2026-11-20T21:30:02.503Z, not after 2026-11-22T00:40:00.000Z
#   check first: first end the producer, which may come back and write into the open transaction: stop its application, let what its id has in progress end, and fence the id. Then a fresh `kafka-transactions.sh --bootstrap-server "$BROKERS" describe --transactional-id writer-00000005` must show an epoch above 0 and not list bench.orders-2, and a fresh `kafka-transactions.sh --bootstrap-server "$BROKERS" describe-producers --topic bench.orders --partition 2` must show producer id 1005 with epoch 0 and CurrentTransactionStartOffset 408, and no LastTimestamp after 1795207307487. Then abort with the recorded epochs, never by --start-offset, which takes whatever epoch it finds
if begin 0a5251d0a2e0898a 'bench.orders-2@408, producer id 1005' 1795210203 1795308000 "$@" &&
    is_said_to_be_ended writer-00000005 writer-00000005 "$@" &&
    is_open 1005 0 408 1795207307487 --topic bench.orders --partition 2 &&
    is_ended 1005 0 bench.orders-2 writer-00000005 --transactional-id writer-00000005; then
    send abort --topic bench.orders --partition 2 --producer-id 1005 --producer-epoch 0 --coordinator-epoch 7
fi

# bench.orders-2@420: producer id 50000010, epoch 0; unknown_producer
#   record 452ca115f3915e96
#   not before 2026-11-20T21:30:02.503Z, not after 2026-11-22T00:40:00.000Z
#   check first: a fresh `kafka-transactions.sh --bootstrap-server "$BROKERS" describe-producers --topic bench.orders --partition 2` must show producer id 50000010 with epoch 0 and CurrentTransactionStartOffset 420, and no LastTimestamp after 1795207310545
if begin 452ca115f3915e96 'bench.orders-2@420, producer id 50000010' 1795210203 1795308000 "$@" &&
    is_open 50000010 0 420 1795207310545 --topic bench.orders --partition 2; then
    send abort --topic bench.orders --partition 2 --start-offset 420
fi
#   brokers before 3.0: kafka-transactions.sh --bootstrap-server "$BROKERS" ${COMMAND_CONFIG:+--command-config "$COMMAND_CONFIG"} abort --topic bench.orders --partition 2 --producer-id 50000010 --producer-epoch 0 --coordinator-epoch 0

# bench.orders-2@451: producer id 1001, epoch 0; partition_not_in_transaction
#   record 413d9c7345e46717
#   transactional id: writer-00000001
#   not before 2026-11-20T21:30:02.503Z, not after 2026-11-22T00:40:00.000Z
#   check first: first end the producer, which may come back and write into the open transaction: stop its application, let what its id has in progress end, and fence the id. Then a fresh `kafka-transactions.sh --bootstrap-server "$BROKERS" describe --transactional-id writer-00000001` must show an epoch above 0 and not list bench.orders-2, and a fresh `kafka-transactions.sh --bootstrap-server "$BROKERS" describe-producers --topic bench.orders --partition 2` must show producer id 1001 with epoch 0 and CurrentTransactionStartOffset 451, and no LastTimestamp after 1795207781122. Then abort with the recorded epochs, never by --start-offset, which takes whatever epoch it finds
if begin 413d9c7345e46717 'bench.orders-2@451, producer id 1001' 1795210203 1795308000 "$@" &&
    is_said_to_be_ended writer-00000001 writer-00000001 "$@" &&
    is_open 1001 0 451 1795207781122 --topic bench.orders --partition 2 &&
    is_ended 1001 0 bench.orders-2 writer-00000001 --transactional-id writer-00000001; then
    send abort --topic bench.orders --partition 2 --producer-id 1001 --producer-epoch 0 --coordinator-epoch 7
fi

# bench.orders-2@459: producer id 50000002, epoch 0; unknown_producer
#   record 2d144a193a6bd5bb
#   not before 2026-11-20T21:30:02.503Z, not after 2026-11-22T00:40:00.000Z
#   check first: a fresh `kafka-transactions.sh --bootstrap-server "$BROKERS" describe-producers --topic bench.orders --partition 2` must show producer id 50000002 with epoch 0 and CurrentTransactionStartOffset 459, and no LastTimestamp after 1795207783363
if begin 2d144a193a6bd5bb 'bench.orders-2@459, producer id 50000002' 1795210203 1795308000 "$@" &&
    is_open 50000002 0 459 1795207783363 --topic bench.orders --partition 2; then
    send abort --topic bench.orders --partition 2 --start-offset 459
fi
#   brokers before 3.0: kafka-transactions.sh --bootstrap-server "$BROKERS" ${COMMAND_CONFIG:+--command-config "$COMMAND_CONFIG"} abort --topic bench.orders --partition 2 --producer-id 50000002 --producer-epoch 0 --coordinator-epoch 0

# bench.orders-3@519: producer id 50000001, epoch 0; unknown_producer
#   record bb4957fa99e1b37f
#   not before 2026-11-20T21:30:02.501Z, not after 2026-11-22T00:40:00.000Z
#   check first: a fresh `kafka-transactions.sh --bootstrap-server "$BROKERS" describe-producers --topic bench.orders --partition 3` must show producer id 50000001 with epoch 0 and CurrentTransactionStartOffset 519, and no LastTimestamp after 1795207327248
if begin bb4957fa99e1b37f 'bench.orders-3@519, producer id 50000001' 1795210203 1795308000 "$@" &&
    is_open 50000001 0 519 1795207327248 --topic bench.orders --partition 3; then
    send abort --topic bench.orders --partition 3 --start-offset 519
fi
#   brokers before 3.0: kafka-transactions.sh --bootstrap-server "$BROKERS" ${COMMAND_CONFIG:+--command-config "$COMMAND_CONFIG"} abort --topic bench.orders --partition 3 --producer-id 50000001 --producer-epoch 0 --coordinator-epoch 0

# bench.orders-3@543: producer id 50000005, epoch 0; unknown_producer
#   record a94491e471da4bf6
#   not before 2026-11-20T21:30:02.501Z, not after 2026-11-22T00:40:00.000Z
#   check first: a fresh `kafka-transactions.sh --bootstrap-server "$BROKERS" describe-producers --topic bench.orders --partition 3` must show producer id 50000005 with epoch 0 and CurrentTransactionStartOffset 543, and no LastTimestamp after 1795207361465
if begin a94491e471da4bf6 'bench.orders-3@543, producer id 50000005' 1795210203 1795308000 "$@" &&
    is_open 50000005 0 543 1795207361465 --topic bench.orders --partition 3; then
    send abort --topic bench.orders --partition 3 --start-offset 543
fi
#   brokers before 3.0: kafka-transactions.sh --bootstrap-server "$BROKERS" ${COMMAND_CONFIG:+--command-config "$COMMAND_CONFIG"} abort --topic bench.orders --partition 3 --producer-id 50000005 --producer-epoch 0 --coordinator-epoch 0

# bench.orders-3@563: producer id 50000009, epoch 0; unknown_producer
#   record a4610b92aff303ef
#   not before 2026-11-20T21:30:02.501Z, not after 2026-11-22T00:40:00.000Z
#   check first: a fresh `kafka-transactions.sh --bootstrap-server "$BROKERS" describe-producers --topic bench.orders --partition 3` must show producer id 50000009 with epoch 0 and CurrentTransactionStartOffset 563, and no LastTimestamp after 1795207385265
if begin a4610b92aff303ef 'bench.orders-3@563, producer id 50000009' 1795210203 1795308000 "$@" &&
    is_open 50000009 0 563 1795207385265 --topic bench.orders --partition 3; then
    send abort --topic bench.orders --partition 3 --start-offset 563
fi
#   brokers before 3.0: kafka-transactions.sh --bootstrap-server "$BROKERS" ${COMMAND_CONFIG:+--command-config "$COMMAND_CONFIG"} abort --topic bench.orders --partition 3 --producer-id 50000009 --producer-epoch 0 --coordinator-epoch 0

# bench.orders-3@584: producer id 50000007, epoch 0; unknown_producer
#   record ff1a89ccc852d4f8
#   not before 2026-11-20T21:30:02.501Z, not after 2026-11-22T00:40:00.000Z
#   check first: a fresh `kafka-transactions.sh --bootstrap-server "$BROKERS" describe-producers --topic bench.orders --partition 3` must show producer id 50000007 with epoch 0 and CurrentTransactionStartOffset 584, and no LastTimestamp after 1795207471985
if begin ff1a89ccc852d4f8 'bench.orders-3@584, producer id 50000007' 1795210203 1795308000 "$@" &&
    is_open 50000007 0 584 1795207471985 --topic bench.orders --partition 3; then
    send abort --topic bench.orders --partition 3 --start-offset 584
fi
#   brokers before 3.0: kafka-transactions.sh --bootstrap-server "$BROKERS" ${COMMAND_CONFIG:+--command-config "$COMMAND_CONFIG"} abort --topic bench.orders --partition 3 --producer-id 50000007 --producer-epoch 0 --coordinator-epoch 0

# bench.orders-3@610: producer id 1019, epoch 0; partition_not_in_transaction
#   record 3925aab25b434de0
#   transactional id: writer-00000019
#   not before 2026-11-20T21:30:02.501Z, not after 2026-11-22T00:40:00.000Z
#   check first: first end the producer, which may come back and write into the open transaction: stop its application, let what its id has in progress end, and fence the id. Then a fresh `kafka-transactions.sh --bootstrap-server "$BROKERS" describe --transactional-id writer-00000019` must show an epoch above 0 and not list bench.orders-3, and a fresh `kafka-transactions.sh --bootstrap-server "$BROKERS" describe-producers --topic bench.orders --partition 3` must show producer id 1019 with epoch 0 and CurrentTransactionStartOffset 610, and no LastTimestamp after 1795207604104. Then abort with the recorded epochs, never by --start-offset, which takes whatever epoch it finds
if begin 3925aab25b434de0 'bench.orders-3@610, producer id 1019' 1795210203 1795308000 "$@" &&
    is_said_to_be_ended writer-00000019 writer-00000019 "$@" &&
    is_open 1019 0 610 1795207604104 --topic bench.orders --partition 3 &&
    is_ended 1019 0 bench.orders-3 writer-00000019 --transactional-id writer-00000019; then
    send abort --topic bench.orders --partition 3 --producer-id 1019 --producer-epoch 0 --coordinator-epoch 7
fi

# bench.orders-3@626: producer id 50000004, epoch 0; unknown_producer
#   record 670170ea67b96e3c
#   not before 2026-11-20T21:30:02.501Z, not after 2026-11-22T00:40:00.000Z
#   check first: a fresh `kafka-transactions.sh --bootstrap-server "$BROKERS" describe-producers --topic bench.orders --partition 3` must show producer id 50000004 with epoch 0 and CurrentTransactionStartOffset 626, and no LastTimestamp after 1795207637125
if begin 670170ea67b96e3c 'bench.orders-3@626, producer id 50000004' 1795210203 1795308000 "$@" &&
    is_open 50000004 0 626 1795207637125 --topic bench.orders --partition 3; then
    send abort --topic bench.orders --partition 3 --start-offset 626
fi
#   brokers before 3.0: kafka-transactions.sh --bootstrap-server "$BROKERS" ${COMMAND_CONFIG:+--command-config "$COMMAND_CONFIG"} abort --topic bench.orders --partition 3 --producer-id 50000004 --producer-epoch 0 --coordinator-epoch 0

# bench.orders-3@653: producer id 1009, epoch 0; partition_not_in_transaction
#   record 68a84920bdbb512b
#   transactional id: writer-00000009
#   not before 2026-11-20T21:30:02.501Z, not after 2026-11-22T00:40:00.000Z
#   check first: first end the producer, which may come back and write into the open transaction: stop its application, let what its id has in progress end, and fence the id. Then a fresh `kafka-transactions.sh --bootstrap-server "$BROKERS" describe --transactional-id writer-00000009` must show an epoch above 0 and not list bench.orders-3, and a fresh `kafka-transactions.sh --bootstrap-server "$BROKERS" describe-producers --topic bench.orders --partition 3` must show producer id 1009 with epoch 0 and CurrentTransactionStartOffset 653, and no LastTimestamp after 1795207751793. Then abort with the recorded epochs, never by --start-offset, which takes whatever epoch it finds
if begin 68a84920bdbb512b 'bench.orders-3@653, producer id 1009' 1795210203 1795308000 "$@" &&
    is_said_to_be_ended writer-00000009 writer-00000009 "$@" &&
    is_open 1009 0 653 1795207751793 --topic bench.orders --partition 3 &&
    is_ended 1009 0 bench.orders-3 writer-00000009 --transactional-id writer-00000009; then
    send abort --topic bench.orders --partition 3 --producer-id 1009 --producer-epoch 0 --coordinator-epoch 7
fi

# bench.orders-3@681: producer id 50000008, epoch 0; unknown_producer
#   record dcb4a837f58ef6f5
#   not before 2026-11-20T21:30:02.501Z, not after 2026-11-22T00:40:00.000Z
#   check first: a fresh `kafka-transactions.sh --bootstrap-server "$BROKERS" describe-producers --topic bench.orders --partition 3` must show producer id 50000008 with epoch 0 and CurrentTransactionStartOffset 681, and no LastTimestamp after 1795207768320
if begin dcb4a837f58ef6f5 'bench.orders-3@681, producer id 50000008' 1795210203 1795308000 "$@" &&
    is_open 50000008 0 681 1795207768320 --topic bench.orders --partition 3; then
    send abort --topic bench.orders --partition 3 --start-offset 681
fi
#   brokers before 3.0: kafka-transactions.sh --bootstrap-server "$BROKERS" ${COMMAND_CONFIG:+--command-config "$COMMAND_CONFIG"} abort --topic bench.orders --partition 3 --producer-id 50000008 --producer-epoch 0 --coordinator-epoch 0

exit "$status"

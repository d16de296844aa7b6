#!/bin/sh
# Abort plan 0376c2d869a5c1d41a41327b2cc8608a of run run-1: 4 transactions, not after 2026-11-22T03:00:00.000Z.
# Before each abort it looks at the clock, asks, and looks at the brokers; what it could not check it does not send.
#
#   BROKERS=host:port[,host:port...] sh FILE [--yes] [--ended ID]... [--unchecked RECORD]...
#
#   --yes               do not ask. Needed without a terminal; it never answers for a producer that may return
#   --ended ID          you have stopped the producer with this transactional id, and fenced the id; this is checked
#   --unchecked RECORD  send this one although the brokers' version cannot check its precondition: you have
#
# COMMAND_CONFIG=file is given to Kafka's tool as --command-config. Exit code: 0 each abort was sent or is needed no
# more, 1 at least one was refused or failed, 2 it could not begin.

set -f
status=0

refuse() {
    printf 'refused: %s: %s\n' "$record" "$1" >&2
    status=1
    return 1
}

# What somebody else wrote, on one line and without what steers a terminal.
shown() {
    printf '%s' "$1" | tr '\n\t' '  ' | LC_ALL=C tr -cd '[:print:]'
}

stop() {
    printf 'error: %s. Nothing was sent.\n' "$1" >&2
    exit 2
}

# given OPTION VALUE ARGUMENT...: the arguments hold this option with this value
given() {
    option=$1 value=$2
    shift 2
    while [ "$#" -gt 1 ]; do
        if [ "$1" = "$option" ] && [ "$2" = "$value" ]; then return 0; fi
        case $1 in --ended | --unchecked) shift ;; esac
        shift
    done
    return 1
}

now() {
    now_s=$(date +%s) || now_s=
    case $now_s in '' | *[!0-9]*) return 1 ;; esac
}

is_due() {
    now || refuse 'date +%s does not tell the time' || return
    if [ "$now_s" -lt "$not_before_s" ]; then
        refuse "too early: wait $(((not_before_s - now_s + 59) / 60)) min more"
    elif [ "$now_s" -gt "$not_after_s" ]; then
        refuse "too late: it expired $(((now_s - not_after_s) / 60)) min ago. Copy the files and audit again"
    fi
}

is_wanted() {
    if [ "$is_asking" = no ]; then return 0; fi
    printf 'Abort %s? [y/N] ' "$record" >&2
    read -r answer || answer=
    case $answer in [yY] | [yY][eE][sS]) return 0 ;; esac
    refuse 'not confirmed'
}

# begin RECORD WORDS NOT_BEFORE_S NOT_AFTER_S ARGUMENT...: the time is right, also after a person took time to answer
begin() {
    record_id=$1 record=$2 not_before_s=$3 not_after_s=$4
    shift 4
    is_unchecked=no
    if given --unchecked "$record_id" "$@"; then is_unchecked=yes; fi
    is_due && is_wanted && is_due
}

# What Kafka's tool says, in $said. 0: it answered; 2: the brokers cannot, and the operator has; 1: refused.
ask_brokers() {
    if said=$(
        kafka-transactions.sh --bootstrap-server "$BROKERS" ${COMMAND_CONFIG:+--command-config "$COMMAND_CONFIG"} \
            "$@" 2>&1 < /dev/null
    ); then return 0; fi
    case $said in
    *'does not support'* | *UnsupportedVersion*)
        if [ "$is_unchecked" = yes ]; then return 2; fi
        refuse "these brokers are too old for \`kafka-transactions.sh $1\`, which must be looked at first. If you know what it would say: --unchecked $record_id"
        ;;
    *) refuse "\`kafka-transactions.sh $1\` failed: $(shown "$said")" ;;
    esac
}

# is_open PRODUCER_ID PRODUCER_EPOCH START_OFFSET LAST_TIMESTAMP WORD...: what the plan is about is open there, and nothing came since
is_open() {
    producer_id=$1 producer_epoch=$2 start_offset=$3 last_timestamp=$4
    shift 4
    ask_brokers describe-producers "$@"
    case $? in 0) ;; 2) return 0 ;; *) return 1 ;; esac
    case $said in
    *ProducerId*ProducerEpoch*CurrentTransactionStartOffset*) ;;
    *) refuse "\`kafka-transactions.sh describe-producers\` says what is not understood: $(shown "$said")" || return ;;
    esac
    found_epoch='' found_timestamp='' found_start=None
    while read -r found_id epoch _ _ timestamp start _; do
        if [ "$found_id" = "$producer_id" ]; then found_epoch=$epoch found_timestamp=$timestamp found_start=$start; fi
    done << EOF
$said
EOF
    if [ "$found_start" = None ]; then
        printf 'nothing to do: %s: no transaction of this producer is open there any more\n' "$record" >&2
        return 1
    elif [ "$found_start" != "$start_offset" ]; then
        refuse "the open transaction of this producer begins at offset $found_start there. Copy the files and audit again"
    elif [ "$found_epoch" != "$producer_epoch" ]; then
        refuse "this producer has epoch $found_epoch there: someone wrote since the copy. Copy the files and audit again"
    elif [ "$last_timestamp" != unknown ] && ! [ "$found_timestamp" -le "$last_timestamp" ]; then
        refuse "this producer wrote there at $found_timestamp, after the copy's $last_timestamp. Copy the files and audit again"
    fi
}

# is_said_to_be_ended ID WORDS ARGUMENT...: the operator has ended the producer, which only a person knows
is_said_to_be_ended() {
    id=$1 words=$2
    shift 2
    if given --ended "$id" "$@"; then return 0; fi
    refuse "its producer may return, and what it writes then would be lost. Stop it, fence its id, and say $words"
}

# is_ended PRODUCER_ID PRODUCER_EPOCH TOPIC_PARTITION ID WORD...: the coordinator has fenced the producer
is_ended() {
    producer_id=$1 producer_epoch=$2 where=$3 id=$4
    shift 4
    ask_brokers describe "$@"
    case $? in 0) ;; 2) return 0 ;; *) return 1 ;; esac
    # Behind the header, and behind the id, which may hold anything.
    rows=${said#*TopicPartitions}
    row=${rows#*[[:space:]]"$id"[[:space:]]}
    if [ "$row" = "$rows" ] || [ "$rows" = "$said" ]; then row=; fi
    # shellcheck disable=SC2086 # the words of the row
    set -- $row
    case ${1-x}/${2-x} in
    */*[!0-9]* | *[!0-9]*/*) refuse "\`kafka-transactions.sh describe\` says what is not understood: $(shown "$said")" || return ;;
    esac
    case ,${7-}, in
    *",$where,"*) refuse "the coordinator lists $where: it will end what is open there by itself" || return ;;
    esac
    if [ "$1" = "$producer_id" ] && [ "$2" -le "$producer_epoch" ]; then
        refuse "its producer is not fenced: the coordinator's epoch is $2, and must be above $producer_epoch"
    fi
}

# sent EXIT_CODE: of the abort
sent() {
    if [ "$1" -eq 0 ]; then
        printf 'sent: %s\n' "$record" >&2
    else
        refuse "Kafka's tool ended with exit code $1"
    fi
}

is_asking=yes
expected=
for argument in "$@"; do
    if [ -n "$expected" ]; then
        expected=
        continue
    fi
    case $argument in
    --yes) is_asking=no ;;
    --ended | --unchecked) expected=$argument ;;
    *) stop "unknown argument $(shown "$argument"): there are --yes, --ended ID and --unchecked RECORD" ;;
    esac
done
if [ -n "$expected" ]; then stop "$expected needs a value"; fi
if [ -z "${BROKERS-}" ]; then stop 'BROKERS is not set: BROKERS=host:port[,host:port...]'; fi
command -v kafka-transactions.sh > /dev/null || stop 'kafka-transactions.sh is not on the PATH'
now || stop 'date +%s does not tell the time'
if [ "$is_asking" = yes ] && [ ! -t 0 ]; then stop 'there is no terminal to ask at: read the plan, then say --yes'; fi

# -rf-2 from offset 155: producer id 987654321, epoch 3; partition_not_in_transaction
#   record f1
#   transactional id: evil\nkafka-transactions.sh abort --everything\x1b[2J\u202e\u2028'"`$(rm -rf ~)`
#   not before 2026-11-21T00:20:01.000Z, not after 2026-11-22T03:00:00.000Z
#   check first: first end the producer, which may come back and write into the open transaction: stop its application, and fence its id. Then a fresh `kafka-transactions.sh --bootstrap-server "$BROKERS" describe --transactional-id "$(printf 'evil\012kafka\055transactions.sh abort \055\055everything\033[2J\342\200\256\342\200\250\047"`$(rm \055rf ~)`')"` must show an epoch above 3 and not list -rf-2, and a fresh `kafka-transactions.sh --bootstrap-server "$BROKERS" describe-producers --topic=-rf --partition 2` must show producer id 987654321 with epoch 3 and CurrentTransactionStartOffset 155, and no LastTimestamp after 1795219200000. Then abort with the recorded epochs, never by --start-offset, which takes whatever epoch it finds
if begin f1 '-rf-2 from offset 155, producer id 987654321' 1795220401 1795316400 "$@" &&
    is_said_to_be_ended "$(printf 'evil\012kafka\055transactions.sh abort \055\055everything\033[2J\342\200\256\342\200\250\047"`$(rm \055rf ~)`')" '--ended "$(printf '"'"'evil\012kafka\055transactions.sh abort \055\055everything\033[2J\342\200\256\342\200\250\047"`$(rm \055rf ~)`'"'"')"' "$@" &&
    is_open 987654321 3 155 1795219200000 --topic=-rf --partition 2 &&
    is_ended 987654321 3 -rf-2 "$(printf 'evil\012kafka\055transactions.sh abort \055\055everything\033[2J\342\200\256\342\200\250\047"`$(rm \055rf ~)`')" --transactional-id "$(printf 'evil\012kafka\055transactions.sh abort \055\055everything\033[2J\342\200\256\342\200\250\047"`$(rm \055rf ~)`')"; then
kafka-transactions.sh --bootstrap-server "$BROKERS" ${COMMAND_CONFIG:+--command-config "$COMMAND_CONFIG"} abort --topic=-rf --partition 2 --producer-id 987654321 --producer-epoch 3 --coordinator-epoch 0
sent $?
fi

# orders-2 from offset 155: producer id 987654321, epoch 3; unknown_producer
#   record f0
#   transactional id: evil\nkafka-transactions.sh abort --everything\x1b[2J\u202e\u2028'"`$(rm -rf ~)`
#   not before 2026-11-21T00:20:01.000Z, not after 2026-11-22T03:00:00.000Z
#   check first: a fresh `kafka-transactions.sh --bootstrap-server "$BROKERS" describe-producers --topic orders --partition 2` must show producer id 987654321 with epoch 3 and CurrentTransactionStartOffset 155, and no LastTimestamp after 1795219200000
if begin f0 'orders-2 from offset 155, producer id 987654321' 1795220401 1795316400 "$@" &&
    is_open 987654321 3 155 1795219200000 --topic orders --partition 2; then
kafka-transactions.sh --bootstrap-server "$BROKERS" ${COMMAND_CONFIG:+--command-config "$COMMAND_CONFIG"} abort --topic orders --partition 2 --start-offset 155
sent $?
fi
#   brokers before 3.0: kafka-transactions.sh --bootstrap-server "$BROKERS" ${COMMAND_CONFIG:+--command-config "$COMMAND_CONFIG"} abort --topic orders --partition 2 --producer-id 987654321 --producer-epoch 3 --coordinator-epoch 0

# orders-3 from offset 155 or below: producer id 987654321, epoch 3; unknown_producer
#   record f0
#   not before 2026-11-21T00:20:01.000Z, not after 2026-11-22T03:00:00.000Z
#   check first: a fresh `kafka-transactions.sh --bootstrap-server "$BROKERS" describe-producers --topic orders --partition 3` must show producer id 987654321 with epoch 3 and CurrentTransactionStartOffset 155, and no LastTimestamp after 1795219200000
if begin f0 'orders-3 from offset 155, producer id 987654321' 1795220401 1795316400 "$@" &&
    is_open 987654321 3 155 1795219200000 --topic orders --partition 3; then
kafka-transactions.sh --bootstrap-server "$BROKERS" ${COMMAND_CONFIG:+--command-config "$COMMAND_CONFIG"} abort --topic orders --partition 3 --start-offset 155
sent $?
fi

# payments-0 from offset 187: producer id 3, epoch 0; partition_not_in_transaction
#   record f1
#   transactional id: inventory-sync
#   not before 2026-11-21T00:20:01.000Z, not after 2026-11-22T03:00:00.000Z
#   check first: first end the producer, which may come back and write into the open transaction: stop its application, and fence its id. Then a fresh `kafka-transactions.sh --bootstrap-server "$BROKERS" describe --transactional-id inventory-sync` must show an epoch above 0 and not list payments-0, and a fresh `kafka-transactions.sh --bootstrap-server "$BROKERS" describe-producers --topic payments --partition 0` must show producer id 3 with epoch 0 and CurrentTransactionStartOffset 187, and no LastTimestamp after 1795219200000. Then abort with the recorded epochs, never by --start-offset, which takes whatever epoch it finds
record='payments-0 from offset 187, producer id 3'
refuse 'no command: its coordinator epoch is unknown; audit a deep dump (--deep-iteration) or a producer snapshot' || :

exit "$status"

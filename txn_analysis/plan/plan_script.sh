# What it does, and its options: print_help, here below. The aborts, each behind its checks: at the end.

set -f
status=0

print_help() {
    printf '%s\n\n' "$plan"
    cat << 'END'
Before each abort it looks at the clock, asks, and looks at the brokers; what it could not check it does not send.

  BROKERS=host:port[,host:port...] sh FILE [--dry-run] [--yes] [--ended ID]... [--owner-gone ID]...
      [--unchecked RECORD]...

  --dry-run           check everything, say for each record what would be done, and send nothing
  --yes               do not ask. Needed without a terminal; it never answers for a producer that may return
  --ended ID          you have stopped the producer with this transactional id, and fenced the id; this is checked
  --owner-gone ID     the same, and nobody will ever commit what is in progress under this id, from a checkpoint or from
                      any other saved state: print how to fence it even so, which aborts that
  --unchecked RECORD  send this one although the brokers' version cannot check its precondition: you have
  --help              print this and end

  COMMAND_CONFIG      a file, given to Kafka's tool as --command-config
  KAFKA_TRANSACTIONS  how Kafka's tool is called here, such as kafka-transactions, or
                      `docker exec broker kafka-transactions.sh`; kafka-transactions.sh by default
  TIMEOUT_SECONDS     how long a call of Kafka's tool may take: 60 by default
  PAUSE_SECONDS       between the two looks at a producer's coordinator, which must agree: 10 by default

Exit code: 0 each abort was sent or is needed no more, 1 at least one was refused or failed, 2 it could not begin.
130 it was interrupted. With --dry-run 0 and 1 say what would become of them.
END
}

refuse() {
    printf '%srefused: %s: %s\n' "$would_be" "$record" "$1" >&2
    status=1 is_refused=yes
    return 1
}

# What time or a person can still mend: a dry run goes on behind it.
refuse_today() {
    refuse "$1" || [ "$is_dry_run" = yes ]
}

# What somebody else wrote, on one line and without what steers a terminal.
shown() {
    printf '%s' "$1" | tr '\n\t' '  ' | LC_ALL=C tr -cd '\040-\176'
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
        case $1 in --ended | --owner-gone | --unchecked) shift ;; esac
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
        refuse_today "too early: wait $(((not_before_s - now_s + 59) / 60)) min more"
    elif [ "$now_s" -gt "$not_after_s" ]; then
        refuse "too late: it expired $(((now_s - not_after_s) / 60)) min ago. Copy the files and audit again"
    fi
}

# said_yes QUESTION
said_yes() {
    printf '%s [y/N] ' "$1" >&2
    read -r answer || answer=
    case $answer in [yY] | [yY][eE][sS]) return 0 ;; esac
    return 1
}

# begin RECORD WORDS NOT_BEFORE_S NOT_AFTER_S ARGUMENT...: the time is right, also after a person took time to answer
begin() {
    record_id=$1 record=$2 not_before_s=$3 not_after_s=$4
    shift 4
    is_refused=no is_unchecked=no is_owner_gone=no is_fencing_said=no missing_words= passed='its time'
    if given --unchecked "$record_id" "$@"; then is_unchecked=yes; fi
    is_due || return
    if [ "$is_asking" = no ]; then return 0; fi
    said_yes "Abort $record?" || refuse 'not confirmed' || return
    is_due
}

# Kafka's tool, ended once it takes too long: calls can hang where a leader has left (KAFKA-20673).
call_tool() {
    # shellcheck disable=SC2086 # the words of both
    $deadline $tool --bootstrap-server "$BROKERS" ${COMMAND_CONFIG:+--command-config "$COMMAND_CONFIG"} \
        "$@" < /dev/null
}

# was_ended EXIT_CODE: by timeout(1) of GNU, or by its signals
was_ended() {
    case $deadline/$1 in timeout*/124 | timeout*/137 | timeout*/143) return 0 ;; esac
    return 1
}

# What Kafka's tool says, in $said. 0: it answered; 2: the brokers cannot, and the operator has; 1: refused.
ask_brokers() {
    if said=$(call_tool "$@" 2>&1); then return 0; else code=$?; fi
    if was_ended "$code"; then refuse "\`$tool $1\` has not answered within $timeout_s s" || return; fi
    case $said in
    *'does not support'* | *UnsupportedVersion*)
        if [ "$is_unchecked" = yes ]; then return 2; fi
        verb=$1
        shift
        refuse "these brokers are too old for \`$tool $verb\`, which must be looked at first. Copy the files and audit again instead: \`txn-analysis $verb$(words "$@")\` must show $must_show. If it does, send it by --unchecked $record_id"
        set -- "$?"
        say_how_to_go_on
        return "$1"
        ;;
    *) refuse "\`$tool $1\` failed: $(shown "$said")" ;;
    esac
}

# is_open PRODUCER_ID PRODUCER_EPOCH START_OFFSET LAST_TIMESTAMP WORD...: what the plan is about is open there, and nothing came since
is_open() {
    producer_id=$1 producer_epoch=$2 start_offset=$3 last_timestamp=$4
    must_show="producer id $1 with epoch $2, start offset $3 and no later LastTimestamp than $4"
    shift 4
    ask_brokers describe-producers "$@"
    case $? in
    0) ;;
    2) passed="$passed, and you looked at what is open there" && return ;;
    *) return 1 ;;
    esac
    case $said in
    *ProducerId*ProducerEpoch*CurrentTransactionStartOffset*) ;;
    *) refuse "\`$tool describe-producers\` says what is not understood: $(shown "$said")" || return ;;
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
    fi || return
    passed="$passed, open there as in the plan"
    if [ "$last_timestamp" != unknown ]; then passed="$passed, nothing written since"; fi
}

# quoted TEXT: as one word for a shell
quoted() {
    case $1 in
    '' | *[!A-Za-z0-9_./:,@-]*) printf "'%s'" "$(printf '%s' "$1" | sed "s/'/'\\\\''/g")" ;;
    *) printf '%s' "$1" ;;
    esac
}

# words WORD...: each behind a space, as they are typed, but on one line and without what steers a terminal
words() {
    for word in "$@"; do printf ' %s' "$(shown "$(quoted "$word")")"; done
}

# filled TEXT PLACE WORD: the text with the word at the one place
filled() {
    printf '%s%s%s' "${1%%"$2"*}" "$3" "${1#*"$2"}"
}

# say_how_to_go_on: the line that sends this record unchecked, as this run was typed
say_how_to_go_on() {
    line="${COMMAND_CONFIG:+COMMAND_CONFIG=$(quoted "$COMMAND_CONFIG") }"
    line="$line${KAFKA_TRANSACTIONS:+KAFKA_TRANSACTIONS=$(quoted "$KAFKA_TRANSACTIONS") }"
    line="${line}BROKERS=$(quoted "$BROKERS") sh $(quoted "$0")$typed$missing_words --unchecked $record_id"
    # A line break or the like in it: who typed it knows how.
    if [ "$(shown "$line")" = "$line" ]; then printf '  %s\n' "$line" >&2; fi
}

# say_how_to_fence [at-any-state]: the lines that fence, with the id, the brokers and the tool that are used here; once
# for a record. Each looks first whether anything is in progress, unless it is to fence at any state
say_how_to_fence() {
    if [ "$is_fencing_said" = yes ]; then return; fi
    is_fencing_said=yes
    guard="$(here "$(how_to_look)" "${COMMAND_CONFIG-}") && "
    if [ "${1-}" = at-any-state ]; then guard=; fi
    how_to_fence | while IFS= read -r line; do
        case $line in
        kafka-producer-perf-test.sh\ *)
            # Kafka's producer takes the blanks off the ends of its id, and would fence another one.
            case $id in
            [[:space:][:cntrl:]]* | *[[:space:][:cntrl:]])
                echo '  # not for this id: the tool takes off the blanks at its ends, and would fence another one'
                continue
                ;;
            esac
            ;;
        esac
        case $line in
        '#'*) printf '  %s\n' "$line" ;;
        kafka-transactions.sh\ *)
            if [ -n "$fence_timeout_ms" ]; then
                set -- "printf '\nrequest.timeout.ms=$fence_timeout_ms\ndefault.api.timeout.ms=$fence_timeout_ms\n'"
                if [ -n "${COMMAND_CONFIG-}" ]; then set -- "{ cat $(quoted "$COMMAND_CONFIG"); $1; }"; fi
                printf '  %s > fence.properties && %s%s\n' "$1" "$guard" "$(here "$line" fence.properties)"
            else
                printf '  %s%s\n' "$guard" "$(here "$line" "${COMMAND_CONFIG-}")"
            fi
            ;;
        *) printf '  %s%s\n' "$guard" "$(here "$line" '')" ;;
        esac
    done >&2
    if [ -z "$fence_timeout_ms" ]; then
        echo '  # If it says "InitProducerId request ... unexpected error" or names the transaction timeout, the brokers'\'' transaction.max.timeout.ms is below 30,000 ms: put request.timeout.ms=10000 and default.api.timeout.ms=10000 into the file of --command-config' >&2
    fi
}

# here LINE CONFIG: the line with the brokers, the id and Kafka's tool that are used here
here() {
    case $1 in
    kafka-transactions.sh\ *) set -- "$tool${2:+ --command-config $(quoted "$2")}${1#kafka-transactions.sh}" ;;
    esac
    filled "$(filled "$1" '"$BROKERS"' "$(quoted "$BROKERS")")" '"$ID"' "$id_word"
}

# is_said_to_be_ended ID WORD ARGUMENT...: the operator has ended the producer, which only a person knows
is_said_to_be_ended() {
    id=$1 id_word=$2
    shift 2
    if given --owner-gone "$id" "$@"; then is_owner_gone=yes; fi
    if [ "$is_owner_gone" = yes ] || given --ended "$id" "$@"; then return 0; fi
    refuse_today "its producer may return, and what it writes then would be lost. Stop it, fence its id, and say --ended $id_word"
    set -- "$?"
    missing_words=" --ended $id_word"
    say_how_to_fence
    return "$1"
}

# is_ended PRODUCER_ID PRODUCER_EPOCH TOPIC_PARTITION ID WORD...: the coordinator has fenced the producer, and still says
# so a while later: one that was deposed goes on answering for some seconds (KAFKA-21181, KAFKA-21481)
is_ended() {
    is_ended_now "$@"
    case $? in
    0) ;;
    2) passed="$passed, and you looked at its fence" && return ;;
    *) return 1 ;;
    esac
    first_look=$look is_unchecked=no
    sleep "$pause_s"
    is_ended_now "$@" || return
    if [ "$look" != "$first_look" ]; then
        refuse "of its producer was said: $first_look; and $pause_s s later: $look. Its coordinator is moving, or somebody uses the id: make sure that it is ended, and run this again"
    fi || return
    passed="$passed, fenced in two looks $pause_s s apart"
}

# is_ended_now: the same at one moment; what was seen is in $look
is_ended_now() {
    producer_id=$1 producer_epoch=$2 where=$3 id=$4
    must_show="an epoch above $2, or another producer id than $1, and not list $3"
    shift 4
    ask_brokers describe "$@"
    code=$?
    if [ "$code" -ne 0 ]; then
        # Brokers before 3.0 cannot say what is in progress.
        case $is_owner_gone/$code/$said in
        yes/1/*'does not support'* | yes/1/*UnsupportedVersion*) say_how_to_fence at-any-state ;;
        esac
        return "$code"
    fi
    # Behind the header there are the coordinator and the id, which may hold anything.
    rows=${said#*TopicPartitions}
    row=${rows#"${rows%%[![:space:]]*}"}
    coordinator=${row%%[[:space:]]*}
    row=${row#"$coordinator"}
    words=${row#*[[:space:]]"$id"[[:space:]]}
    if [ "$words" = "$row" ] || [ "$rows" = "$said" ]; then words=; fi
    # shellcheck disable=SC2086 # the words of the row
    set -- $words
    case ${1-x}/${2-x}/${3:+state} in
    */*[!0-9]*/* | *[!0-9]*/*/* | */*/) refuse "\`$tool describe\` says what is not understood: $(shown "$said")" || return ;;
    esac
    look=$(shown "coordinator $coordinator, producer id $1, epoch $2, $3")
    case ,${7-}, in
    *",$where,"*) refuse "the coordinator lists $where: it will end what is open there by itself" || return ;;
    esac
    case $3 in
    Empty | CompleteCommit | CompleteAbort) ;;
    Ongoing)
        # Under whatever pair: its owner may commit it from what it saved, and a fence would abort it.
        in_progress="producer id $1, epoch $2 on $(shown "${7-}")"
        if [ "$is_owner_gone" = yes ]; then
            refuse "its id has a transaction in progress: $in_progress. The fence aborts it"
            say_how_to_fence at-any-state
        else
            refuse "its id has a transaction in progress: $in_progress. Let its owner end it, or wait for its timeout of $(shown "$4") ms; only if nobody will ever commit it, from a checkpoint or other saved state, say --owner-gone $(shown "$id_word")"
        fi
        return 1
        ;;
    *) refuse "its id is in state $(shown "$3"), which a fence does not end: wait, and run this again" || return ;;
    esac
    # Another producer id fences as well, the smaller number too: ids come in blocks, one for each broker. The coordinator
    # takes partitions for the current one alone, and gives an id none a second time. One that is deposed may answer with
    # an earlier one; it answers for seconds, and the plan's time begins long after the data's own id was given.
    if [ "$1" = "$producer_id" ] && [ "$2" -le "$producer_epoch" ]; then
        refuse "its producer is not fenced: the coordinator's epoch is $2, and must be above $producer_epoch, or of another producer id"
        say_how_to_fence
        return 1
    fi
}

# send WORD...: the abort
send() {
    if [ "$is_dry_run" = yes ]; then
        if [ "$is_refused" = no ]; then printf 'would be sent: %s: %s\n  checked: %s\n' "$record" "$*" "$passed" >&2; fi
        return
    fi
    code=0
    call_tool "$@" || code=$?
    if [ "$code" -eq 0 ]; then
        printf 'sent: %s\n' "$record" >&2
    elif was_ended "$code"; then
        refuse "Kafka's tool has not answered within $timeout_s s, and may have sent it. Run this again: it looks first"
    else
        refuse "Kafka's tool ended with exit code $code"
    fi
}

# timeout(1) hides Ctrl-C from what it runs, and some shells would then go on.
trap 'echo "interrupted. Run this again: it looks first" >&2; exit 130' INT TERM HUP

is_asking=yes is_dry_run=no would_be=
expected='' typed=''
for argument in "$@"; do
    if [ "$argument" != --dry-run ]; then typed="$typed $(quoted "$argument")"; fi
    if [ -n "$expected" ]; then
        expected=
        continue
    fi
    case $argument in
    --help | -h) print_help && exit 0 ;;
    --dry-run) is_dry_run=yes would_be='would be ' ;;
    --yes) is_asking=no ;;
    --ended | --owner-gone | --unchecked) expected=$argument ;;
    *) stop "unknown argument $(shown "$argument"): there are --dry-run, --yes, --ended ID, --owner-gone ID, --unchecked RECORD and --help" ;;
    esac
done
if [ -n "$expected" ]; then stop "$expected needs a value"; fi
if [ -z "${BROKERS-}" ]; then stop 'BROKERS is not set: BROKERS=host:port[,host:port...]'; fi
tool=${KAFKA_TRANSACTIONS:-kafka-transactions.sh} timeout_s=${TIMEOUT_SECONDS:-60} pause_s=${PAUSE_SECONDS:-10}
case $timeout_s$pause_s in *[!0-9]* | 0*) stop 'TIMEOUT_SECONDS and PAUSE_SECONDS are whole seconds, and the first is above 0' ;; esac
for program in $tool; do break; done
command -v "${program-}" > /dev/null || stop "$tool is not on the PATH: KAFKA_TRANSACTIONS says how it is called"
now || stop 'date +%s does not tell the time'
if [ "$is_dry_run" = yes ]; then is_asking=no; fi
if [ "$is_asking" = yes ] && [ ! -t 0 ]; then stop 'there is no terminal to ask at: read the plan, then say --yes'; fi
deadline="timeout $timeout_s"
if ! $deadline true 2> /dev/null; then
    deadline=
    echo "timeout(1) is not on the PATH: nothing will end a call of Kafka's tool that hangs" >&2
    if [ "$is_asking" = yes ] && ! said_yes 'Go on without it?'; then stop 'not confirmed'; fi
fi

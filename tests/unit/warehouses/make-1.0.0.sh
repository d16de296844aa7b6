#!/bin/sh
# Writes the warehouses of 1.0.0 that lie beside this script, and what 1.0.0 answers of one.
#
# Typed in a checkout of the commit that 1.0.0 was made of (9a33b349), with its program first on the PATH:
#
#     PATH="$PWD/.venv/bin:$PATH" sh tests/unit/warehouses/make-1.0.0.sh FOLDER
#
# The script itself may lie anywhere, and FOLDER is empty. Paths of files are stored as they are given: relative.
set -eu
made=$(cd "$1" && pwd)
script=$(cd "$(dirname "$0")" && pwd)
cp -R data/cases/kafka-4.2 data/cases/kafka-2.8 "$made"
cd "$made"
txn-analysis version
said="--transaction-state-partitions 4 --max-clock-skew-ms 0"

audit() {  # exit code 1: something hangs
    rc=0
    txn-analysis audit "$@" $said --format json > /dev/null || rc=$?
    [ "$rc" = 1 ]
}

# Two nights of a real cluster; what hangs is planned, and one of it accepted.
nights=$made/1.0.0
for night in 1 2; do
    more=$([ "$night" = 1 ] || echo "kafka-4.2/capture-$night/producer-snapshots")
    # shellcheck disable=SC2086
    audit --warehouse "$nights" --capture "night-$night" "kafka-4.2/capture-$night/segments" \
        "kafka-4.2/capture-$night/transaction-state" $more
done
txn-analysis accept --warehouse "$nights" --finding payments-0@187 --until 2099-01-01 --reason "its owner is on leave" \
    --by on-call > /dev/null

# An export that somebody forged: the id `a::NULL` + newline + `billing-worker-17` expired, and the reader of 1.0.0
# believes that billing-worker-17 did.
forged=$made/1.0.0-forged
cp kafka-2.8/console/transaction-state.txt forged-state.txt
printf 'a::NULL\nbilling-worker-17::NULL\n' >> forged-state.txt
audit --warehouse "$forged" --capture night-1 kafka-2.8/capture-1/segments forged-state.txt --transaction-state-complete

# A deep dump that `head` cut inside a batch, which 1.0.0 read as whole.
head -n 349 kafka-4.2/capture-1/segments/n2.payments-0.txt > cut-payments-0.txt
audit --warehouse "$made/1.0.0-cut" --capture night-1 cut-payments-0.txt kafka-4.2/capture-1/segments/n1.orders-1.txt \
    kafka-4.2/capture-1/transaction-state

# What 1.0.0 answers of the nights.
answers=$made/answers
mkdir "$answers"
now=2026-11-21T00:00:00Z
ask() {
    name=$1
    shift
    rc=0
    txn-analysis "$@" --warehouse "$nights" > "$answers/$name.json" || rc=$?
    [ "$rc" -le 1 ]
}
ask report report --now "$now" --format json
ask find-hanging find-hanging --format json
ask list list --format json
ask describe-producers describe-producers --all --format json
ask explain explain --format json
ask ended ended --format json
ask at-risk at-risk --format json
ask stats stats --format json
ask abort-plan abort-plan --expired --format ndjson
ask write-txn-markers abort-plan --expired --format write-txn-markers
ask captures captures --format json
python3 "$script/pack.py" "$made"

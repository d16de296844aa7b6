#!/bin/sh
# One night's audit, for cron or systemd: report, page and log into OUT, a mail to MAILTO where something is wrong.
# The page stays as well under its day, and OUT/nights.txt lists what all nights answered.
#
#   CONFIG=/etc/txn-analysis.toml OUT=/var/lib/txn-analysis MAILTO=ops@example.org nightly.sh PATH...
#
# Ends with the exit code of the audit: 0 nothing hangs, 1 something does (see fail_on in CONFIG), 2 something could not
# be read or done, 3 it could not be told whether something hangs: a copying job that loses files must not stay green.
set -u
: "${OUT:?a folder for the reports}" "${CONFIG:?a file such as conf/nightly.toml}"
AUDIT=${AUDIT:-txn-analysis}

"$AUDIT" audit "$@" --config "$CONFIG" --width 76 -o "$OUT/report.txt" -o "$OUT/report.html" 2> "$OUT/audit.log"
code=$?

case $code in
    0 | 1 | 3)
        cp "$OUT/report.html" "$OUT/$(date -u +%Y-%m-%d).html" 2>> "$OUT/audit.log"
        "$AUDIT" captures --config "$CONFIG" -o "$OUT/nights.txt" 2>> "$OUT/audit.log"
        ;;
esac

mailed() { # subject, file
    [ -z "${MAILTO:-}" ] || mail -s "$1" "$MAILTO" < "$2"
}
case $code in
    0) ;;
    1 | 3) mailed "$(head -n 1 "$OUT/report.txt" | cut -c 1-200)" "$OUT/report.txt" ;;
    *) mailed "Kafka audit failed with exit code $code: nothing was judged" "$OUT/audit.log" ;;
esac
exit $code

#!/bin/sh
# Copies what `txn-analysis` reads off a broker that runs, the logs first and __transaction_state last, and writes a
# manifest, txn-capture.json, which proves that order. Needs a POSIX shell, coreutils and grep, or busybox.
#
#   sh copy-kit.sh --to DIR [OPTION]... LOG_DIR...      into a folder; run again, it goes on
#   sh copy-kit.sh --tar [OPTION]... LOG_DIR...         as a tar archive to stdout: ssh BROKER sh -s -- … | tar x
#   sh copy-kit.sh --to DIR --dump [OPTION]... LOG_DIR...   by the broker's own kafka-dump-log.sh, many files a call
#
#   --topic TOPIC             only this topic, and __transaction_state; may be given several times
#   --bootstrap-server H:P    asks kafka-topics.sh for the leaders before and after; --command-config FILE is passed on
#   --describe-before FILE    what `kafka-topics.sh --describe` printed before, where this host may not ask
#   --describe-after FILE     the same of afterwards; with --finish, when the copy was made by an earlier call
#   --finish                  copies nothing: writes the manifest of a copy anew, with what --describe-after says
#   --kafka-bin DIR           where kafka-topics.sh and kafka-dump-log.sh are, if not on the PATH
#   --bytes-per-second N      copies no faster (default: 100000000; 0: as fast as it can)
#   --reserve-bytes N         leaves as much of the disk free (default: 1073741824)
#   --pause SECONDS           between the logs and the state (default: 4, beyond what clocks may differ)
#   --no-sums                 writes no SHA-256 into the manifest
#   --dry-run                 prints what would be copied, with sizes in bytes
#
# Without a description of the topics the manifest confirms no leader, and proves the order alone.
# Exit codes: 0 copied; 1 not all of it could be; 2 it was called wrongly, or the disk is too small.
set -u
LC_ALL=C
export LC_ALL
umask 077

STATE=__transaction_state
FILES_A_CALL=40
BLOCK=1048576
ROUNDS=5
NICE='nice -n 19'

to='' mode=copy dry='' finish='' topics='' server='' config='' before_file='' after_file='' bin='' sums=yes
rate=100000000 reserve=1073741824 pause=4

say() { printf 'copy-kit: %s\n' "$*" >&2; }
fail() {
    say "$*"
    exit 2
}
is_readable() { # FOLDER: what is not listed would be missing without a word
    [ -r "$1" ] && [ -x "$1" ] || fail "$1: cannot be read. Run this as the user who runs the broker"
}
usage() { sed -n '2,/^set -u/s/^# \{0,1\}//p' "$0" 2> /dev/null; }

while [ $# -gt 0 ]; do
    case $1 in
        --to | --topic | --bootstrap-server | --command-config | --describe-before | --describe-after | --kafka-bin | \
            --bytes-per-second | --reserve-bytes | --pause)
            [ $# -ge 2 ] || fail "$1 needs a value"
            case $1 in
                --to) to=$2 ;;
                --topic) topics="$topics $2 " ;;
                --bootstrap-server) server=$2 ;;
                --command-config) config=$2 ;;
                --describe-before) before_file=$2 ;;
                --describe-after) after_file=$2 ;;
                --kafka-bin) bin=$2/ ;;
                --bytes-per-second) rate=$2 ;;
                --reserve-bytes) reserve=$2 ;;
                --pause) pause=$2 ;;
            esac
            shift 2
            ;;
        --tar) mode=tar && shift ;;
        --dump) mode=dump && shift ;;
        --dry-run) dry=yes && shift ;;
        --finish) finish=yes && shift ;;
        --no-sums) sums='' && shift ;;
        -h | --help)
            usage
            exit 0
            ;;
        --)
            shift
            break
            ;;
        -*) fail "no such option: $1. See --help" ;;
        *) break ;;
    esac
done
case $rate$reserve$pause in *[!0-9]*) fail "bytes and seconds are whole numbers" ;; esac
[ $# -gt 0 ] || fail "name at least one folder of the broker's log.dirs. See --help"
for dir in "$@"; do
    [ -d "$dir" ] || fail "$dir: no such folder"
    is_readable "$dir"
done
if [ "$mode" = tar ]; then
    [ -z "$to" ] || fail "--tar writes to stdout: leave --to out"
    [ -z "$finish" ] || fail "--finish is of a copy in a folder"
    [ -n "$dry" ] || [ ! -t 1 ] || fail "--tar writes an archive: send it to a file, or into tar x"
elif [ -z "$dry" ]; then
    [ -n "$to" ] || fail "say where to with --to DIR, or --tar"
fi
stat -c %s / > /dev/null 2>&1 || fail "stat of coreutils or of busybox is needed"
command -v sha256sum > /dev/null 2>&1 || sums=''
command -v nice > /dev/null 2>&1 || NICE=''

# Clocks. Where a shell knows whole seconds alone, what began is rounded down and what ended is rounded up.

case $(date +%s%3N) in
    *[!0-9]*) unit=s ;;
    *) unit=ms ;;
esac
now_began() { if [ $unit = ms ]; then date +%s%3N; else echo "$(date +%s)000"; fi; }
now_ended() { if [ $unit = ms ]; then date +%s%3N; else echo "$(($(date +%s) + 1))000"; fi; }
now_both() { # into $monotonic and $began, read within a tenth of a second, if the host lets us
    again=5
    while [ $again -gt 0 ]; do
        again=$((again - 1)) monotonic=$(now_monotonic) began=$(now_began)
        [ "$monotonic" != null ] && [ $(($(now_monotonic) - monotonic)) -gt 100 ] || break
    done
}
now_monotonic() { # of the host since it started; nobody sets it
    if [ -r /proc/uptime ] && read -r up _ < /proc/uptime; then
        if [ $unit = ms ]; then up=${up%.*}${up#*.}0; else up=${up%.*}000; fi
        while case $up in 0?*) true ;; *) false ;; esac do up=${up#0}; done
        echo "$up"
    else
        echo null
    fi
}

# What there is.

is_partition() { # NAME of a folder
    case ${1##*-} in '' | *[!0-9]*) return 1 ;; esac
    case $1 in *[!A-Za-z0-9._-]* | -* | __cluster_metadata-*) return 1 ;; esac
    [ "${1%-*}" = $STATE ] || [ -z "$topics" ] || case $topics in *" ${1%-*} "*) true ;; *) false ;; esac
}

place_of() { # NUMBER of a log directory: its place in the copy
    if [ "$dirs" = 1 ]; then echo ''; else echo "disk-$1/"; fi
}
dirs=$#

for dir in "$@"; do
    is_log_dir=''
    [ ! -e "$dir/meta.properties" ] || is_log_dir=yes
    for folder in "$dir"/*-[0-9]*; do
        [ -d "$folder" ] && is_partition "${folder##*/}" || continue
        is_log_dir=yes
        is_readable "$folder"
    done
    [ -n "$is_log_dir" ] || fail "$dir: holds no partition. Name a folder of the broker's log.dirs"
done

# list WHAT DIR...: a line `inode size mtime place<TAB>path` for each file. WHAT is logs, beside (what lies beside their
# segments, and in the log directory itself), state or state-beside.
list() {
    what=$1 number=0
    shift
    for dir in "$@"; do
        number=$((number + 1))
        for folder in "$dir"/*-[0-9]*; do
            name=${folder##*/}
            is_partition "$name" || continue
            case $what in state*) [ "${name%-*}" = $STATE ] || continue ;; *) [ "${name%-*}" != $STATE ] || continue ;; esac
            case $what in
                logs | state) list_files "$(place_of $number)$name/" "$folder"/[0-9]*.log ;;
                *)
                    list_files "$(place_of $number)$name/" "$folder"/[0-9]*.snapshot "$folder"/[0-9]*.txnindex \
                        "$folder"/leader-epoch-checkpoint "$folder"/partition.metadata
                    ;;
            esac
        done
        [ "$what" != beside ] || list_files "$(place_of $number)" "$dir"/meta.properties \
            "$dir"/replication-offset-checkpoint "$dir"/log-start-offset-checkpoint
    done
}
list_files() { # PLACE FILE...
    place=$1
    shift
    stats "$@" | while read -r inode size mtime path; do
        printf '%s %s %s %s\t%s\n' "$inode" "$size" "$mtime" "$place${path##*/}" "$path"
    done
}
stats() { # FILE...: one by one where they are more than a call can take
    stat -c '%i %s %Y %n' "$@" 2> /dev/null || [ $? -ne 126 ] || for file in "$@"; do stat -c '%i %s %Y %n' "$file" 2> /dev/null; done
}

# The cleaner puts a segment in place by renaming: first `.swap`, then the old files are deleted, then the new name. What
# is renamed may be in no list, so that a list is believed once the next one is the same and no `.swap` is there.
shape() { # LIST: a line `place inode size` for each file; the last one of a folder may grow, and stands without its size
    before='' size_before=''
    while IFS= read -r line; do
        # shellcheck disable=SC2086
        set -- ${line%%	*}
        [ -z "$before" ] || [ "${4%/*}" = "${before%/*}" ] || size_before=-
        [ -z "$before" ] || echo "$before $size_before"
        before="$4 $1" size_before=$2
    done < "$1"
    [ -z "$before" ] || echo "$before -"
}
swaps() { # WHAT DIR...: the folders in which something is put in place now
    what=$1
    shift
    for dir in "$@"; do
        for swap in "$dir"/*-[0-9]*/*.swap; do
            [ -e "$swap" ] || continue
            name=${swap%/*} && name=${name##*/}
            case $what-${name%-*} in "state-$STATE") ;; state-* | "logs-$STATE") continue ;; esac
            if is_partition "$name"; then echo "$name"; fi
        done
    done
}
unlike() { # WHAT DIR...: the folders that a list made now shows otherwise than $own/list, or that had a swap in between
    list "$@" > "$own/list-again"
    shape "$own/list" > "$own/shape"
    shape "$own/list-again" > "$own/shape-again"
    {
        cat "$own/swaps"
        swaps "$@"
        sort "$own/shape" "$own/shape-again" | uniq -u | while read -r place _; do place=${place%/*} && echo "${place##*/}"; done
    } | sort -u
}

total() { # of the sizes in lists, in bytes
    sum=0
    while read -r _ size _; do sum=$((sum + size)); done
    echo $sum
}

if [ -n "$dry" ]; then
    for what in logs beside state state-beside; do list $what "$@"; done | {
        sum=0 count=0
        while read -r _ size _ place; do
            printf '%15d %s\n' "$size" "${place%%	*}"
            sum=$((sum + size)) count=$((count + 1))
        done
        printf '%15d bytes in %d files\n' $sum $count
    }
    exit 0
fi

# Where it is written down.

take_folder() { # from now on it is ours alone, or of whoever takes over once we were killed
    me="$(uname -n) $$" host='' pid=''
    (set -C && echo "$me" > "$own/running") 2> /dev/null && return
    { read -r host pid < "$own/running"; } 2> /dev/null
    [ "$host" != "${me% *}" ] || kill -0 "$pid" 2> /dev/null || { echo "$me" > "$own/running" && return; }
    fail "$to: another copy kit copies into it (process $pid of $host). Wait for its end, or name another folder; where none runs, delete $own/running"
}
if [ "$mode" = tar ]; then
    own=$(mktemp -d "${TMPDIR:-/tmp}/copy-kit.XXXXXX") || fail "no folder for temporary files"
else
    own=$to/.copy-kit
    mkdir -p "$own" || fail "$to: cannot be written"
    case $(cd "$to" && pwd -P)/ in "$(cd "$1" && pwd -P)"/*) fail "$to lies inside of a log directory" ;; esac
    take_folder
    trap 'rm -f "$own/running"' EXIT
fi
journal=$own/journal # sequence began ended monotonic size sum inode mtime place; the last line of a place counts
manifest=txn-capture.json
[ -s "$journal" ] && say "going on with the copy in $to"
: >> "$journal"

broker=null cluster=null
for dir in "$@"; do
    [ -r "$dir/meta.properties" ] || continue
    while IFS='=' read -r key value || [ -n "$key" ]; do
        case $key in
            node.id | broker.id) case $value in '' | *[!0-9]*) ;; *) broker=$value ;; esac ;;
            cluster.id) case $value in '' | *[!A-Za-z0-9_-]*) ;; *) cluster=$value ;; esac ;;
        esac
    done < "$dir/meta.properties"
done

# Leaders: whom the controller names, and the epoch that the leader has written down when it began to lead.

describe() { # FILE: what kafka-topics.sh says now
    set -- "$1" "${bin}kafka-topics.sh" --describe --bootstrap-server "$server"
    [ -z "$config" ] || set -- "$@" --command-config "$config"
    out=$1
    shift
    if ! "$@" < /dev/null > "$out.text" 2> "$own/describe.err"; then
        say "kafka-topics.sh --describe failed; no leader is confirmed: $(head -n 1 "$own/describe.err")"
        : > "$out.text"
    fi
}
leaders_of() { # DESCRIPTION: lines `topic-partition leader`
    while read -r line; do
        # shellcheck disable=SC2086 # it is split into its words
        set -- $line
        [ "${1:-}" = Topic: ] && [ "${3:-}" = Partition: ] && [ "${5:-}" = Leader: ] || continue
        case ${6:-} in '' | *[!0-9]*) ;; *) echo "$2-$4 $6" ;; esac
    done < "$1"
}
epochs() { # DIR...: lines `topic-partition epoch`
    for dir in "$@"; do
        for folder in "$dir"/*-[0-9]*; do
            is_partition "${folder##*/}" || continue
            [ -s "$folder/leader-epoch-checkpoint" ] || continue
            newest=''
            while read -r epoch offset rest; do
                case $epoch$offset in *[!0-9]*) newest='' && break ;; esac
                [ -z "$offset" ] || newest=$epoch
            done < "$folder/leader-epoch-checkpoint"
            [ -z "$newest" ] || echo "${folder##*/} $newest"
        done
    done
}
known() { # PLACE FILE: what a file of such lines says
    grep -F "$1 " "$2" | {
        said=null
        while read -r name value; do [ "$name" != "$1" ] || said=$value; done
        echo "$said"
    }
}
ask() { # WHEN DIR...: into $own/WHEN.leaders and $own/WHEN.epochs
    when=$1
    shift
    : > "$own/$when.leaders"
    if [ -n "$server" ]; then
        describe "$own/$when"
        leaders_of "$own/$when.text" > "$own/$when.leaders"
    elif [ "$when" = before ] && [ -n "$before_file" ]; then
        leaders_of "$before_file" > "$own/$when.leaders"
    elif [ "$when" = after ] && [ -n "$after_file" ] && [ -r "$after_file" ]; then
        if [ "$after_file" -nt "$own/ended" ]; then
            leaders_of "$after_file" > "$own/$when.leaders"
        else
            say "$after_file is older than the copy: no leader is confirmed. Write it now, and run this again with --finish"
        fi
    fi
    epochs "$@" > "$own/$when.epochs"
}
changed_leaders() { # the partitions whose leader or epoch is not what it was
    [ -s "$own/before.leaders" ] && [ -s "$own/after.leaders" ] || return 0
    while read -r name leader; do
        [ "$(known "$name" "$own/after.leaders")" = "$leader" ] || echo "$name"
    done < "$own/before.leaders"
    while read -r name epoch; do
        [ "$(known "$name" "$own/after.epochs")" = "$epoch" ] || echo "$name"
    done < "$own/before.epochs"
}

# Copying.

sparse=''
dd if=/dev/null of="$own/probe" bs=1 count=0 conv=notrunc,sparse 2> /dev/null && sparse=,sparse
rm -f "$own/probe"

read_slowly() { # FILE BYTES, to stdout or, with a third word, into that file: its first bytes, opened once, as its name may go
    blocks=$((($2 + BLOCK - 1) / BLOCK)) at=0
    step=$((rate / BLOCK))
    [ "$rate" -gt 0 ] || step=$blocks
    [ $step -gt 0 ] || step=1
    while [ $at -lt $blocks ]; do
        if [ $# -gt 2 ]; then
            $NICE dd of="$3" bs=$BLOCK seek=$at count=$step conv=notrunc$sparse 2> /dev/null || return 1
        else
            $NICE dd bs=$BLOCK count=$step 2> /dev/null || return 1
        fi
        at=$((at + step))
        [ "$rate" -eq 0 ] || [ $at -ge $blocks ] || sleep 1
    done < "$1"
}
size_of() { stat -c %s "$1" 2> /dev/null || echo 0; }
inode_of() { stat -c %i "$1" 2> /dev/null || echo gone; }

free_bytes() {
    df -Pk "$to" | { read -r _ && read -r _ _ _ free _ && echo $((free * 1024)); }
}

octal() { printf "%0$2o" "$1"; }
tar_header() { # PLACE BYTES: one block of ustar (POSIX.1-1988)
    name=$1 prefix=''
    if [ ${#name} -gt 100 ]; then
        prefix=${name%/*} name=${name##*/}
        [ ${#prefix} -le 155 ] || return 1
    fi
    if [ "$2" -ge 8589934592 ]; then return 1; fi
    head=$(printf '%-100s%-8s%-8s%-8s%-12s%-12s' "$name" "0000600" "0000000" "0000000" "$(octal "$2" 11)" "$(octal "$(date +%s)" 11)")
    tail=$(printf '0%-100s%-6s00%-32s%-32s%-8s%-8s%-155s%-12s' "" "ustar" "" "" "" "" "$prefix" "")
    # Blanks stand for the zeros that fill a field; no field holds a blank.
    sum=$((32 * 8))
    for byte in $(printf '%s%s' "$head" "$tail" | tr ' ' '\000' | od -An -v -tu1); do sum=$((sum + byte)); done
    printf '%s' "$head" | tr ' ' '\000'
    printf '%s\000 ' "$(octal $sum 6)"
    printf '%s' "$tail" | tr ' ' '\000'
}
tar_put() { # PLACE BYTES, the content from stdin
    tar_header "$1" "$2" || return 1
    cat
    rest=$(((512 - $2 % 512) % 512))
    [ $rest -eq 0 ] || head -c $rest /dev/zero
}

sequence=0
while read -r number _; do [ "$number" -lt $sequence ] || sequence=$((number + 1)); done < "$journal"
bad=0

copy() { # INODE SIZE MTIME PLACE PATH: one file; written down once it is whole
    inode=$1 size=$2 mtime=$3 place=$4 path=$5
    try=0
    while [ $try -lt 3 ]; do
        try=$((try + 1))
        now_both
        size=$(size_of "$path") inode=$(inode_of "$path")
        if [ "$inode" = gone ]; then # deleted since it was listed, or since it was sent
            case $mode/$try in */1) ;; tar/*) echo "$place" >> "$own/deleted" ;; *) rm -f "$part" ;; esac
            return 0
        fi
        sum=null
        if [ "$mode" = tar ]; then
            [ -z "$sums" ] || sum=$(head -c "$size" "$path" | $NICE sha256sum) && sum=${sum%% *}
            # Nothing can be taken back out of a stream: what became shorter is filled up, and then not whole.
            rm -f "$own/unread"
            { read_slowly "$path" "$size" || : > "$own/unread"; cat /dev/zero; } | head -c "$size" | tar_put "$place" "$size" || return 1
            ended=$(now_ended)
            if [ "$(inode_of "$path")" != "$inode" ] || [ "$(size_of "$path")" -lt "$size" ]; then continue; fi
            [ ! -e "$own/unread" ] || return 1
            break
        fi
        if [ $((size + reserve)) -gt "$(free_bytes)" ]; then
            say "$to: not enough room for $place and the $reserve bytes that stay free. Make room, and run it again"
            return 1
        fi
        mkdir -p "$to/$(dirname "$place")" || return 1
        part=$to/$(dirname "$place")/.copy-kit-part
        rm -f "$part"
        : > "$part" || return 1
        read_slowly "$path" "$size" "$part" || [ "$(inode_of "$path")" != "$inode" ] || return 1
        ended=$(now_ended)
        if [ "$(inode_of "$path")" != "$inode" ]; then continue; fi
        if [ "$(size_of "$part")" -lt "$size" ]; then
            [ "$(size_of "$path")" -ge "$size" ] || continue
            sparse=''
            continue
        fi
        size=$(size_of "$part")
        [ -z "$sums" ] || sum=$($NICE sha256sum < "$part") && sum=${sum%% *}
        break
    done
    [ "$sum" != "-" ] && [ -n "$sum" ] || sum=null
    printf '%s %s %s %s %s %s %s %s %s\n' $sequence "$began" "$ended" "$monotonic" "$size" "$sum" "$inode" "$mtime" "$place" >> "$journal"
    sequence=$((sequence + 1))
    [ "$mode" = tar ] || mv -f "$part" "$to/$place"
}

last_line() { # PLACE: what was written down of a file last
    grep -F " $1" "$journal" | {
        found=''
        while read -r line; do
            case $line in *" $1") found=$line ;; esac
        done
        echo "$found"
    }
}

# is_copied INODE SIZE MTIME PLACE IS_LAST: whether a copy is that of the file as it is. The last segment of a partition
# may grow: what came since was not there when its first byte was read.
is_copied() {
    # shellcheck disable=SC2046
    set -- "$@" $(last_line "$4")
    [ $# -ge 14 ] || return 1
    [ "${12}" = "$1" ] || return 1
    [ "$mode" = tar ] || [ "$(size_of "$to/$4")" = "${10}" ] || return 1 # killed before it was put in its place
    if [ "$5" = yes ]; then [ "${10}" -le "$2" ]; else [ "${10}" = "$2" ] && [ "${13}" = "$3" ]; fi
}

# pass WHAT FRESH DIR...: copies what is new, until a list of the folders has nothing new, and neither has the next one.
# FRESH names partitions whose files are copied in any case (` a-0 b-1 `, or `all`).
pass() {
    what=$1 fresh=$2 round=0
    shift 2
    since=$sequence
    while [ $round -lt $ROUNDS ]; do
        round=$((round + 1)) new=0
        case $what in logs | state) swaps "$what" "$@" > "$own/swaps" ;; esac
        list "$what" "$@" > "$own/list"
        drop_gone
        : > "$own/open"
        before='' before_line=''
        while read -r line; do # a partition's files follow each other: the last one of each may grow
            place=${line#* * * } && place=${place%%	*}
            [ "${place%/*}" = "$before" ] || { [ -z "$before_line" ] || echo "$before_line" >> "$own/open"; }
            before=${place%/*} before_line=$place
        done < "$own/list"
        [ -z "$before_line" ] || echo "$before_line" >> "$own/open"
        while IFS= read -r line; do
            path=${line#*	} line=${line%%	*}
            # shellcheck disable=SC2086
            set -- $line "$path" "$@"
            is_last=no
            case $what in logs | state) grep -qxF "$4" "$own/open" && is_last=yes ;; esac
            folder=${4%/*} folder=${folder##*/}
            is_fresh=no
            case $fresh in all | *" $folder "*)
                # shellcheck disable=SC2046
                [ "$round" = 1 ] && is_fresh=yes
                ;;
            esac
            if [ $is_fresh = yes ] || ! is_copied "$1" "$2" "$3" "$4" $is_last; then
                new=1
                copy "$1" "$2" "$3" "$4" "$5" || bad=1
            fi
            shift 5
            [ $bad = 0 ] || return 1
        done < "$own/list"
        case $what-$new in
            logs-0 | state-0)
                unlike "$what" "$@" > "$own/unlike-$what"
                [ -s "$own/unlike-$what" ] && [ $round -lt $ROUNDS ] || break
                sleep 1
                ;;
            *-0) return 0 ;;
        esac
    done
    if [ $new = 0 ]; then
        [ ! -s "$own/unlike-$what" ] ||
            say "$(head -n 1 "$own/unlike-$what"): its segments are being replaced; whether all were copied is not known"
        return 0
    fi
    case $what in logs | state)
        while read -r place; do place=${place%/*} && echo "${place##*/}"; done < "$own/open" >> "$own/unsettled"
        say "$what: the folders still change; their ends are not confirmed"
        ;;
    esac
}
drop_gone() { # a segment that is not there any more went into another one, or was deleted; the last one with its folder
    case $what in logs | state) ;; *) return 0 ;; esac
    : > "$own/kept"
    while read -r line; do
        # shellcheck disable=SC2086
        set -- $line
        folder=${9%/*} listed='' of=logs
        case $9 in
            *.log) listed=" $9	" ;;
            *.snapshot | *.txnindex | */leader-epoch-checkpoint | */partition.metadata) listed=" $folder/" ;;
        esac
        case ${folder##*/} in $STATE-*) of=state ;; esac
        if [ -n "$listed" ] && [ $of = "$what" ] && ! grep -qF "$listed" "$own/list"; then
            # Out of a stream nothing can be taken: the manifest says that this is no part of the copy.
            if [ "$mode" = tar ]; then echo "$9" >> "$own/deleted"; else rm -f "$to/$9"; fi
            say "$9: not there any more"
        else
            echo "$line" >> "$own/kept"
        fi
    done < "$journal"
    mv -f "$own/kept" "$journal"
}

# The manifest.

entries() {
    comma=''
    while read -r line; do
        # shellcheck disable=SC2086
        set -- $line
        [ "$(last_line "$9")" = "$line" ] || continue
        [ "$mode" = tar ] || [ -f "$to/$9" ] || continue
        folder=${9%/*} topic=null partition=null topic_id=null leader=null epoch=null is_led=null is_end=null is_whole=null
        case $9 in */*) folder=${folder##*/} ;; *) folder='' ;; esac
        case $folder in '' | disk-[0-9] | disk-[0-9][0-9] | segments | state) ;; *)
            topic="\"${folder%-*}\"" partition=${folder##*-} is_led=false is_end=false
            epoch=$(known "$folder" "$own/after.epochs")
            leader=$(known "$folder" "$own/after.leaders")
            if [ "$leader" = "$broker" ] && [ "$leader" != null ] && [ "$epoch" != null ] &&
                [ "$leader" = "$(known "$folder" "$own/before.leaders")" ] &&
                [ "$epoch" = "$(known "$folder" "$own/before.epochs")" ]; then
                is_led=true
            fi
            is_whole=false
            if [ "$complete" = true ] && ! grep -qxF "$folder" "$own/unsettled"; then
                is_end=true
                grep -qxF "$folder" "$own/unlike-logs" "$own/unlike-state" || is_whole=true
            fi
            topic_id=$(topic_id_of "${9%/*}")
            ;;
        esac
        sum=$6
        [ "$sum" = null ] || sum="\"$sum\""
        printf '%s\n  {"path": "%s", "sequence": %s, "topic": %s, "topic_id": %s, "partition": %s, "leader_id": %s, "leader_epoch": %s, "is_leader_confirmed": %s, "is_end_confirmed": %s, "is_folder_whole": %s, "began_ms": %s, "ended_ms": %s, "began_monotonic_ms": %s, "first_offset": null, "end_offset": null, "size_bytes": %s, "sha256": %s}' \
            "$comma" "$9" "$1" "$topic" "$topic_id" "$partition" "$leader" "$epoch" $is_led $is_end $is_whole "$2" "$3" "$4" "$5" "$sum"
        comma=','
    done < "$journal"
}
deleted() { # what a stream holds beside the entries
    comma=''
    sort -u "$own/deleted" | while read -r place; do
        [ -z "$(last_line "$place")" ] || continue # there again, under the same name
        printf '%s"%s"' "$comma" "$place"
        comma=', '
    done
}
topic_id_of() { # FOLDER in the copy
    for dir in $dirs_by_number; do
        file=$dir/${1##*/}/partition.metadata
        [ -r "$file" ] || continue
        while read -r key value || [ -n "$key" ]; do # brokers end it without a newline
            case $key in topic_id:) case $value in '' | *[!A-Za-z0-9_-]*) ;; *) echo "\"$value\"" && return ;; esac ;; esac
        done < "$file"
    done
    echo null
}
compose() { # COMPLETE, to stdout
    complete=$1
    quoted=null
    [ "$cluster" = null ] || quoted="\"$cluster\""
    printf '{"format": "txn-capture", "version": 1, "made_by": "copy-kit", "clock": "broker", "cluster_id": %s, "broker_id": %s, "began_ms": %s, "ended_ms": %s, "is_complete": %s, "files": [' \
        "$quoted" "$broker" "$began_all" "$(now_ended)" "$complete"
    entries
    printf '\n], "deleted": [%s]}\n' "$(deleted)"
}
write_manifest() { # COMPLETE: of what is copied up to now
    for kept in after.epochs after.leaders unsettled unlike-logs unlike-state deleted; do : >> "$own/$kept"; done
    compose "$1" > "$own/$manifest" || return 1
    if [ "$mode" = tar ]; then
        tar_put $manifest "$(size_of "$own/$manifest")" < "$own/$manifest"
    else
        mv -f "$own/$manifest" "$to/$manifest"
    fi
}
finished() { # COMPLETE
    write_manifest "$1" && { [ "$mode" != tar ] || head -c 1024 /dev/zero; }
}
dirs_by_number=''
for dir in "$@"; do
    case $dir in *[' 	']*) say "$dir: no topic ids are written down of a folder with blanks in its name" ;; *) dirs_by_number="$dirs_by_number $dir" ;; esac
done
began_all=$(now_began)
if [ -s "$own/began" ]; then read -r began_all < "$own/began"; else echo "$began_all" > "$own/began"; fi

cut_short() {
    trap - INT TERM HUP
    say "cut short: the manifest says so, and proves nothing. Run it again to go on"
    [ "$mode" = tar ] || finished false
    [ "$mode" != tar ] || rm -rf "$own"
    exit 1
}
trap cut_short INT TERM HUP

if [ -n "$finish" ]; then
    [ -s "$own/ended" ] || fail "$to: no copy that was made to its end"
    ask after "$@"
    finished true || exit 1
    exit 0
fi
rm -f "$own/unsettled" "$own/ended"
[ -s "$own/before.epochs" ] || ask before "$@"
# A copy that ends without another word, by kill -9 or a lost connection, is not taken for a whole one.
write_manifest false

# Dumps: a call of the tool for many files, and an entry for each text.

dump_all() { # WHAT FOLDER WORDS DIR...
    dumped=$1 texts=$2 words=$3 call=0
    shift 3
    mkdir -p "$to/$texts"
    if [ "$dumped" = logs ]; then { list logs "$@" && list beside "$@"; } > "$own/list"; else list "$dumped" "$@" > "$own/list"; fi
    names='' count=0
    while IFS= read -r line || [ -n "$names" ]; do
        if [ -n "$line" ]; then
            case $line in *.log | *.snapshot) names="$names,${line#*	}" count=$((count + 1)) ;; esac
            [ $count -ge $FILES_A_CALL ] || continue
        fi
        call=$((call + 1)) text=$texts/$call.txt
        now_both
        # shellcheck disable=SC2086
        if ! $NICE "${bin}kafka-dump-log.sh" $words --files "${names#,}" < /dev/null > "$to/$texts/.copy-kit-part" 2> "$own/dump.err"; then
            say "kafka-dump-log.sh failed: $(head -n 1 "$own/dump.err")"
            return 1
        fi
        ended=$(now_ended) sum=null
        [ -z "$sums" ] || sum=$(sha256sum < "$to/$texts/.copy-kit-part") && sum=${sum%% *}
        [ -n "$sum" ] && [ "$sum" != - ] || sum=null
        printf '%s %s %s %s %s %s 0 0 %s\n' $sequence "$began" "$ended" "$monotonic" "$(size_of "$to/$texts/.copy-kit-part")" "$sum" "$text" >> "$journal"
        sequence=$((sequence + 1))
        mv -f "$to/$texts/.copy-kit-part" "$to/$text"
        names='' count=0
    done < "$own/list"
}
if [ "$mode" = dump ]; then
    : > "$journal"
    dump_all logs segments '' "$@" || bad=1
    [ $bad = 1 ] || sleep "$pause"
    [ $bad = 1 ] || dump_all state state --transaction-log-decoder "$@" || bad=1
    [ $bad = 0 ] && finished true && exit 0
    finished false
    exit 1
fi

# All of it.

if [ "$mode" = copy ]; then
    for what in logs beside state state-beside; do list $what "$@"; done > "$own/list"
    needed=$(($(total < "$own/list") - $(du -sk "$to" | { read -r kb _ && echo $((kb * 1024)); })))
    [ $((needed + reserve)) -le "$(free_bytes)" ] ||
        fail "$to: $needed bytes are to be copied, and $reserve are to stay free: too little room. Nothing was copied"
fi
copy_all() { # FRESH DIR...: partitions that are copied in any case
    fresh_logs=$1
    shift
    pass logs "$fresh_logs" "$@" && pass beside "$fresh_logs" "$@" && pass logs '' "$@" || return 1
    sleep "$pause"
    pass state all "$@" && pass state-beside all "$@" && pass state '' "$@"
}
if copy_all '' "$@"; then
    echo ended > "$own/ended"
    ask after "$@"
    changed=" $(changed_leaders | tr '\n' ' ')"
    if [ "$changed" != ' ' ]; then
        say "leaders changed:$changed; copying them and the state again"
        sleep "$pause"
        rm -f "$own/unsettled"
        ask before "$@"
        copy_all "$changed" "$@" || bad=1
        echo ended > "$own/ended"
        ask after "$@"
    fi
else
    bad=1
fi
if [ $bad = 0 ]; then
    if [ ! -s "$own/before.leaders" ] || [ ! -s "$own/after.leaders" ]; then
        say "no description of the topics: the manifest confirms no leader, and proves the order alone"
    fi
    finished true || bad=1
else
    finished false
fi
[ "$mode" != tar ] || rm -rf "$own"
exit $bad

#!/bin/bash
# Connections that are broken on one side only, and networks that are cut unevenly, while ranks are inside all_reduces:
#   half-open    a rank dies while its host is out of reach, so that no rank is told; when the host is back, its kernel
#                refuses what the others still send, and they go on long before GYRE_PEER_TIMEOUT
#   deaf, mute   nothing comes to a host any more, or nothing from it: it is the one that is left behind
#   triangle     two hosts cannot reach each other, and the third reaches both: the ranks that go on go on together, the
#                others are told, and no rank waits Needs root. Usage: uneven_test.sh CUT-TEST
set -eu
test=$1
HOSTS=3
. "$(dirname "$0")/hosts.sh"
keep=yes
whole=$scratch-whole

drop() { ip -n "$job-r" rule add pref 1 "$@" blackhole; }
from_host() { drop iif "port$1"; }
to_host() { drop to "10.77.$1.0/24"; }
mend() { while ip -n "$job-r" rule del pref 1 2>/dev/null; do :; done; }

fail()
{
    echo "failed: $*"
    tail -n 3 "$scratch"/*
    exit 1
}

count_of() { cat "$scratch"/* 2>/dev/null | grep -c "^$1" || true; }

await() # LINES WORDS SECONDS
{
    for ((i = 0; i < $3 * 10; i++)); do
        [ "$(count_of "$2")" != "$1" ] || return 0
        sleep 0.1
    done
    fail "not $1 times $2 after $3 s"
}

begin() # COUNTS PORT PEER-TIMEOUT [STALL-TIMEOUT]
{
    rm -f "$scratch"/* "$whole"
    size=0
    for count in $1; do size=$((size + count)); done
    export GYRE_PEER_TIMEOUT=$3 GYRE_STALL_TIMEOUT=${4:-20}
    GYRE_LOG=error start_job 10.77.1.1 "$2" "$1" "$test" "$whole" 2>"$scratch-log"
    await "$size" ready 30
}

# Those that went on say how many they are; the rest has been told.
check_groups() # LEAST MOST
{
    local rank status count went=0
    for ((rank = 0; rank < size; rank++)); do
        read -r status count _ < <(tail -n 1 "$scratch/$rank")
        [ "$status" != SUCCESS ] || went=$((went + 1))
    done
    [ $went -ge "$1" ] && [ $went -le "$2" ] || fail "$went ranks went on"
    for ((rank = 0; rank < size; rank++)); do
        read -r status count _ < <(tail -n 1 "$scratch/$rank")
        [[ "$status $count" =~ ^(SUCCESS $went|(PARTITIONED|EXCLUDED) 0)$ ]] || fail "rank $rank: $status $count of $went"
    done
    echo "$what: $went of $size ranks go on"
}

finish() # whether all end well
{
    mend
    touch "$whole"
    await $((2 * $1)) '\(SUCCESS\|PARTITIONED\|EXCLUDED\)' 30
    rm -f "$whole"
    end_job || [ "${2:-}" = died ] || fail "a rank failed"
}

what='half-open'
begin "2 1 1" 29621 100 100
from_host 3
to_host 3
kill -KILL $(ip netns pids "$job-3")
sleep 1
mend
await 3 SUCCESS 60 # the kernel repeats what it sent after as long a pause as the cut was, at most
for rank in 0 1 2; do grep -q '^SUCCESS 3 ' "$scratch/$rank" || fail "rank $rank"; done
echo "$what: 3 ranks go on"
finish 3 died

for what in deaf mute; do
    begin "2 1 1" $([ $what = deaf ] && echo 29622 || echo 29623) 3
    if [ $what = deaf ]; then to_host 3; else from_host 3; fi
    await 4 '\(SUCCESS\|PARTITIONED\|EXCLUDED\)' 60
    check_groups 3 3
    finish 4
done

what=triangle
begin "1 1 2" 29624 3
drop iif port1 to 10.77.2.0/24
drop iif port2 to 10.77.1.0/24
await 4 '\(SUCCESS\|PARTITIONED\|EXCLUDED\)' 60
check_groups 0 3
finish 4
rm -f "$whole" "$scratch-log"

#!/bin/bash
# A host is lost while ranks wait: every rank on either side is told of an unreachable rank of the other side, within
# GYRE_PEER_TIMEOUT. The loss is silent (the router drops what goes to and comes from that host: no rank gets an answer
# or an error) or a link that goes down. Ranks are inside collectives with data under way, or all links are idle because
# a rank computes. Needs root. Usage: loss_test.sh LOSS-TEST
set -eu
test=$1
HOSTS=3
timeout_ms=3000
slack_ms=5000 # keep-alive counts in whole seconds; besides what a sleeper comes late is allowed ten times
. "$(dirname "$0")/hosts.sh"
keep=yes

cut_silent() # HOST
{
    ip -n "$job-r" rule add pref 1 iif "port$1" blackhole
    ip -n "$job-r" rule add pref 1 to "10.77.$1.0/24" blackhole
}

cut_down() { ip -n "$job-r" link set "port$1" down; }

fail()
{
    echo "failed: $*"
    tail -n 3 "$scratch"/*
    exit 1
}

# RANK FIRST LAST: the rank says within the time that a rank from FIRST to LAST cannot be reached. LATE ranks may say so
# later.
check_rank()
{
    local status when text culprit took
    read -r status when text < <(tail -n 1 "$scratch/$1")
    [[ $text =~ rank\ ([0-9]+) ]] || fail "rank $1 names nobody"
    culprit=${BASH_REMATCH[1]}
    took=$((when - cut_at))
    [ "$status" = PEER_UNREACHABLE ] || fail "rank $1 got $status"
    [ "$culprit" -ge "$2" ] && [ "$culprit" -le "$3" ] || fail "rank $1 names rank $culprit, not one from $2 to $3"
    [ "$1" = "$late" ] || [ $took -le $((timeout_ms + slack_ms + 10 * $(worst_lateness))) ] || fail "rank $1 was told after $took ms"
    echo "  rank $1 after $took ms: $text"
}

# Ranks 0, 1 on host 1, rank 2 on host 2, ranks 3, 4 on host 3, which is lost.
lose() # HOW ADDRESS PORT WHAT
{
    local how=$1 address=$2 port=$3 what=$4 rank
    rm -f "$scratch"/* "$cut"
    late=none
    [ "$what" != idle ] || late=2
    export GYRE_PEER_TIMEOUT=$((timeout_ms / 1000))
    GYRE_LOG=error start_job "$address" "$port" "2 1 2" "$test" "$what" "$late" "$cut"
    for ((i = 0; i < 300; i++)); do
        [ "$(cat "$scratch"/* 2>/dev/null | grep -c ready)" != 5 ] || break
        sleep 0.1
    done
    [ $i -lt 300 ] || fail "the ranks did not get ready"
    sleep 0.5
    cut_at=$(date +%s%3N)
    "cut_$how" 3
    touch "$cut"
    end_job || fail "a rank failed"
    echo "$what, host 3 lost ($how), GYRE_PEER_TIMEOUT=$GYRE_PEER_TIMEOUT:"
    for rank in 0 1 2; do check_rank $rank 3 4; done
    for rank in 3 4; do check_rank $rank 0 2; done
}

mend()
{
    ip -n "$job-r" link set port3 up
    ip -n "$job-r" rule del pref 1 2>/dev/null || true
    ip -n "$job-r" rule del pref 1 2>/dev/null || true
}

cut=$scratch-cut
watch_lateness
lose silent 10.77.1.1 29601 inside
mend
lose silent 10.77.1.1 29602 idle
mend
lose down fd77:0:0:1::1 29603 inside
rm -f "$cut"

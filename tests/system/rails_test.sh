#!/bin/bash
# Hosts with several links each, and TCP over all of them (GYRE_INTERFACE): exact results, with and without encryption,
# every link with its part of the bytes; the same after a rank has died and the others have gone on. A link that is
# lost, to an interface that is down or in silence, is found within GYRE_PEER_TIMEOUT: all ranks are told of a rank at
# that link and of the interface; without the rank whose interface is down the others go on. Needs root. Usage:
# rails_test.sh RAILS-TEST
set -eu
test=$1
HOSTS=3
LINKS=3
timeout_ms=4000
# Keep-alive counts in whole seconds; a rank that waits for the overlay, too, takes twice as long. Besides, the time by
# which a sleeper comes late is allowed ten times.
slack_ms=3000
. "$(dirname "$0")/hosts.sh"
keep=yes
export GYRE_LOG=error GYRE_TRANSPORT=tcp GYRE_PEER_TIMEOUT=$((timeout_ms / 1000)) GYRE_STALL_TIMEOUT=20

fail()
{
    echo "failed: $*"
    tail -n 3 "$scratch"/*
    exit 1
}

sent() { ip -n "$job-$1" -s link show dev "$2" | awk '/TX:/ {getline; print $1}'; } # HOST DEVICE: so many bytes

await_ready() # RANKS
{
    for ((i = 0; i < 300; i++)); do
        [ "$(cat "$scratch"/* 2>/dev/null | grep -c ready)" != "$1" ] || return 0
        sleep 0.1
    done
    fail "the ranks did not get ready"
}

# DEVICES: each of them has carried its part since `before` was filled.
check_parts()
{
    local device bytes all=0 count=0
    for device in $1; do
        bytes=$(($(sent 1 "$device") - ${before[$device]}))
        all=$((all + bytes)) count=$((count + 1))
        parts[$device]=$bytes
    done
    [ "$all" -gt 1000000 ] || fail "$all bytes went over $1"
    for device in $1; do
        [ $((parts[$device] * count * 10)) -gt $((all * 7)) ] || fail "$device carried ${parts[$device]} of $all bytes"
    done
    echo "  of $all bytes: $(for device in $1; do echo -n "$device ${parts[$device]} "; done)"
}
declare -A before parts
note() { for device in net net1 net2; do before[$device]=$(sent 1 $device); done; }

exact() # INTEGRITY DEVICES PORT
{
    rm -f "$scratch"/*
    note
    GYRE_INTEGRITY=$1 GYRE_INTERFACE=${2// /,} start_job 10.77.1.1 "$3" "1 2 1" "$test" rounds
    end_job || fail "$1, $2"
    echo "$1, $2: every element right"
    check_parts "$2"
}

die() # PORT
{
    local rank failed=0
    rm -f "$scratch"/*
    note
    GYRE_INTERFACE=net,net1 start_job 10.77.1.1 "$1" "1 1 1" "$test" die 2
    for rank in 0 1 2; do wait "${pids[$rank]}" || failed=$((failed * 10 + rank)); done
    [ "$failed" = 2 ] || fail "ranks $failed failed"
    for rank in 0 1; do
        grep -q '^PEER_DEAD .*rank 2 died' "$scratch/$rank" || fail "rank $rank was not told of rank 2"
        grep -qx 'SUCCESS 2' "$scratch/$rank" || fail "rank $rank did not go on"
    done
    echo "rank 2 died; the others are exact over both links in the next epoch"
    check_parts "net net1"
}

cut_down() { ip -n "$job-3" link set net1 down; } # host 3 knows it is the one

cut_silent() # nothing passes, no rank is told
{
    ip -n "$job-r" rule add pref 1 iif port3.1 blackhole
    ip -n "$job-r" rule add pref 1 to 10.78.3.0/24 blackhole
}

# Rank 2, on host 3, has lost net1, and the others over net1 rank 2: all are told which link it is, and of one of
# CULPRITS.
lose() # HOW PORT CULPRITS
{
    local rank status when text culprit
    rm -f "$scratch"/*
    GYRE_INTERFACE=net,net1 start_job 10.77.1.1 "$2" "1 1 1" "$test" work
    await_ready 3
    local cut_at
    cut_at=$(date +%s%3N)
    "cut_$1"
    end_job || fail "a rank failed"
    for rank in 0 1 2; do
        read -r status when text < <(tail -n +2 "$scratch/$rank")
        [ "$status" = PEER_UNREACHABLE ] || fail "rank $rank got $status"
        [[ $text =~ rank\ ([0-9]+).*\ net1\ \(10.78 ]] || fail "rank $rank was not told which link: $text"
        culprit=${BASH_REMATCH[1]}
        [[ " $3 " == *" $culprit "* ]] || fail "rank $rank names rank $culprit: $text"
        [ $((when - cut_at)) -le $((timeout_ms + slack_ms + 10 * $(worst_lateness))) ] || fail "rank $rank was told after $((when - cut_at)) ms"
        echo "  $1, rank $rank after $((when - cut_at)) ms: $text"
    done
}

# Host 3 knows that its interface is down, and the others cannot reach it. Where it is silence, each end believes that
# it is the other. The first to report is believed, and the two others go on; where two report at once, both are out.
watch_lateness
exact off "net net1" 29701
exact off "net net1 net2" 29702
exact encrypt "net net1" 29703
die 29704
lose down 29705 "2"
for rank in 0 1; do grep -qx 'SUCCESS 2' "$scratch/$rank" || fail "rank $rank did not go on"; done
! grep -q SUCCESS "$scratch/2" || fail "rank 2 went on"
ip -n "$job-3" link set net1 up
ip -n "$job-3" route replace 10.78.0.0/16 via 10.78.3.254
lose silent 29706 "0 1 2"
echo "  of them $(grep -lx 'SUCCESS 2' "$scratch"/* | wc -l) went on"

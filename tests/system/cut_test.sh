#!/bin/bash
# The network is cut in two: the side with most ranks goes on, of equal halves the one with rank 0. The ranks of the
# other are told so (PARTITIONED, or EXCLUDED by the ranks that went on), also when they ask again with the network
# whole again. The cut is silent, or by a link that goes down. In three: 2:1:1 goes on where the two are just half with
# rank 0, and 1:1:2 nowhere. Needs root. Usage: cut_test.sh CUT-TEST
set -eu
test=$1
HOSTS=3
. "$(dirname "$0")/hosts.sh"
keep=yes

cut_silent() # HOST
{
    ip -n "$job-r" rule add pref 1 iif "port$1" blackhole
    ip -n "$job-r" rule add pref 1 to "10.77.$1.0/24" blackhole
}

cut_down() { ip -n "$job-r" link set "port$1" down; }

mend()
{
    ip -n "$job-r" link set port2 up
    while ip -n "$job-r" rule del pref 1 2>/dev/null; do :; done
}

fail()
{
    echo "failed: $*"
    tail -n 3 "$scratch"/*
    exit 1
}

count_of() { cat "$scratch"/* 2>/dev/null | grep -c "^$1" || true; }

# Until so many lines begin with one of the words.
await() # LINES WORDS
{
    for ((i = 0; i < 400; i++)); do
        [ "$(count_of "$2")" != "$1" ] || return 0
        sleep 0.1
    done
    fail "not $1 times $2"
}

# RANK WORDS COUNT: so ended its last attempt.
check_rank()
{
    local status count text
    read -r status count text < <(tail -n 1 "$scratch/$1")
    [[ $status =~ ^$2$ ]] && [ "$count" = "$3" ] || fail "rank $1: $status $count $text"
    [ "$status" != PARTITIONED ] || [[ $text == *"smaller side"* ]] || fail "rank $1: $text"
    [ "$status" != EXCLUDED ] || [[ $text == *"has been excluded"* ]] || fail "rank $1: $text"
}

# A:B ranks on host 1 and host 2; host GOES has those that go on. WHEN the network becomes whole again: late, when the
# other side has been told; early, when those that go on do so, and the other side may hear of it from them.
part() # HOW WHEN A B GOES PORT
{
    local how=$1 when=$2 a=$3 b=$4 goes=$5 port=$6 rank most least out=PARTITIONED
    most=$((goes == 1 ? a : b)) least=$((goes == 1 ? b : a))
    rm -f "$scratch"/* "$whole"
    export GYRE_PEER_TIMEOUT=2 GYRE_STALL_TIMEOUT=20
    GYRE_LOG=error start_job 10.77.1.1 "$port" "$a $b" "$test" "$whole" 2>"$scratch-log"
    await $((a + b)) ready
    "cut_$how" 2
    await "$most" SUCCESS
    [ "$when" = late ] || { mend && out='(PARTITIONED|EXCLUDED)'; }
    await "$least" '\(PARTITIONED\|EXCLUDED\)'
    for ((rank = 0; rank < a + b; rank++)); do
        if [ $((rank < a ? 1 : 2)) = "$goes" ]; then check_rank $rank SUCCESS "$most"; else check_rank $rank "$out" 0; fi
    done
    [ "$when" = early ] || mend
    sleep 0.5
    touch "$whole"
    await $((2 * most)) SUCCESS
    await $((2 * least)) '\(PARTITIONED\|EXCLUDED\)'
    for ((rank = 0; rank < a + b; rank++)); do
        if [ $((rank < a ? 1 : 2)) = "$goes" ]; then check_rank $rank SUCCESS "$most"; else check_rank $rank '(PARTITIONED|EXCLUDED)' 0; fi
    done
    rm -f "$whole"
    end_job || fail "a rank failed"
    echo "$a:$b, $how, whole again $when: the side of host $goes goes on, the other does not"
}

# Three hosts with so many ranks, each cut off from all others; those of host 1 go on, or none (GOES 0).
part_in_three() # "A B C" GOES PORT
{
    local counts=$1 goes=$2 port=$3 size=0 most=0 count rank
    for count in $counts; do size=$((size + count)); done
    [ "$goes" = 0 ] || most=${counts%% *}
    rm -f "$scratch"/* "$whole"
    export GYRE_PEER_TIMEOUT=2 GYRE_STALL_TIMEOUT=20
    GYRE_LOG=error start_job 10.77.1.1 "$port" "$counts" "$test" "$whole" 2>"$scratch-log"
    await "$size" ready
    cut_silent 2
    cut_silent 3
    await "$most" SUCCESS
    await $((size - most)) PARTITIONED
    mend
    sleep 0.5
    touch "$whole"
    await $((2 * most)) SUCCESS
    await $((2 * (size - most))) '\(PARTITIONED\|EXCLUDED\)'
    for ((rank = 0; rank < size; rank++)); do
        if [ "$rank" -lt "$most" ]; then check_rank $rank SUCCESS "$most"; else check_rank $rank '(PARTITIONED|EXCLUDED)' 0; fi
    done
    rm -f "$whole"
    end_job || fail "a rank failed"
    echo "${counts// /:}, silent: $most ranks go on"
}

whole=$scratch-whole
part silent late 2 2 1 29611
part silent late 3 1 1 29612
part silent late 1 3 2 29613
part silent early 2 2 1 29614
part silent early 1 3 2 29615
part down late 2 2 1 29616
part_in_three "2 1 1" 1 29617
part_in_three "1 1 2" 0 29618
rm -f "$whole" "$scratch-log"

#!/bin/bash
# Every program ends after the death of one of its ranks: ranks started without gyre-run, one killed with SIGKILL. Each
# survivor ends within LIMIT_MS with a failure and a message that names the dead rank.
# Usage: killed_tools_test.sh BUILD-FOLDER short|all
set -u
build=$1 form=$2 failures=0 tried=0
readonly LIMIT_MS=10000 # a second on an idle machine; tests run beside others. A program that hangs takes a minute
times=${3:-1}
[ "$form" = all ] && times=${3:-4}
work=$(mktemp -d)
started=()
finish()
{
    [ ${#started[@]} = 0 ] || kill -9 "${started[@]}" 2>/dev/null
    rm -rf "$work"
}
trap finish EXIT
exec 2>/dev/null # Bash reports each process that a signal has ended
RANDOM=$$

fail()
{
    echo "FAILED: $*"
    failures=$((failures + 1))
}

now_ms()
{
    local now=${EPOCHREALTIME/./}
    echo $((now / 1000))
}

# Neither gone nor a zombie.
lives()
{
    grep -q '^State:[[:space:]]*[RSDTtI]' "/proc/$1/status" 2>/dev/null
}

any_lives()
{
    local pid
    for pid; do
        lives "$pid" && return 0
    done
    return 1
}

# start RANKS COMMAND...: the ranks are in `started`, their output in $work/RANK.
start()
{
    local ranks=$1 port=$((20000 + RANDOM % 10000)) rank
    shift
    started=()
    for ((rank = 0; rank < ranks; rank++)); do
        env RANK=$rank WORLD_SIZE=$ranks LOCAL_RANK=$rank LOCAL_WORLD_SIZE=$ranks MASTER_ADDR=127.0.0.1 \
            MASTER_PORT=$port GYRE_SECRET=0123456789abcdef0123456789abcdef GYRE_MEET_TIMEOUT=20 OPENBLAS_NUM_THREADS=1 \
            "$@" >"$work/$rank" 2>&1 </dev/null &
        started+=($!)
    done
}

# killed NAME RANKS MILLISECONDS COMMAND...: the death comes after so long. The command runs for 14 s or more on an idle
# machine, so that a faster one does not end before the death.
killed()
{
    local name=$1 ranks=$2 wait_ms=$3 victim rank begun status
    shift 3
    tried=$((tried + 1))
    start "$ranks" "$@"
    sleep "$(printf '%d.%03d' $((wait_ms / 1000)) $((wait_ms % 1000)))"
    victim=$((RANDOM % ranks))
    for rank in "${!started[@]}"; do
        lives "${started[rank]}" || fail "$name: rank $rank had ended before the death: $(tail -n 2 "$work/$rank")"
    done
    kill -9 "${started[victim]}"
    begun=$(now_ms)
    while any_lives "${started[@]}" && [ $(($(now_ms) - begun)) -lt $LIMIT_MS ]; do
        sleep 0.01
    done
    for rank in "${!started[@]}"; do
        [ "$rank" = $victim ] && continue
        if lives "${started[rank]}"; then
            fail "$name: rank $rank runs $LIMIT_MS ms after the death of rank $victim: $(tail -n 2 "$work/$rank")"
            kill -9 "${started[rank]}"
            continue
        fi
        wait "${started[rank]}" 2>/dev/null
        status=$?
        [ $status != 0 ] || fail "$name: rank $rank ended with status 0 after the death of rank $victim"
        # Ranks that are meeting (gyre-footprint makes world after world) know only which process has left the meeting.
        grep -qE "rank $victim\b|died while the ranks were meeting" "$work/$rank" ||
            fail "$name: rank $rank (status $status) does not name rank $victim: $(tail -n 2 "$work/$rank")"
    done
    started=()
}

# arena: the memory that perf/choice/run and perf/compare/run give to the ranks of a launch.
arena()
{
    rm -f "$work/arena"
    truncate -s 64M "$work/arena"
}

perf=$build/perf/gyre-perf train=$build/tools/train/gyre-train
for ((time = 0; time < times; time++)); do
    at=$((350 + RANDOM % 400))
    killed perf 3 $at "$perf" all_reduce -b 8 -e 8 -n 3000000
    killed perf.unchecked 3 $at "$perf" all_gather -c 0 -b 1M -e 1M -n 1000000
    killed background 2 $at "$build/perf/costs/gyre-background" 64 1000
    killed stages 3 $at "$build/perf/train/perf-train-stages" 64,64,64,10 64 8 1000000
    [ "$form" = all ] || continue
    killed perf.tcp 3 $at env GYRE_TRANSPORT=tcp "$perf" all_reduce -b 8 -e 8 -n 3000000
    killed perf.streaming 3 $at "$perf" all_reduce --mode streaming -b 8 -e 8 -n 30000000
    killed pair 2 $at "$build/perf/gyre-pair" 20000000 8
    arena
    killed choice 3 $at "$build/perf/choice/gyre-choice" "$work/arena" 1000 all_reduce,broadcast,all_gather,reduce \
        8,16,32,64,128,256,512,1024,2048,4096,8192,16384,32768,65536 30000
    arena
    killed compare 3 $at "$build/perf/compare/compare-gyre" --arena "$work/arena" --store "$work" --ranks 3 \
        --collective all_reduce --budget 30000 --calls-max 4096
    killed straggle 3 $at "$build/perf/train/perf-train-straggle" 2 --epochs=100000 --steps=400000
    killed flight 3 $at "$build/perf/costs/gyre-flight" 256 1000
    killed ends 3 $at "$build/perf/costs/gyre-ends" 1000
    killed waiting 3 $at "$build/perf/costs/gyre-waiting" 250 1000
    killed footprint 3 $at "$build/perf/costs/gyre-footprint" 1000
    for strategy in sync average bmuf diloco zero compressed:by=topk stale async; do
        killed train.$strategy 3 $at "$train" --epochs=100000 --strategy=$strategy
    done
    killed train.verify 3 $at "$train" --verify-single --epochs=100000
    killed train.overlap 3 $at "$train" --measure-overlap --rounds=100000
done
[ $failures = 0 ] && echo "$tried deaths: every survivor ended and named the dead rank"
exit $((failures > 0))

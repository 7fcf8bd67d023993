#!/bin/bash
# A rank of a training run dies: within a second every other rank has named it, gyre-run too, and all have ended with a
# failure. Each rank dies once, in the middle of its steps. The time by which a sleeping process gets its core late is
# allowed ten times, since so many processes must run one after another. Usage: death_test.sh GYRE-RUN GYRE-TRAIN
set -u
run=$1 train=$2 failures=0 ranks=4
export OPENBLAS_NUM_THREADS=1
work=$(mktemp -d)
child=0
trap '[ $child = 0 ] || kill -KILL $child 2>/dev/null; rm -rf "$work"' EXIT

fail()
{
    echo "FAILED: $*"
    failures=$((failures + 1))
}

# The process of a rank: a child of gyre-run with that RANK.
pid_of()
{
    local pid
    for pid in $(pgrep -P $child); do
        if tr '\0' '\n' <"/proc/$pid/environ" 2>/dev/null | grep -qx "RANK=$1"; then
            echo "$pid"
            return
        fi
    done
}

# The control: on each core a process that only sleeps, 5 ms at a time; by how many ms the worst of these sleeps was too
# long stands in $work/late.CORE when it ends, which is after $work/over is there.
sleep_on() # CORE
{
    local before late worst=0 never
    taskset -cp "$1" $BASHPID >/dev/null 2>&1
    exec {never}<> <(:)
    until [ -e "$work/over" ]; do
        before=${EPOCHREALTIME/./}
        read -r -t 0.005 -u "$never"
        late=$(((${EPOCHREALTIME/./} - before) / 1000 - 5))
        [ $late -le $worst ] || worst=$late
    done
    echo $worst >"$work/late.$1"
}

for ((victim = 0; victim < ranks; victim++)); do
    rm -f "$work/metrics"
    "$run" -n $ranks "$train" --quiet --hidden 256 --epochs 1000000 --metrics "$work/metrics" >"$work/out" 2>&1 &
    child=$!
    for ((tries = 0; tries < 6000; tries++)); do # until two epochs are through
        [ "$(wc -l 2>/dev/null <"$work/metrics" || echo 0)" -ge 2 ] && break
        sleep 0.01
    done
    mapfile -t pids < <(pgrep -P $child)
    [ ${#pids[@]} = $ranks ] || fail "${#pids[@]} of $ranks ranks run: $(cat "$work/out")"
    pid=$(pid_of $victim)
    rm -f "$work/over" "$work"/late.*
    sleepers=()
    for ((core = 0; core < $(nproc); core++)); do
        sleep_on $core &
        sleepers+=($!)
    done
    start=${EPOCHREALTIME/./}
    kill -KILL "$pid"
    wait $child
    status=$?
    took=$(((${EPOCHREALTIME/./} - start) / 1000))
    child=0
    : >"$work/over"
    wait "${sleepers[@]}"
    late=$(sort -n "$work"/late.* | tail -n 1)
    [ $status != 0 ] || fail "gyre-run succeeds without rank $victim"
    [ $took -lt $((1000 + 10 * late)) ] || fail "$took ms until all had ended, while sleepers came at most $late ms late"
    for pid in "${pids[@]}"; do
        kill -0 "$pid" 2>/dev/null && fail "process $pid is left over"
    done
    for ((rank = 0; rank < ranks; rank++)); do
        [ $rank = $victim ] || grep -q "^gyre-train\[rank $rank\]: .*rank $victim died" "$work/out" ||
            fail "rank $rank does not name rank $victim: $(cat "$work/out")"
    done
    tail -n 1 "$work/out" | grep -q "^gyre-run: rank $victim .*killed by signal 9" || fail "gyre-run: $(cat "$work/out")"
    echo "rank $victim died: all ended after $took ms with status $status (sleepers: $late ms late)"
done
[ $failures = 0 ]

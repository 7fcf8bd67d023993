#!/bin/bash
# gyre-train --elastic under gyre-run --chaos: ranks are killed and stopped, connections cut, at random moments. The
# survivors always end with the bits of an undisturbed run with the same memberships. Before that: a rank that is killed
# is started again by gyre-run, and joins the others in the middle of their epochs. Usage: chaos_test.sh GYRE-RUN
# GYRE-TRAIN [SEED]...
set -u
run=$1 train=$2 failures=0
shift 2
export OPENBLAS_NUM_THREADS=1 GYRE_ORDER=canonical
work=$(mktemp -d)
child=0
trap '[ $child = 0 ] || kill -KILL $child 2>/dev/null; rm -rf "$work"' EXIT
what="--epochs 150 --hidden 256"

hash_of()
{
    sed -n 's/.*; parameters \([0-9a-f]\{16\}\)$/\1/p' "$1" | sort -u
}

# Until the metrics have so many memberships; the limit is only for what never happens.
await()
{
    local tries
    for ((tries = 0; tries < 1000; tries++)); do
        [ "$(grep -c '"membership"' "$work/metrics" 2>/dev/null)" = "$1" ] && return
        sleep 0.05
    done
}

"$run" --elastic -n 3 --min 2 "$train" --elastic --min 2 --epochs 1000000 --metrics "$work/metrics" >"$work/out" 2>&1 &
child=$!
await 1
victim=$(pgrep -P $child | tail -n 1)
kill -KILL "$victim"
await 3
kill -INT $child
wait $child
child=0
changes=$(sed -n 's/.*"membership".*"ranks":\([0-9]*\).*/\1/p' "$work/metrics" | tr '\n' ' ')
echo "killed and started again: $changes"
[ "$changes" = '3 2 3 ' ] && grep -q "pid $victim) was killed by signal 9 .*; it starts again in 0.25 s" "$work/out" || {
    echo "FAILED: memberships $changes"
    tail -n 20 "$work/out"
    failures=$((failures + 1))
}
rm -f "$work/metrics"

proved=0 # seeds whose job has lost ranks and come to its end
for seed in "$@"; do
    # shellcheck disable=SC2086
    timeout 250 "$run" --elastic --min 2 -n 4 --chaos "$seed,2" "$train" --elastic $what --membership "$work/log" \
        --metrics "$work/metrics" >"$work/out" 2>&1 || {
        # cut to pieces, or no rank that had the state is left
        if tail -n 1 "$work/out" | grep -q 'fewer than --min'; then
            echo "seed $seed: $(tail -n 1 "$work/out")"
            continue
        fi
        failures=$((failures + 1))
    }
    # shellcheck disable=SC2086
    timeout 250 "$run" -n 4 "$train" --replay-membership "$work/log" $what >"$work/replay" 2>&1 || cat "$work/replay"
    [ "$(grep -c ': kill rank .$' "$work/out")" = 0 ] || proved=$((proved + 1))
    echo "seed $seed: $(grep -c ': kill rank .$' "$work/out") killed; $(tr '\n' ',' <"$work/log") parameters $(hash_of "$work/out")"
    [ -n "$(hash_of "$work/out")" ] && [ "$(hash_of "$work/out")" = "$(hash_of "$work/replay")" ] || {
        echo "FAILED: the replay has $(hash_of "$work/replay")"
        cat "$work/out"
        failures=$((failures + 1))
    }
    [ "$(grep -c '"membership"' "$work/metrics")" -ge "$(wc -l <"$work/log")" ] || {
        echo "FAILED: memberships in metrics: $(cat "$work/metrics")"
        failures=$((failures + 1))
    }
done
[ $# = 0 ] || [ $proved -gt 0 ] || {
    echo "FAILED: of seeds $* none went through a death and came to its end: give others"
    failures=$((failures + 1))
}
[ $failures = 0 ]

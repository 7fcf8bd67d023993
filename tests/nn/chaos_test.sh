#!/bin/bash
# gyre-train --elastic under gyre-run --chaos: ranks are killed and stopped, connections cut, at random moments; whatever
# happens, those who are left end with the bits of an undisturbed run with the same memberships. Usage: chaos_test.sh GYRE-RUN
# GYRE-TRAIN [SEED]...
set -u
run=$1 train=$2 failures=0
shift 2
export OPENBLAS_NUM_THREADS=1 GYRE_ORDER=canonical
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
what="--epochs 30 --hidden 128"

hash_of()
{
    sed -n 's/.*; parameters \([0-9a-f]\{16\}\)$/\1/p' "$1" | sort -u
}

for seed in "$@"; do
    # shellcheck disable=SC2086
    timeout 90 "$run" --elastic --restarts 0 -n 4 --chaos "$seed,4" "$train" --elastic $what --membership "$work/log" \
        --metrics "$work/metrics" >"$work/out" 2>&1 || { failures=$((failures + 1)); cat "$work/out"; }
    # shellcheck disable=SC2086
    timeout 90 "$run" -n 4 "$train" --replay-membership "$work/log" $what >"$work/replay" 2>&1 || cat "$work/replay"
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
[ $failures = 0 ]

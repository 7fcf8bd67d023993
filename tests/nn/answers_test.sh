#!/bin/bash
# What gyre-train says after training. --predict: a line for each test sample, of which as many are right as the
# accuracy says, from a checkpoint without training too; an independent reader in Python opens the checkpoint and
# computes the same answers. --explain names what an answer rests on. --patience ends a run that gets no better, on all
# ranks, after a resume at the same epoch, with the best model that there was. The recommender trains alike on one rank
# and on three. Usage: answers_test.sh GYRE-RUN GYRE-TRAIN digits.csv.gz
set -u
run=$1 train=$2 digits=$3 failures=0 here=$(dirname "$0")
export OPENBLAS_NUM_THREADS=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail()
{
    echo "FAILED: $*"
    failures=$((failures + 1))
}

quiet() # COMMAND...: its output in $work/out; a failure is told
{
    timeout 60 "$@" >"$work/out" 2>&1 || fail "$*: $(cat "$work/out")"
}

quiet "$run" -n 2 "$train" --quiet --hidden 8 --epochs 6 --checkpoint "$work/model" --predict "$work/answers"
accuracy=$(sed -nE 's/^test accuracy ([0-9.]+) %.*/\1/p' "$work/out")
counted=$(awk -F, 'NR > 1 {n++; right += $3 == $4} END {printf "%.2f", 100 * right / n}' "$work/answers")
[ "$accuracy" = "$counted" ] || fail "an accuracy of $accuracy %, and $counted % of the predictions are right"
[ "$(wc -l <"$work/answers")" = 360 ] || fail "not 359 test samples: $(wc -l <"$work/answers") lines"
python3 "$here/checkpoint_reader.py" "$work/model" "$work/answers" "$digits" || fail "the reader in Python"
quiet "$train" --quiet --hidden 8 --epochs 6 --resume "$work/model" --predict "$work/again"
cmp "$work/answers" "$work/again" || fail "predictions from a checkpoint differ"
quiet "$train" --quiet --model autoencoder --epochs 1 --predict "$work/errors"
awk -F, 'NR == 1 {exit $0 != "sample,error"} {n++; if (!($2 > 0)) exit 1}' "$work/errors" || fail "errors of an autoencoder"
timeout 20 "$train" --quiet --epochs 1 --predict "$work/no/such" >"$work/out" 2>&1 && fail "a file that cannot be written"
grep -q "cannot write $work/no/such: No such file" "$work/out" || fail "no sentence: $(cat "$work/out")"

quiet "$train" --quiet --model recommender --data sessions --epochs 1 --explain 2
grep -A 1 -E '^sample 3201 recommends item [0-9]+ \([0-9]+ %\), item .*; next was [0-9]+$' "$work/out" |
    grep -qE '^  rests on (item [0-9]+ at place [0-9]+|the profile) [0-9]+ %, ' || fail "--explain: $(cat "$work/out")"
quiet "$run" -n 3 "$train" --quiet --dtype float64 --verify-single --model recommender --data sessions:4 --steps 12 --batch 61
difference=$(sed -nE 's/^verified against one rank: largest parameter difference ([^;]*);.*/\1/p' "$work/out")
awk "BEGIN {exit !(${difference:-1} <= 1e-9)}" || fail "the recommender on 3 ranks differs by ${difference:-?}: $(cat "$work/out")"

# At a rate that is too large the loss soon rises.
patient=(--hidden 16 --lr 0.5 --schedule constant --epochs 60 --patience 3)
steps() { sed -nE 's/.*; ([0-9]+) steps in .*/\1/p' "$work/out"; }
quiet "$run" -n 2 "$train" --quiet "${patient[@]}"
whole=$(steps)
[ "${whole:-0}" -gt 60 ] && [ "$whole" -lt 1380 ] || fail "--patience 3 ended after $whole of 1380 steps"
hash=$(sed -nE 's/.*parameters ([0-9a-f]{16})$/\1/p' "$work/out")
quiet "$run" -n 2 "$train" --quiet "${patient[@]}" --steps $((whole - 30)) --checkpoint "$work/half"
quiet "$run" -n 2 "$train" --quiet "${patient[@]}" --resume "$work/half"
[ "$(steps)" = "$whole" ] && grep -q "parameters $hash" "$work/out" || fail "resumed, --patience ends after $(steps) steps, not $whole"
# The model is the best there was: the lowest test loss of all epochs, also from the last checkpoint, which has nothing
# left to train.
quiet "$run" -n 2 "$train" --quiet "${patient[@]}" --metrics "$work/patient" --checkpoint "$work/best" --predict "$work/answers"
python3 - "$work/patient" <<'END' || fail "the model of --patience is not the best: $(cat "$work/patient")"
import json, sys
events = [json.loads(line) for line in open(sys.argv[1])]
losses, last = [e["test_loss"] for e in events if e["event"] == "epoch"], events[-1]["loss"]
sys.exit(not (last == min(losses) < losses[-1]))
END
quiet "$train" --quiet "${patient[@]}" --resume "$work/best" --predict "$work/again"
grep -q "parameters $hash" "$work/out" && cmp "$work/answers" "$work/again" || fail "the last checkpoint of --patience has another model"
# The histogram of staleness: of 46 steps, all but the last two are applied, two steps later; async counts what it mixed
# in.
quiet "$run" -n 2 "$train" --quiet --epochs 2 --staleness 2 --metrics "$work/metrics"
grep -qx 'staleness (steps: times)  2: 44' "$work/out" || fail "--staleness 2: $(cat "$work/out")"
tail -n 1 "$work/metrics" | grep -q '"staleness":\[0,0,44,0' || fail "metrics: $(tail -n 1 "$work/metrics")"
quiet "$run" -n 2 "$train" --quiet --epochs 2 --strategy async:wait=yes
grep -qx 'staleness (steps: times)  0: 92' "$work/out" || fail "async: $(cat "$work/out")"
# Threads within a rank: the same model within rounding, and again to the bit.
quiet "$run" -n 2 "$train" --quiet --dtype float64 --hidden 200 --batch 1437 --epochs 3 --threads 2x1 --verify-single
awk '/^verified/ {exit !($0 ~ /difference [0-9.]+e-1[0-9];/)}' "$work/out" || fail "--threads 2x1: $(cat "$work/out")"
timeout 20 "$train" --threads 2 >"$work/out" 2>&1 && fail "--threads 2 is not refused"
# --pipeline N is the strategy with so many stages; recomputation changes no bit; two pipelines of two stages share
# batches.
bits() { sed -nE 's/.*parameters ([0-9a-f]{16})$/\1/p' "$work/out"; }
quiet "$train" --quiet --epochs 1 --accumulate 4
alone=$(bits)
quiet "$run" -n 2 "$train" --quiet --epochs 1 --pipeline 2
[ -n "$alone" ] && [ "$(bits)" = "$alone" ] || fail "--pipeline 2 has other bits than one rank: $(bits) and $alone"
quiet "$run" -n 4 "$train" --quiet --epochs 1 --pipeline 2
four=$(bits)
quiet "$run" -n 4 "$train" --quiet --epochs 1 --pipeline 2 --recompute
[ -n "$four" ] && [ "$(bits)" = "$four" ] || fail "--recompute changes the bits: $(bits) and $four"
timeout 30 "$run" -n 4 "$train" --quiet --epochs 1 --pipeline 4 >"$work/out" 2>&1 && fail "three modules in four stages"
grep -q 'this model can be cut into 3 stages at most, not 4' "$work/out" || fail "--pipeline 4: $(cat "$work/out")"
# Another period counts from where a run goes on: with `every=1` no rank is apart at the next check.
quiet "$run" -n 2 "$train" --quiet --steps 10 --strategy average:every=1000 --checkpoint "$work/apart"
quiet "$run" -n 2 "$train" --quiet --steps 12 --strategy average:every=1 --resume "$work/apart" --checkpoint "$work/met"
python3 - "$work/met" <<'END' || fail "every=1 does not count in a run that goes on"
import json, struct, sys
raw = open(sys.argv[1], "rb").read()
size = struct.unpack("<Q", raw[:8])[0]
first, last = json.loads(raw[8:8 + size])["local.params"]["data_offsets"]
both = raw[8 + size + first:8 + size + last]
sys.exit(both[:len(both) // 2] != both[len(both) // 2:])
END
# Labels of csv that are texts are listed with the result; a label far above all others gets a warning.
for ((i = 0; i < 40; i++)); do echo "$((i % 7));$((i % 3));$( ((i % 2)) && echo '"a; b"' || echo c)"; done >"$work/names.csv"
quiet "$train" --quiet --epochs 1 --data "csv:$work/names.csv"
grep -qx 'classes: 0 = a; b, 1 = c' "$work/out" || fail "classes with names: $(cat "$work/out")"
for ((i = 0; i < 60; i++)); do echo "$i,$((i % 3)),$((i % 10))"; done >"$work/far.csv"
"$train" --quiet --epochs 1 --data "csv:$work/far.csv" 2>&1 >/dev/null | grep . && fail "labels from 0 to 9 get a warning"
echo 1,2,200 >>"$work/far.csv"
"$train" --quiet --epochs 1 --data "csv:$work/far.csv" 2>&1 >/dev/null |
    grep -q 'the labels have 11 values, and the largest is 200: the model gets 201 classes' || fail "no warning of the label 200"
[ $failures = 0 ]

#!/bin/bash
# Every model that gyre-train makes: it learns, several ranks train what one rank trains (dropout included, in fp64
# within rounding), and wrong combinations are refused. A progress thread changes no bit.
# Usage: models_test.sh GYRE-RUN GYRE-TRAIN
set -u
run=$1 train=$2 failures=0
export OPENBLAS_NUM_THREADS=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail()
{
    echo "FAILED: $*"
    failures=$((failures + 1))
}

# A value of the last line of a metrics file.
final()
{
    tail -n 1 "$work/metrics" | sed -E "s/.*\"$1\":([^,}]*).*/\1/"
}

# learns KEY TEST OPTIONS...: on one rank, after which the final KEY satisfies `awk KEY TEST`.
learns()
{
    local key=$1 test=$2
    shift 2
    timeout 60 "$train" --quiet --metrics "$work/metrics" "$@" >"$work/out" 2>&1 || fail "$*: $(cat "$work/out")"
    awk "BEGIN { exit !($(final "$key") $test) }" || fail "$*: $key is $(final "$key"), not $test"
    echo "$*: $key $(final "$key")"
}

# agrees RANKS OPTIONS...: a difference of parameters of at most 1e-9 after training in fp64.
agrees()
{
    local ranks=$1 difference
    shift
    timeout 60 "$run" -n "$ranks" "$train" --quiet --dtype float64 --verify-single "$@" >"$work/out" 2>&1 ||
        fail "$*: $(cat "$work/out")"
    difference=$(sed -nE 's/^verified against one rank: largest parameter difference ([^;]*);.*/\1/p' "$work/out")
    awk "BEGIN { exit !(${difference:-1} <= 1e-9) }" || fail "$* on $ranks ranks: difference ${difference:-none}: $(cat "$work/out")"
    echo "$* on $ranks ranks: difference $difference"
}

refused()
{
    local pattern=$1
    shift
    timeout 20 "$train" "$@" >"$work/out" 2>"$work/err"
    [ $? = 2 ] || fail "$*: not refused"
    [ "$(wc -l <"$work/err")" = 1 ] || fail "$*: not one line: $(cat "$work/err")"
    grep -q "$pattern" "$work/err" || fail "$*: $(cat "$work/err")"
}

# The summary's hash of the parameters after 4 ranks trained.
hash_of()
{
    timeout 60 "$run" -n 4 "$train" --quiet --epochs 2 --bucket 4k "$@" 2>"$work/err" | sed -nE 's/.*parameters ([0-9a-f]{16})$/\1/p'
}

# A text without surprises once its period is known.
for ((i = 0; i < 120; i++)); do
    printf 'the quick brown fox jumps over the lazy dog. '
done >"$work/text"
text=(--data "text:$work/text" --context 24 --batch 16 --lr 0.01)
lstm=(--model lstm "${text[@]}" --hidden 32 --width 8)
transformer=(--model transformer "${text[@]}" --width 16 --heads 2)

learns loss '< 0.03' --model autoencoder --epochs 15
learns accuracy '> 0.8' "${lstm[@]}" --epochs 10
learns accuracy '> 0.8' "${transformer[@]}" --blocks 1 --epochs 10

cnn=(--model cnn --channels 6,8 --hidden 16)
learns accuracy '> 0.97' --model cnn --channels 8,16 --hidden 32 --epochs 8 --lr 0.01
agrees 2 "${cnn[@]}" --epochs 2 --batch 61 --bucket 1k --clip 0.5
agrees 4 "${cnn[@]}" --steps 20 --batch 3 --dropout 0.2 --optimizer nesterov
agrees 3 --model autoencoder --hidden 20,5 --epochs 2 --batch 61 --bucket 1k
agrees 3 "${lstm[@]}" --hidden 12,10 --dropout 0.2 --epochs 2 --accumulate 2 --bucket 1k
agrees 4 "${transformer[@]}" --dropout 0.1 --epochs 2 --bucket 2k --clip 1

alone=$(hash_of) threaded=$(hash_of --progress-thread)
if [ -z "$alone" ] || [ "$alone" != "$threaded" ]; then
    fail "a progress thread changes the bits: '$alone' and '$threaded' $(cat "$work/err")"
fi
[ -s "$work/err" ] && fail "--progress-thread: $(cat "$work/err")"

alone=$("$train" --quiet --epochs 2 --deterministic | sed -nE 's/.*parameters ([0-9a-f]{16})$/\1/p') threaded=$(hash_of --deterministic)
if [ -z "$alone" ] || [ "$alone" != "$threaded" ]; then
    fail "--deterministic: '$alone' on 1 rank and '$threaded' on 4 $(cat "$work/err")"
fi
# Exchanges beside the next steps go by any algorithm that is asked for: the same training but for rounding.
loss_by()
{
    GYRE_ALGORITHM=$1 timeout 60 "$run" -n 4 "$train" --quiet --dtype float64 --epochs 2 --batch 61 --strategy "$2" --metrics "$work/metrics" \
        >"$work/out" 2>&1 || fail "$2 by $1: $(cat "$work/out")"
    final loss
}
for strategy in average:every=3,delay=2 bmuf:every=4 easgd:every=2,delay=1; do
    first=$(loss_by all_reduce:ring $strategy)
    for algorithm in binary_tree double_tree recursive_doubling direct_two_shot; do
        loss=$(loss_by all_reduce:$algorithm $strategy)
        awk "BEGIN { d = ${loss:-1} - ${first:-0}; exit !(d <= 1e-7 && d >= -1e-7) }" ||
            fail "$strategy by $algorithm: loss '$loss', by a ring '$first'"
    done
done

"$train" --strategy help | grep -q '^slowmo' || fail "--strategy help does not list slowmo"

"$train" --quiet "${lstm[@]}" --epochs 1 --sample 50 >"$work/out" 2>&1 || fail "sample: $(cat "$work/out")"
[ "$(tail -n +2 "$work/out" | wc -c)" = 51 ] || fail "not 50 bytes and a line's end: $(cat "$work/out")"

# What is written goes on from all that was written before, also where the context is full, or a single byte.
printf 'abcdefgh%.0s' {1..200} >"$work/letters"
for context in 1 5; do
    timeout 60 "$train" --quiet --model lstm --data "text:$work/letters" --context $context --hidden 16 --width 8 --lr 0.03 --batch 16 --epochs 15 \
        --sample 80 >"$work/out" 2>&1 || fail "sample: $(cat "$work/out")"
    [ "$(tail -n 1 "$work/out")" = "$(printf 'bcdefgha%.0s' {1..10})" ] || fail "written with a context of $context: $(tail -n 1 "$work/out")"
done

# Answers from a checkpoint use the statistics that ran along, and are those of the run that wrote it; data that do not
# know the shape of their images need --image.
timeout 60 "$run" -n 2 "$train" --quiet "${cnn[@]}" --epochs 2 --checkpoint "$work/cnn" --predict "$work/first" >"$work/out" 2>&1 ||
    fail "cnn on 2 ranks: $(cat "$work/out")"
timeout 60 "$train" --quiet "${cnn[@]}" --epochs 2 --resume "$work/cnn" --predict "$work/second" >"$work/out" 2>&1 ||
    fail "cnn from a checkpoint: $(cat "$work/out")"
cmp -s "$work/first" "$work/second" || fail "a checkpoint of cnn gives other answers"
zcat "$(dirname "$0")/../../nn/data/digits.csv.gz" >"$work/digits.csv"
timeout 60 "$train" --quiet "${cnn[@]}" --epochs 1 --data "csv:$work/digits.csv" --image 8x8x1 >"$work/out" 2>&1 || fail "--image: $(cat "$work/out")"
for wrong in "--data csv:$work/digits.csv" "--data csv:$work/digits.csv --image 8x4x1" "--strategy compressed"; do
    timeout 60 "$train" --quiet "${cnn[@]}" --epochs 1 $wrong >"$work/out" 2>&1 && fail "cnn $wrong is not refused"
    grep -qE 'give --image HxWxC|--image 8x4x1 has 32 values|strategy compressed: a batch norm' "$work/out" || fail "cnn $wrong: $(cat "$work/out")"
done

refused 'channels is no option of --model mlp' --channels 4
refused 'image is no option of --model mlp' --image 8x8x1
refused "image '8x8' is no HxWxC" --model cnn --image 8x8
refused "image '8x0x1' is no HxWxC" --model cnn --image 8x0x1
refused "image '8x8x1x' is no HxWxC" --model cnn --image 8x8x1x
refused 'width is no option of --model cnn' --model cnn --width 3
refused 'model lstm needs --data text:FILE' --model lstm
refused 'model mlp does not read text' --data "text:$work/text"
refused 'model recommender needs --data sessions' --model recommender
refused 'model mlp does not read sessions' --data sessions
refused 'explain is for --model recommender' --explain 2
refused 'blocks is no option of --model lstm' "${lstm[@]}" --blocks 2
refused 'hidden is no option of --model transformer' "${transformer[@]}" --hidden 3
refused 'dropout is no option of --model mlp' --dropout 0.1
refused "schedule: \"0.5:0.1\" is no number" --schedule step:10:0.5:0.1
refused "schedule: \"\" is no number" --schedule step:10:
refused "schedule wants a whole number from 1 to 2147483647, not ''" --schedule step:
refused 'schedule: only step takes numbers' --schedule constant:
refused 'schedule' --schedule :step
refused 'heads 5 do not divide --width 16' "${transformer[@]}" --heads 5
refused 'sample writes text' --sample 5
refused "hidden wants a whole number from 1 to 1048576, not ''" --hidden 5,,6
refused "hidden wants a whole number from 1 to 1048576, not ''" --hidden ''
refused 'momentum 1 is not below 1' --optimizer nesterov --momentum 1
refused 'momentum is of --optimizer momentum or nesterov' --momentum 0.9
refused 'checkpoint-every goes with --checkpoint FILE' --checkpoint-every 3
refused 'deterministic and --strategy are two ways of sharing the work' --deterministic --strategy zero
refused 'strategy and --staleness are two ways of sharing the work' --strategy async --staleness 2
refused 'pipeline is a strategy of its own' --deterministic --pipeline 2
refused 'there is none named "averages"' --strategy averages
refused 'strategy average: "often" is none of its settings, which are every, delay, from, adaptive' --strategy average:often=3
refused 'strategy sync: "often" is none of its settings, which are ahead' --strategy sync:often=3
refused 'strategy zero: "often" is none of its settings: it has none' --strategy zero:often=3
refused 'strategy bmuf: "eta=2" is out of bounds: a number from -1 to 0.999' --strategy bmuf:every=3,eta=2
refused 'strategy average: "every=2.5" is out of bounds: a whole number from 0 to 1e+09' --strategy average:every=2.5
refused 'strategy bmuf: "momentum=2" is out of bounds: one of classic, nesterov' --strategy bmuf:momentum=2
[ $failures = 0 ]

#!/bin/bash
# Checkpoints of gyre-train as its users meet them: a run cut in two ends as the uninterrupted one, bit for bit; a run
# that is killed again and again, at random moments, always finds a checkpoint that loads; a file that does not fit is
# refused in one line; on a full disk the old one stays, and what could not be written is said in one line.
# Usage: checkpoint_test.sh GYRE-RUN GYRE-TRAIN resume|kills|wrong|full
set -u
run=$1 train=$2 failures=0
export OPENBLAS_NUM_THREADS=1 # the order of a matrix product's sums goes with the number of threads
work=$(mktemp -d)
child=0
trap '[ $child = 0 ] || kill -KILL $child 2>/dev/null; rm -rf "$work"' EXIT

fail()
{
    echo "FAILED: $*"
    failures=$((failures + 1))
}

# What must be equal of two metrics files: everything but times and what was measured in time.
lines()
{
    grep -E '"event":"(epoch|final)"' "$1" |
        sed -E 's/"(seconds|samples_per_second|hidden_fraction)":[^,}]*,?//g'
}

# resumed LINES OPTIONS...: 4 ranks, batches of 100 of 1,437 samples, so step 20 lies inside the second epoch; of the
# metrics the last LINES, the epochs that the second half ended and the final one, must be equal.
resumed()
{
    local lines=$1
    shift
    local common=(-n 4 "$train" --quiet --rounds 1 --epochs 4 --batch 100 --bucket 4k "$@")
    rm -f "$work/half"
    timeout 60 "$run" "${common[@]}" --metrics "$work/whole.jsonl" >"$work/out" 2>&1 || fail "$* whole: $(cat "$work/out")"
    timeout 60 "$run" "${common[@]}" --steps 20 --checkpoint "$work/half" >"$work/out" 2>&1 || fail "$* half: $(cat "$work/out")"
    timeout 60 "$run" "${common[@]}" --resume "$work/half" --metrics "$work/rest.jsonl" >"$work/out" 2>&1 ||
        fail "$* rest: $(cat "$work/out")"
    lines "$work/whole.jsonl" | tail -n "$lines" >"$work/whole"
    lines "$work/rest.jsonl" >"$work/rest"
    [ "$(wc -l <"$work/rest")" = "$lines" ] || fail "$*: not $lines lines: $(cat "$work/rest")"
    cmp "$work/whole" "$work/rest" || fail "$*: the resumed run differs: $(diff "$work/whole" "$work/rest")"
    echo "resumed $*: $(tail -n 1 "$work/rest")"
}

resume()
{
    resumed 4 --optimizer adam --clip 1
    resumed 4 --optimizer nesterov --schedule step:7:0.5 --warmup 25 --dtype float64
    resumed 4 --optimizer adamw --accumulate 3
    # 281 samples of 16 bytes: 3 steps per epoch, and step 20 lies inside the seventh
    seq 2000 | head -c 5000 >"$work/text"
    resumed 5 --model transformer --data "text:$work/text" --context 16 --width 8 --dropout 0.2 --epochs 10
    resumed 5 --model lstm --data "text:$work/text" --context 16 --hidden 12,8 --dropout 0.2 --epochs 10
    resumed 4 --model autoencoder --hidden 16,4
}

# Waits until the checkpoint is another file than `before` (an inode), at most 60 s.
await_checkpoint()
{
    local before=$1 tries
    for ((tries = 0; tries < 6000; tries++)); do
        [ "$(stat -c %i "$work/run" 2>/dev/null)" != "$before" ] && [ -e "$work/run" ] && return 0
        kill -0 $child 2>/dev/null || return 0
        sleep 0.01
    done
    return 1
}

# killed RANKS KILLS: SIGKILL of rank 0, the writer, within 30 ms of its first checkpoint, KILLS times; each time the
# run goes on from what is there, and at last ends with the bits of an undisturbed run. A checkpoint is written after
# each step, so many kills fall into the writing.
killed()
{
    local ranks=$1 kills=$2 count victim before
    local options=(--quiet --rounds 1 --epochs 8 --batch 100 --hidden 1024 --optimizer momentum)
    local command=("$train")
    [ "$ranks" = 1 ] || command=("$run" -n "$ranks" "$train")
    rm -f "$work/run" "$work/run.new"
    timeout 120 "${command[@]}" "${options[@]}" --metrics "$work/whole.jsonl" >"$work/out" 2>&1 || fail "$(cat "$work/out")"
    for ((count = 0; count < kills; count++)); do
        before=$(stat -c %i "$work/run" 2>/dev/null || echo none)
        local from=()
        [ -e "$work/run" ] && from=(--resume "$work/run")
        "${command[@]}" "${options[@]}" "${from[@]}" --checkpoint "$work/run" --checkpoint-every 1 >"$work/out" 2>&1 &
        child=$!
        await_checkpoint "$before" || fail "no checkpoint in 60 s"
        sleep "0.0$((RANDOM % 30 + 10))"
        victim=$child
        [ "$ranks" = 1 ] || victim=$(pgrep -o -P $child)
        [ -z "$victim" ] || kill -KILL "$victim" 2>/dev/null
        wait $child 2>/dev/null
        child=0
        grep -Eq 'damaged|cut short|checkpoint of gyre|not fit' "$work/out" && fail "kill $count: $(cat "$work/out")"
    done
    timeout 120 "${command[@]}" "${options[@]}" --resume "$work/run" --metrics "$work/rest.jsonl" >"$work/out" 2>&1 ||
        fail "after $kills kills: $(cat "$work/out")"
    [ "$(find "$work" -name 'run.*' | wc -l)" -le 1 ] || fail "files pile up: $(ls "$work")"
    lines "$work/whole.jsonl" | tail -n 1 >"$work/whole"
    lines "$work/rest.jsonl" | tail -n 1 >"$work/rest"
    cmp "$work/whole" "$work/rest" || fail "$ranks ranks: $(diff "$work/whole" "$work/rest")"
    echo "$ranks ranks, $kills kills: $(cat "$work/rest")"
}

# Killed for certain while it writes: a limit on the size of files ends the process (SIGXFSZ) in the middle of the new
# file. The old one stays as it is, byte for byte.
cut_off()
{
    local options=(--quiet --epochs 1 --hidden 256 --checkpoint "$work/cut" --checkpoint-every 3) size kib status cuts=0
    timeout 30 "$train" "${options[@]}" --steps 3 >"$work/out" 2>&1 || fail "$(cat "$work/out")"
    size=$(stat -c %s "$work/cut")
    cp "$work/cut" "$work/kept"
    for ((kib = 0; kib * 1024 < size; kib += 1 + size / 1024 / 12)); do
        { # the shell's own word about the signal is not wanted
            (ulimit -c 0 && ulimit -f $kib && exec timeout 30 "$train" "${options[@]}" --resume "$work/kept") >"$work/out" 2>&1
            status=$?
        } 2>/dev/null
        [ $status = 153 ] || fail "status $status, not by SIGXFSZ, with files of at most $kib KiB: $(cat "$work/out")"
        cmp "$work/cut" "$work/kept" || fail "a writer that ended after $kib KiB changed the checkpoint"
        cuts=$((cuts + 1))
    done
    timeout 30 "$train" "${options[@]}" --resume "$work/cut" >"$work/out" 2>&1 || fail "after the cuts: $(cat "$work/out")"
    [ ! -e "$work/cut.new" ] || fail "cut.new is left over after a whole write"
    echo "$cuts writers cut off: the checkpoint stays"
}

# One kill for each strategy that there is, of any of three ranks, some steps after the first checkpoint: an exchange
# may be under way, and what is each rank's own is in the file. async keeps step here, since otherwise its bits depend
# on time.
killed_strategies()
{
    local options=(--quiet --hidden 32 --epochs 6 --batch 100) name strategy whole rest victim count=0 dead=0
    # With settings under which more is under way than with the defaults.
    local -A how=([compressed]=compressed:by=topk [average]=average:every=4,delay=2 [bmuf]=bmuf:every=3 [slowmo]=slowmo:every=3
        [diloco]=diloco:every=4,delay=1 [easgd]=easgd:every=2 [admm]=admm:every=3 [stale]=stale:steps=3 [async]=async:wait=yes)
    for name in $("$train" --strategy help | sed -nE 's/^([a-z]+)\t.*/\1/p'); do
        strategy=${how[$name]:-$name}
        count=$((count + 1))
        rm -f "$work/run" "$work/run.new"
        timeout 60 "$run" -n 3 "$train" "${options[@]}" --strategy "$strategy" >"$work/out" 2>&1 || fail "$strategy: $(cat "$work/out")"
        whole=$(sed -nE 's/.*parameters ([0-9a-f]{16})$/\1/p' "$work/out")
        "$run" -n 3 "$train" "${options[@]}" --strategy "$strategy" --checkpoint "$work/run" --checkpoint-every 1 >"$work/out" 2>&1 &
        child=$!
        await_checkpoint none || fail "$strategy: no checkpoint in 60 s"
        sleep "0.0$((RANDOM % 90 + 10))"
        victim=$(pgrep -P $child | sed -n $((RANDOM % 3 + 1))p)
        [ -z "$victim" ] || kill -KILL "$victim" 2>/dev/null
        wait $child 2>/dev/null || dead=$((dead + 1))
        child=0
        timeout 60 "$run" -n 3 "$train" "${options[@]}" --strategy "$strategy" --resume "$work/run" >"$work/out" 2>&1 ||
            fail "$strategy after a kill: $(cat "$work/out")"
        rest=$(sed -nE 's/.*parameters ([0-9a-f]{16})$/\1/p' "$work/out")
        [ -n "$whole" ] && [ "$rest" = "$whole" ] || fail "$strategy: $rest after a kill, and not $whole"
    done
    [ $count -ge 13 ] || fail "$count strategies, and not all"
    echo "$count strategies, $dead of them killed before their end: the bits of undisturbed runs"
}

kills()
{
    cut_off
    killed 1 25
    killed 4 6
    killed_strategies
}

# refused PATTERN OPTIONS...: status 1 and one line on stderr that matches.
refused()
{
    local pattern=$1 status
    shift
    timeout 20 "$train" --quiet --hidden 32 --epochs 1 "$@" >"$work/out" 2>"$work/err"
    status=$?
    [ $status = 1 ] || fail "$*: status $status"
    [ "$(wc -l <"$work/err")" = 1 ] || fail "$*: not one line: $(cat "$work/err")"
    grep -Eq "$pattern" "$work/err" || fail "$*: '$(cat "$work/err")' does not match '$pattern'"
}

# byte FILE OFFSET OCTAL: changes one byte.
byte()
{
    # shellcheck disable=SC2059 # the octal escape is the format
    printf "\\$3" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

# alone RANK PATTERN OPTIONS...: of 3 ranks one has other options, with which it fails before training: it says why, and
# each of the others says the same with its rank.
alone()
{
    local rank=$1 pattern=$2 status
    shift 2
    # shellcheck disable=SC2016 # expanded by each rank
    timeout 20 "$run" -n 3 bash -c '[ "$RANK" = "$1" ] && more=("${@:3}") || more=(); exec "$2" --quiet --epochs 1 "${more[@]}"' \
        - "$rank" "$train" "$@" >"$work/out" 2>"$work/err"
    status=$?
    [ $status = 1 ] || fail "rank $rank alone with $*: status $status"
    [ "$(grep -Ec "rank $rank\]: $pattern" "$work/err")" = 1 ] && [ "$(grep -Ec "rank [0-2]\]: rank $rank: $pattern" "$work/err")" = 2 ] ||
        fail "rank $rank alone with $*: $(cat "$work/err")"
}

wrong()
{
    alone 1 'cannot open .*/nothing: No such file' --data "csv:$work/nothing"
    alone 0 'cannot create .*/no/such: No such file' --metrics "$work/no/such"
    alone 2 'cannot open .*/nothing: No such file' --data "npy:$work/nothing"
    local size cut option
    "$train" --quiet --hidden 32 --epochs 1 --checkpoint "$work/good" >/dev/null || fail "no checkpoint to begin with"
    size=$(stat -c %s "$work/good")
    refused 'does not fit this model: the tensor 0.weight has another type or shape, 32 × 64 float32 there and 64 × 64 float32 here' --resume "$work/good" --hidden 64
    refused 'does not fit this model: the tensor 0.weight has another type or shape' --resume "$work/good" --dtype float64
    refused 'does not fit this model: the tensor 2.weight is missing' --resume "$work/good" --hidden 32,10
    refused 'was written with the optimiser adam, and this run uses sgd' --resume "$work/good" --optimizer sgd
    # What the file has and the run has no place for is not left out without a word: a layer, an exchange that was under
    # way.
    local sgd=(--optimizer sgd) late=(--strategy "average:every=4,delay=2")
    "$train" --quiet --hidden 10,10 --epochs 1 "${sgd[@]}" --checkpoint "$work/deep" >/dev/null || fail "no checkpoint of two layers"
    refused 'does not fit this model: it has 2.weight, for which there is no place' --resume "$work/deep" --hidden 10 "${sgd[@]}"
    "$train" --quiet --hidden 32 --steps 5 "${late[@]}" --checkpoint "$work/late" >/dev/null || fail "no checkpoint with an exchange"
    refused 'does not fit this run: it has exchange.mean, for which there is no place' --resume "$work/late" --strategy average:every=4
    "$train" --quiet --hidden 32 --epochs 1 --resume "$work/late" "${late[@]}" >/dev/null || fail "an exchange under way does not go on"
    # The classes of a text are its bytes: those of another text are others, though there may be as many.
    seq 300 >"$work/text" && tr 0-9 a-j <"$work/text" >"$work/other"
    local lstm=(--model lstm --context 16)
    "$train" --quiet --hidden 32 --epochs 1 "${lstm[@]}" --data "text:$work/text" --checkpoint "$work/read" >/dev/null || fail "no checkpoint of text"
    refused 'read was trained on text with other bytes than this one: 11 there and 11 here' "${lstm[@]}" --data "text:$work/other" --resume "$work/read"
    for cut in 0 5; do
        head -c $cut "$work/good" >"$work/bad"
        refused "bad is no safetensors file: it has $cut bytes" --resume "$work/bad"
    done
    head -c 100 "$work/good" >"$work/bad"
    refused 'cut short' --resume "$work/bad"
    for cut in $((size / 2)) $((size - 1)); do
        head -c $cut "$work/good" >"$work/bad"
        refused "bad is damaged or cut short: .* bytes" --resume "$work/bad"
    done
    cp "$work/good" "$work/bad" && byte "$work/bad" 5 001
    refused 'no safetensors file, or cut short: a header of [0-9]* bytes in' --resume "$work/bad"
    cp "$work/good" "$work/bad" && byte "$work/bad" 0 001
    refused 'bad is damaged' --resume "$work/bad"
    cp "$work/good" "$work/bad" && byte "$work/bad" 8 133
    refused 'its header is no JSON object' --resume "$work/bad"
    LC_ALL=C sed 's/gyre-nn 1/gyre-xx 1/' "$work/good" >"$work/bad"
    refused 'is no checkpoint of gyre: its format is "gyre-xx 1"' --resume "$work/bad"
    refused 'cannot open .*/none: No such file' --resume "$work/none"
    refused 'cannot read .*: Is a directory' --resume "$work"
    refused 'cannot create /proc/none.new|cannot write the checkpoint /proc/none' --checkpoint /proc/none
    # A run that diverges ends with an error message, and leaves the checkpoint of before as it is; with patience it
    # comes to its best model.
    local wild=(--optimizer momentum --lr 1e30 --schedule constant)
    "$train" --quiet --hidden 32 --steps 2 "${wild[@]}" --lr 0.01 --checkpoint "$work/wild" >/dev/null || fail "no checkpoint to diverge from"
    cp "$work/wild" "$work/kept"
    refused 'after step 23 the parameters are no finite numbers any more, and .*wild is left as it is' "${wild[@]}" --resume "$work/wild" --checkpoint "$work/wild"
    cmp "$work/wild" "$work/kept" || fail "a run that diverged changed the checkpoint"
    refused 'after step 69 the loss is no finite number any more: take a smaller learning rate' "${wild[@]}" --epochs 3
    "$train" --quiet --hidden 32 --epochs 6 --optimizer momentum --lr 0.01 --schedule step:23:1e60 --patience 2 --checkpoint "$work/patient" >"$work/out" 2>&1 &&
        grep -q '^test accuracy [2-9].*, loss [0-9.]*; 69 steps' "$work/out" || fail "diverged with patience: $(cat "$work/out")"
    # What cannot be written at the end is said before training begins.
    for option in checkpoint predict trace; do
        refused "cannot write .*$work/no/such: No such file" "--$option" "$work/no/such" --epochs 1000000 --batch 1
        refused "cannot write .*$work: Is a directory" "--$option" "$work" --epochs 1000000 --batch 1
    done
    # A new file takes the place of the old one, and must not take that of a device (root may rename over /dev/null).
    mkfifo "$work/pipe" || fail "no pipe to try with"
    refused 'cannot write the checkpoint .*pipe: it is a device or a pipe' --checkpoint "$work/pipe" --epochs 1000000 --batch 1
    [ -p "$work/pipe" ] || fail "a checkpoint took the place of a pipe"
    head -c 100 "$work/good" >"$work/bad"
    timeout 20 "$run" -n 4 "$train" --quiet --hidden 32 --resume "$work/bad" 2>"$work/err" >/dev/null
    [ $? = 1 ] || fail "4 ranks go on from a damaged file"
    grep -q 'rank 0\]: .*cut short' "$work/err" || fail "rank 0 does not say why: $(cat "$work/err")"
    [ "$(grep -c 'rank [1-3]\]: rank 0: ' "$work/err")" = 3 ] || fail "not every rank: $(cat "$work/err")"
}

# A disk of its own: mounted by root, or in a namespace in which this user is root. outputs DISK: what is written at a
# run's end on a disk that is full: status 1 and an error message, and the file of before stays. The same on a device
# that is full; and where the writer is killed (SIGXFSZ) in the middle of the new file.
outputs()
{
    local disk=$1 option status
    for option in trace predict membership; do
        local more=()
        [ $option = membership ] && more=(--elastic)
        printf 'before\n' >"$work/disk.$option"
        rm -f "$disk/filler"
        cp "$work/disk.$option" "$disk/$option"
        dd if=/dev/zero of="$disk/filler" bs=1k count=512 2>/dev/null
        refused "cannot write .*disk/$option: No space left" "${more[@]}" --$option "$disk/$option"
        cmp "$disk/$option" "$work/disk.$option" || fail "a full disk changed the file of --$option"
        [ ! -e "$disk/$option.new" ] || fail "--$option leaves $option.new"
        refused 'cannot write .*/dev/full: No space left' "${more[@]}" --$option /dev/full
        [ $option = membership ] && continue # one short line
        { # the shell's own word about the signal is not wanted
            (ulimit -c 0 && ulimit -f 1 && exec timeout 20 "$train" --quiet --epochs 1 --$option "$work/disk.$option") >"$work/out" 2>&1
            status=$?
        } 2>/dev/null
        [ $status = 153 ] || fail "--$option: status $status, not by SIGXFSZ: $(cat "$work/out")"
        [ "$(cat "$work/disk.$option")" = before ] || fail "a writer that was killed changed the file of --$option"
        timeout 20 "$train" --quiet --epochs 1 --$option "$work/disk.$option" >"$work/out" 2>&1 || fail "--$option after a kill: $(cat "$work/out")"
        [ "$(wc -l <"$work/disk.$option")" -gt 10 ] && [ ! -e "$work/disk.$option.new" ] || fail "--$option after a kill: no whole file"
    done
}

# What rank 0 alone cannot write at the end is said by each rank: others would go on, and wait for it.
traced()
{
    timeout 20 "$run" -n 3 "$train" --quiet --epochs 1 --rounds 1 --trace /dev/full --metrics "$work/traced" >"$work/out" 2>"$work/err"
    [ $? = 1 ] || fail "3 ranks go on without their trace"
    [ "$(grep -c 'rank [12]\]: rank 0: cannot write the trace /dev/full: No space left' "$work/err")" = 2 ] ||
        fail "not every rank knows of the trace: $(cat "$work/err")"
}

# A launcher of an elastic run tolerates the failure of one rank, but not a file that was lost.
lost()
{
    timeout 20 "$run" --elastic --min 2 -n 2 "$train" --elastic --min 2 --quiet --epochs 1 --membership /dev/full >"$work/out" 2>"$work/err"
    [ $? = 1 ] && grep -q 'rank 0\]: cannot write the membership to /dev/full: No space left' "$work/err" &&
        grep -q 'rank 1\]: rank 0: cannot write the membership' "$work/err" || fail "an elastic run without its membership: $(cat "$work/err")"
}

full()
{
    if ! mkdir "$work/disk" || ! mount -t tmpfs -o size=256k none "$work/disk" 2>/dev/null; then
        trap - EXIT
        rm -rf "$work"
        [ -z "${GYRE_TEST_OWN_NAMESPACE:-}" ] && unshare --user --map-root-user --mount true 2>/dev/null &&
            GYRE_TEST_OWN_NAMESPACE=1 exec unshare --user --map-root-user --mount bash "$0" "$run" "$train" full
        echo "skipped: a disk to fill needs root, or user namespaces"
        [ "${GYRE_TEST_STRICT:-0}" = 1 ] && exit 1
        exit 77
    fi
    trap 'umount "$work/disk"; rm -rf "$work"' EXIT
    local disk=$work/disk
    "$train" --quiet --hidden 32 --epochs 1 --checkpoint "$disk/run" >/dev/null || fail "no checkpoint to begin with"
    cp "$disk/run" "$work/kept"
    dd if=/dev/zero of="$disk/filler" bs=1k count=512 2>/dev/null
    refused 'cannot write .*disk/run: No space left' --checkpoint "$disk/run" --seed 2
    cmp "$disk/run" "$work/kept" || fail "a full disk changed the checkpoint"
    refused 'cannot write the metrics to .*disk/metrics: No space left' --metrics "$disk/metrics"
    outputs "$disk"
    traced
    lost
    timeout 20 "$run" -n 4 "$train" --quiet --hidden 32 --epochs 1 --checkpoint "$disk/run" 2>"$work/err" >/dev/null
    [ $? = 1 ] || fail "4 ranks go on without their checkpoint"
    grep -q 'rank 0\]: .*No space left' "$work/err" || fail "rank 0 does not say why: $(cat "$work/err")"
    [ "$(grep -c 'rank [1-3]\]: rank 0: .*No space left' "$work/err")" = 3 ] || fail "not every rank: $(cat "$work/err")"
    cmp "$disk/run" "$work/kept" || fail "a full disk changed the checkpoint of 4 ranks"
    RANK=0 WORLD_SIZE=2 GYRE_MEET_TIMEOUT=2 GYRE_SECRET=a-secret-of-the-tests-0123456789 GYRE_ADDRESS=file://$disk/meet \
        timeout 20 "$train" --quiet --hidden 32 --epochs 1 2>"$work/err" >/dev/null
    [ $? = 1 ] && grep -q 'cannot write the meeting file .*disk/meet: No space left' "$work/err" ||
        fail "a meeting on a full disk: $(cat "$work/err")"
    rm "$disk/filler"
    refused_not=$("$train" --quiet --hidden 32 --epochs 1 --resume "$disk/run" --checkpoint "$disk/run" 2>&1) ||
        fail "with room again: $refused_not"
}

"$3"
[ $failures = 0 ] && echo "$3: all as promised"
[ $failures = 0 ]

#!/bin/bash
# gyre-top --once until it says what it should of a job that is stuck; how long that takes is the machine's business.
#   top_test.sh GYRE_RUN GYRE_TOP RANKS stop|sleep|away|chain|circle|window|busy
set -euo pipefail
run=$1 top=$2 ranks=$3 what=$4
export GYRE_LOG=error GYRE_TIMEOUT=300 GYRE_STALL_TIMEOUT=300
folder=$(mktemp -d /tmp/gyre-top-XXXXXX)
"$run" -n 4 "$ranks" "$what" "$folder" 2>/dev/null &
runner=$!
pids=()
end() {
    [ ${#pids[@]} -eq 0 ] || kill -CONT "${pids[@]}" || true
    kill -TERM "$runner" || true
    wait "$runner" || true
    rm -rf "$folder"
}
trap 'end 2>/dev/null' EXIT
for rank in 0 1 2 3; do
    for _ in $(seq 1000); do [ -s "$folder/$rank" ] && break || sleep 0.1; done
    pids+=("$(cat "$folder/$rank")")
done

waits='^ +RANK +PID  waiting .*gradients: all_reduce #6 \(float32 x 4000000, sum, [a-z_]+\), waits for rank '
waiting() { local line=${waits/RANK/$1}; echo "${line/PID/${pids[$1]}}"; } # RANK: its line
message() { echo "^ +$1 +${pids[$1]}  waiting .*gradients: message #1 of rank $2 \(float32 x 10, [a-z_ ]+\), waits for rank $2\$"; }
one_sided() { echo "^ +$1 +${pids[$1]}  waiting .*gradients: one-sided call on window 1, waits for rank 2\$"; }
case $what in
window)
    wanted=("$(one_sided 0)" "$(one_sided 1)" "^ +2 +${pids[2]}  outside" "$(one_sided 3)"
            "^rank 2 \(process ${pids[2]}\) holds up 3 ranks, .*: it is outside gyre") ;;
stop)
    wanted=("^ +2 +${pids[2]}  stopped" "$(waiting 0)" "$(waiting 1)" "$(waiting 3)"
            "^rank 2 \(process ${pids[2]}\) holds up 3 ranks, for [0-9.]+ s at the longest: it is stopped, by a signal or a debugger") ;;
sleep)
    wanted=("^ +2 +${pids[2]}  outside .*after all_reduce #5" "$(waiting 0)" "$(waiting 1)" "$(waiting 3)"
            "^rank 2 \(process ${pids[2]}\) holds up 3 ranks, .*: it is outside gyre, after all_reduce #5 \(float32 x 10, sum") ;;
away)
    wanted=("^ +2 +${pids[2]}  away .*gradients: all_reduce #6" "$(waiting 0)" "$(waiting 1)" "$(waiting 3)"
            "^rank 2 \(process ${pids[2]}\) holds up 3 ranks, .*: it has gradients: all_reduce #6 .* under way, and has not been inside gyre for") ;;
chain)
    wanted=("$(message 0 1)" "$(message 1 2)" "$(message 2 3)" "^ +3 +${pids[3]}  outside"
            "^rank 3 \(process ${pids[3]}\) holds up 3 ranks, .*: it is outside gyre") ;;
circle)
    wanted=("$(message 0 1)" "$(message 1 2)" "$(message 2 3)" "$(message 3 0)" "^ranks wait for one another in a circle") ;;
busy) wanted=("^ +0 +${pids[0]}  [mw].* [1-9][0-9.]* k?op/s +[1-9][0-9.]* [MGT]B/s +") ;;
esac

says() {
    for line in "${wanted[@]}"; do
        grep -qE "$line" <<<"$picture" || { lacks=$line; return 1; }
    done
}
for _ in $(seq 60); do
    picture=$("$top" --once --pid "${pids[0]}" || true)
    if says; then
        blames=$(grep -cE "^rank .* holds up|in a circle" <<<"$picture" || true)
        [ "$blames" -eq "$([ "$what" = busy ] && echo 0 || echo 1)" ] || { echo "$picture"; echo "it blames $blames" >&2; exit 1; }
        exit 0
    fi
    sleep 0.5
done
echo "$picture"
echo "there is no line like: $lacks" >&2
exit 1

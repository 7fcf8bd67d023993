#!/bin/bash
# The command lines of the tools: wrong arguments, --help, --version, gyre-run's exit status and last line, gyre-perf's
# rows.
# Usage: tools_test.sh GYRE-RUN GYRE-INFO GYRE-PERF
set -u
run=$1 info=$2 perf=$3 failures=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail()
{
    echo "FAILED: $*"
    failures=$((failures + 1))
}

# expect STATUS PATTERN COMMAND...: the exit status, and the last line on stderr matches
expect()
{
    local wanted=$1 pattern=$2 status last
    shift 2
    timeout 60 "$@" >"$work/out" 2>"$work/err" </dev/null
    status=$?
    last=$(tail -n 1 "$work/err")
    [ $status = "$wanted" ] || fail "$*: status $status, not $wanted: $last"
    [[ $last =~ $pattern ]] || fail "$*: last line '$last' does not match '$pattern'"
}

# Running, that is: a zombie waits for whoever adopted it, which is not gyre's business.
lives()
{
    grep -q '^State:[[:space:]]*[RSDTtI]' "/proc/$1/status" 2>/dev/null
}

refused()
{
    expect 2 "$@"
    [ "$(wc -l <"$work/err")" = 1 ] || fail "not one line: $(cat "$work/err")"
    [ ! -s "$work/out" ] || fail "output beside a refusal: $(cat "$work/out")"
}

for tool in "$run" "$info" "$perf"; do
    name=$(basename "$tool")
    expect 0 '^$' "$tool" --help
    grep -q "Usage: $name" "$work/out" || fail "$name --help"
    expect 0 '^$' "$tool" --version
    grep -Eq "^$name [0-9]+\.[0-9]+\.[0-9]+$" "$work/out" || fail "$name --version"
    refused "^$name: .*--nonsense" "$tool" --nonsense
done

refused 'ranks is missing' "$run" true
refused 'program to run is missing' "$run" -n 2
refused "not 'two'" "$run" -n two true
refused "not '0'" "$run" -n 0 true
refused "requires an argument" "$run" -n
refused "unexpected argument 'x'" "$info" x
refused 'collective is missing' "$perf"
refused "'all_reduced'" "$perf" all_reduced
refused "'float99'" "$perf" all_reduce -d float99
refused "'avg'" "$perf" all_reduce -o avg
refused "'star'" "$perf" all_reduce --algorithm star
refused "'pigeon'" "$perf" all_reduce --transport shm,pigeon
refused "'12q'" "$perf" all_reduce -b 12q
refused "at most -e" "$perf" all_reduce -b 2k -e 1k
refused "root 4" "$perf" broadcast --ranks 4 -r 4
refused "GYRE_TIMEOUTS" env GYRE_TIMEOUTS=3 "$info"
refused "GYRE_TIMEOUT" env GYRE_TIMEOUT=soon "$run" -n 1 true

expect 0 '^$' "$info"
grep -q "$("$info" --version | cut -d' ' -f2)" "$work/out" || fail "gyre-info does not tell its version"
grep -q shm "$work/out" && grep -q tcp "$work/out" || fail "gyre-info does not list the transports"
expect 0 '^$' "$info" --config
grep -q GYRE_TIMEOUT "$work/out" || fail "gyre-info --config does not list GYRE_TIMEOUT"

expect 0 '^$' "$run" -n 3 true
expect 7 'rank 1 \(pid [0-9]+\) ended with exit status 7$' "$run" -n 3 bash -c '[ $RANK = 1 ] && exit 7; sleep 0.2'
expect 137 'rank 2 .* killed by signal 9' "$run" -n 3 bash -c '[ $RANK = 2 ] && kill -9 $$; sleep 30'
expect 143 'rank 0 .* killed by signal 15' "$run" -n 2 bash -c '[ $RANK = 0 ] && kill $$; trap "" TERM; while :; do sleep 1; done'
expect 127 "cannot start '/no/such/program'" "$run" -n 3 /no/such/program
[ "$(wc -l <"$work/err")" = 1 ] || fail "a missing program is named more than once"
expect 0 '^$' "$run" -n 4 -l -- bash -c 'echo $RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE ${MASTER_ADDR:?} ${MASTER_PORT:?} >/dev/null; echo "I am $RANK of ${#GYRE_SECRET}"'
[ "$(sort "$work/out" | tr '\n' ';')" = '[0] I am 0 of 64;[1] I am 1 of 64;[2] I am 2 of 64;[3] I am 3 of 64;' ] || fail "labels: $(cat "$work/out")"
[ "$(echo hello | "$run" -n 3 cat)" = hello ] || fail "stdin belongs to rank 0 alone"

# Ctrl-C ends all, and what they forked.
"$run" -n 3 bash -c 'sleep 987 & echo $! $$; wait' >"$work/pids" 2>"$work/err" &
launcher=$!
while [ "$(wc -l <"$work/pids")" -lt 3 ]; do sleep 0.05; done
kill -INT $launcher
wait $launcher
[ $? = 130 ] || fail "status after SIGINT"
for pid in $(cat "$work/pids"); do
    ! lives "$pid" || fail "process $pid is left after SIGINT"
done
# A killed launcher takes its ranks along.
"$run" -n 2 bash -c 'echo $$; exec sleep 987' >"$work/pids" 2>/dev/null &
launcher=$!
while [ "$(wc -l <"$work/pids")" -lt 2 ]; do sleep 0.05; done
kill -KILL $launcher
wait $launcher 2>/dev/null
sleep 0.3
for pid in $(cat "$work/pids"); do
    ! lives "$pid" || fail "process $pid outlives its launcher"
done

# gyre-perf: rows, JSON keys, no wrong element, for every collective and both modes.
for collective in all_reduce reduce_scatter all_gather broadcast barrier; do
    for mode in isolated streaming; do
        expect 0 '^$' "$perf" $collective --ranks 2 -b 64 -e 4k -f 8 -n 3 -w 1 --mode $mode --json "$work/json"
        rows=$(grep -vc '^#' "$work/out")
        [ "$rows" = "$([ $collective = barrier ] && echo 1 || echo 3)" ] || fail "gyre-perf $collective: $rows rows"
        [ "$(wc -l <"$work/json")" = $((2 * rows)) ] || fail "gyre-perf $collective: JSON lines"
        for key in collective algorithm transport ranks bytes count dtype op in_place time_us min median mean p99 max algbw busbw; do
            [ "$(grep -c "\"$key\":" "$work/json")" = $((2 * rows)) ] || fail "gyre-perf $collective: key $key"
        done
        [ "$(grep -c '"wrong":0}' "$work/json")" = $((2 * rows)) ] || fail "gyre-perf $collective: wrong elements"
    done
done
expect 0 '^$' "$perf" all_reduce --ranks 2 -b 1k -e 1k -n 2 -c 0 --mem gyre --transport tcp --algorithm ring --json -
grep -q '"algorithm":"ring","transport":"tcp"' "$work/out" || fail "gyre-perf: forced algorithm and transport"
expect 0 '^$' "$run" -n 3 "$perf" all_reduce -b 1k -e 1k -n 2

[ $failures = 0 ]

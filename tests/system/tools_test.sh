#!/bin/bash
# The command lines of the tools: wrong arguments, --help, --version, gyre-run's exit status and last line, gyre-info's
# lists, gyre-perf's rows and JSON, gyre-train's metrics. Usage: tools_test.sh GYRE-RUN GYRE-INFO GYRE-PERF GYRE-TRAIN
set -u
run=$1 info=$2 perf=$3 train=$4 failures=0
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

# Running, that is: a zombie waits for the process that adopted it, which is not gyre's business.
lives()
{
    grep -q '^State:[[:space:]]*[RSDTtI]' "/proc/$1/status" 2>/dev/null
}

# outlives PID: it still lives after half a minute. A killed process takes a core to end, and may wait for one.
outlives()
{
    local tries
    for ((tries = 0; tries < 600; tries++)); do
        lives "$1" || return
        sleep 0.05
    done
}

refused()
{
    expect 2 "$@"
    [ "$(wc -l <"$work/err")" = 1 ] || fail "not one line: $(cat "$work/err")"
    [ ! -s "$work/out" ] || fail "output beside a refusal: $(cat "$work/out")"
}

# docs/tuning.md speaks of settings that there are.
"$info" --config >"$work/settings"
while IFS= read -r setting; do
    grep -q "^$setting " "$work/settings" || fail "docs/tuning.md: there is no setting $setting"
done < <(grep -oE 'GYRE_[A-Z_]+[A-Z]' "$(dirname "$0")/../../docs/tuning.md" | sort -u)
# The report of a fault has the settings, wrong ones too, and no secret.
secret=0123456789abcdef0123456789abcdef
expect 0 '^$' env GYRE_SECRET=$secret GYRE_SECRT=$secret GYRE_LOG=noise GYRE_TCP_LINKS=2 "$info" --bug-report
for line in '^== system$' '^kernel: Linux ' '^GYRE_TCP_LINKS=2$' '^GYRE_SECRET: 32 characters, not shown$' '^GYRE_SECRT: 32 ' \
    '^GYRE_LOG=noise$' '^== wrong in it$' 'limit of locked memory: '; do
    grep -q "$line" "$work/out" || fail "gyre-info --bug-report lacks $line: $(cat "$work/out")"
done
! grep -q "$secret" "$work/out" || fail "gyre-info --bug-report shows the secret"
# Ranks that are refused alike write whole lines.
timeout 60 "$run" -n 4 "$train" --strategy average:every=-1 >"$work/out" 2>"$work/err"
[ "$(grep -cE '^gyre-train: --strategy: strategy average: "every=-1" is out of bounds: .* \(try gyre-train --help\)$' "$work/err")" -ge 1 ] &&
    ! grep -q 'gyre-train: gyre-train' "$work/err" || fail "lines in pieces: $(cat "$work/err")"

for tool in "$run" "$info" "$perf" "$train"; do
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
refused 'min and --restarts go with --elastic' "$run" -n 2 --min 1 true
refused 'more than the 2 ranks' "$run" -n 2 --elastic --min 3 true
for text in 5 x,1 5,0 5,-1 5,1x 5,1e9; do
    refused "'$text' is no SEED,RATE" "$run" -n 2 --chaos $text true
done
refused "unexpected argument 'x'" "$info" x
refused 'collective is missing' "$perf"
refused "'all_reduced'" "$perf" all_reduced
refused "'float99'" "$perf" all_reduce -d float99
refused "'mulsum'" "$perf" all_reduce -o mulsum
# Options of nccl-tests that have one legal value here, and those that sizes cannot be.
refused '-g \(--ngpus\) 8: only 1 is possible here: .*--ranks' "$perf" all_reduce_perf -g 8
refused '-G \(--cudagraph\) 2: only 0 is possible here' "$perf" allreduce --cudagraph 2
refused 'sizes would not grow' "$perf" all_reduce -i 0
refused 'sendrecv has two ranks.*sendrecv_ring has any number' "$perf" sendrecv --ranks 3
refused 'latency moves bytes' "$perf" latency --ranks 2 -d half
refused 'bibw moves bytes' "$perf" osu_bibw --ranks 2 --mem gyre
refused 'sendrecv_perf has no --algorithm' "$perf" sendrecv_perf --ranks 2 --algorithm ring
refused '--op average has no meaning for --dtype bool' "$perf" all_reduce --ranks 2 -d bool -o avg
refused '--op bit_and has no meaning for --dtype float32' "$perf" all_reduce --ranks 2 -d float32 -o bit_and
for option in -p:1 -z:3 -y:1 -T:60 -C:1 -S:1 -a:1 -R:2 -M:1 -D:1 --device_cta_count:4 -x:2 -u:4 -I:1 -K:5 -t:2 --run_cycles:0 --memory:1 --cta_policy:1; do
    refused "^gyre-perf: -.*${option#*:}: only (0|1|3|16) is possible here: " "$perf" all_reduce_perf --ranks 2 "${option%:*}" "${option#*:}"
done
refused '-n 3 is more than the hosts have slots' "$run" -H a,b -np 3 true
refused "--hosts: 'a:0': the slots" "$run" -np 2 --hosts a:0 true
refused '--hostfile: /nowhere: No such file' "$run" -np 2 --hostfile /nowhere true
refused '--elastic and --chaos are for ranks on this machine' "$run" --hosts localhost:2 --elastic true
refused '--ssh goes with --hosts' "$run" -n 2 --ssh ssh true
refused "-x 'GYRE_NOT_SET' is no variable" "$run" -n 2 -x GYRE_NOT_SET true
refused 'program to run is missing' "$run" --hosts localhost:2
expect 3 '^gyre-run: rank 1 on localhost \(pid [0-9]+\) ended with exit status 3$' "$run" --hosts localhost:2 \
    bash -c 'exit $((RANK * 3))'
refused 'osu_latency has two ranks' "$perf" osu_latency --ranks 2 --algorithm ring
refused "'star'" "$perf" all_reduce --algorithm star
refused 'there is no transport pigeon' "$perf" all_reduce --transport shm,pigeon
refused "'12q'" "$perf" all_reduce -b 12q
expect 1 'exit status 1' env GYRE_TCP_CONGESTION=nosuch "$run" -n 2 "$perf" all_reduce -b 4 -e 4 --transport tcp
grep -q "GYRE_TCP_CONGESTION=nosuch: the kernel does not have it" "$work/err" || fail "a congestion control that nobody has: $(cat "$work/err")"
refused "at most -e" "$perf" all_reduce -b 2k -e 1k
refused "root 4" "$perf" broadcast --ranks 4 -r 4
refused "'7' is none of 0, 1" "$perf" all_reduce -c 7
refused "'pinned' is none of private, gyre" "$perf" all_reduce --mem pinned
refused "'fast' is none of isolated, streaming" "$perf" all_reduce --mode fast
refused "not '-1'" "$perf" all_reduce --ranks -1
refused 'no launcher .* --ranks N' env -u WORLD_SIZE "$perf" all_reduce
refused "unexpected argument 'x'" "$perf" all_reduce x
refused "'vgg' is none of mlp" "$train" --model vgg
refused 'none named "asink"' "$train" --strategy asink
refused "'magic' is none of sgd, .*adamw" "$train" --optimizer magic
refused "'cifar' is none of digits, idx:DIR, csv:FILE" "$train" --data cifar
refused "not '0'" "$train" --batch 0
refused "lr" "$train" --lr fast
refused 'one rank cannot go on from the state of a pipeline' "$train" --pipeline 2 --verify-single --resume "$work/none"
# No run writes over what it reads, by whatever name; two outputs in one file are neither; a device takes any number.
echo kept >"$work/kept"
ln -s kept "$work/alias"
refused 'resume and --metrics are one file' "$train" --resume "$work/kept" --metrics "$work/alias"
refused 'data and --predict are one file' "$train" --data "csv:$work/kept" --predict "$work/kept"
refused 'data and --checkpoint are one file' "$train" --model lstm --data "text:$work/kept" --checkpoint "$work/kept"
refused 'metrics and --checkpoint are one file' "$train" --metrics "$work/none" --checkpoint "$work/none"
[ "$(cat "$work/kept")" = kept ] || fail "a file that gyre-train was to read and to write is gone"
expect 0 '^$' "$train" --quiet --epochs 1 --metrics /dev/null --trace /dev/null --checkpoint "$work/run"
expect 0 '^$' "$train" --quiet --epochs 2 --resume "$work/run" --checkpoint "$work/run"
expect 1 'WORLD_SIZE' env WORLD_SIZE=1 RANK=0 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=0 "$train" --epochs 1
expect 0 '^$' "$run" -n 2 "$train" --quiet --steps 4 --hidden 16 --pipeline 2 --verify-single
grep -q '^verified against one rank' "$work/out" || fail "--pipeline 2 --verify-single: $(cat "$work/out")"
# What never ends is refused at once: data, a checkpoint, a description of a cluster.
for what in csv npy 'text --model lstm'; do
    # shellcheck disable=SC2086 # two words
    expect 1 '/dev/zero is a device; a file or a pipe is expected' "$train" --data ${what%% *}:/dev/zero ${what#"${what%% *}"}
done
expect 1 '/dev/zero is a device; a file or a pipe is expected' "$train" --epochs 1 --resume /dev/zero --checkpoint "$work/run"
mkfifo "$work/fifo"
expect 2 'GYRE_TUNING=.*/fifo is invalid' env GYRE_TUNING="$work/fifo" "$run" -n 2 "$perf" all_reduce -e 64 -n 1
expect 2 'GYRE_TUNING=/dev/zero is invalid' env GYRE_TUNING=/dev/zero "$run" -n 2 "$perf" all_reduce -e 64 -n 1
grep -q 'GYRE_TUNING.*/dev/zero.*no description' "$work/err" || fail "GYRE_TUNING=/dev/zero: $(cat "$work/err")"
# Several ranks have ended when the launcher looks: the first of them is named, not the lowest.
expect 3 '^gyre-run: rank 3 .* ended with exit status 3$' "$run" -n 4 bash -c 'case $RANK in
    0) sleep 0.1; kill -STOP $PPID; sleep 0.8; kill -CONT $PPID; sleep 5 ;;
    3) sleep 0.3; exit 3 ;;
    *) sleep 0.5; exit 1 ;;
esac'
# The port of a job stays its own while no rank listens on it: no other process can bind it.
expect 0 '^$' "$run" -n 1 python3 -c 'import errno, os, socket
try:
    socket.socket().bind(("127.0.0.1", int(os.environ["MASTER_PORT"])))
except OSError as error:
    raise SystemExit(error.errno != errno.EADDRINUSE)
raise SystemExit("the port was free")'
# GYRE_LOG=info says what runs, once for each rank, and rank 0 what it chooses; GYRE_SHOW_CHOICE is no warning.
GYRE_LOG=info expect 0 '' "$run" -n 2 "$perf" all_reduce -b 8 -e 8 -n 2
[ "$(grep -cE '^gyre\[rank [01]\] INFO: gyre [0-9.]+: rank [01] of 2, process [0-9]+ on .+, integrity off; ranks [01] by self; ranks [01] by shm$' "$work/err")" = 2 ] ||
    fail "GYRE_LOG=info: $(cat "$work/err")"
[ "$(grep -cE '^gyre\[rank 0\] INFO: all_reduce: [a-z_]+ to [0-9]+ [KM]?i?B, .*[a-z_]+ beyond$' "$work/err")" = 1 ] || fail "GYRE_LOG=info: no choices: $(cat "$work/err")"
GYRE_SHOW_CHOICE=1 expect 0 '^gyre\[rank 0\] INFO: choice: all_reduce of 8 bytes on 2 ranks: [a-z_]+$' "$run" -n 2 "$perf" all_reduce -b 8 -e 8 -n 2 -c 0
# The secret is in a descriptor that only the ranks have, through a wrapper, too.
expect 0 '^$' env -u GYRE_SECRET "$run" -n 1 sh -c 'env; sh -c "cat $GYRE_SECRET_FILE"'
grep -q '^GYRE_SECRET=' "$work/out" && fail "gyre-run leaves the secret in the environment"
grep -Eq '^[0-9a-f]{64}$' "$work/out" || fail "gyre-run: what a rank has as its secret: $(tail -n 1 "$work/out")"
# gyre-run ignores SIGPIPE (13), its ranks do not.
expect 0 '^$' "$run" -n 1 bash -c 'read -r _ mask < <(grep SigIgn /proc/self/status); exit $((0x$mask >> 12 & 1))'
refused 'go with --elastic' "$train" --min 2
refused 'leave --elastic out' "$train" --elastic --replay-membership "$work/none"
expect 1 'cannot open .*/none: No such file' "$train" --replay-membership "$work/none"
printf '0 4\n7 0\n' >"$work/memberships"
expect 1 'memberships, line 2: not "STEP RANKS"' "$train" --replay-membership "$work/memberships"
expect 1 'strategy zero .* cannot be elastic: take sync, deterministic, or one that averages' "$train" --elastic --strategy zero
refused 'GYRE_LOG=loud is invalid' env GYRE_LOG=loud "$train"
refused "GYRE_TIMEOUTS is no setting of gyre; did you mean GYRE_TIMEOUT" env GYRE_TIMEOUTS=3 "$info"
refused "GYRE_TIMEOUT=soon is invalid" env GYRE_TIMEOUT=soon "$run" -n 1 true
expect 1 'cannot write the output' bash -c "'$info' >/dev/full"
expect 1 '/no/such/folder holds neither' "$train" --data idx:/no/such/folder

expect 0 '^$' "$info"
grep -q "$("$info" --version | cut -d' ' -f2)" "$work/out" || fail "gyre-info does not tell its version"
for word in 'built with .*\(GCC\|[Cc]lang\) [0-9]' 'topology:' 'cores ' 'transport self: built in' 'transport shm: ' 'transport tcp: built in'; do
    grep -q "$word" "$work/out" || fail "gyre-info does not tell '$word'"
done
expect 0 '^$' "$info" --config
cp "$work/out" "$work/settings"
[ "$(wc -l <"$work/settings")" -ge 15 ] || fail "gyre-info --config lists too few settings: $(cat "$work/settings")"
while read -r name default unit meaning; do
    [[ $name =~ ^GYRE_[A-Z_]+$ && -n $default && -n $unit && $meaning =~ .[[:space:]]. ]] || fail "gyre-info --config: $name $default $unit $meaning"
    # What is listed exists: a variable of that name is accepted, and its default is a legal value.
    [ "$default" = '(empty)' ] || expect 0 '^$' env "$name=$default" "$info"
done <"$work/settings"

expect 0 '^$' "$run" -n 3 true
expect 7 'rank 1 \(pid [0-9]+\) ended with exit status 7$' "$run" -n 3 bash -c '[ $RANK = 1 ] && exit 7; sleep 0.2'
expect 137 'rank 2 .* killed by signal 9' "$run" -n 3 bash -c '[ $RANK = 2 ] && kill -9 $$; sleep 30'
# A rank whose process takes long to end is the cause all the same, and a rank that failed because of it is not: its
# first thread is gone, which shows, long before the second ends it.
export work
expect 137 'rank 1 .* killed by signal 9' "$run" -n 2 bash -c '
    [ $RANK = 1 ] || { until [ -e "$work/gone" ]; do sleep 0.02; done; exit 1; }
    exec python3 -c "
import ctypes, os, platform, threading, time
def end():
    while open(\"/proc/self/stat\").read().rsplit(\")\", 1)[1].split()[0] != \"Z\":
        time.sleep(0.02)
    open(os.environ[\"work\"] + \"/gone\", \"w\").close()
    time.sleep(0.8)
    os.kill(os.getpid(), 9)
threading.Thread(target=end).start()
ctypes.CDLL(None).syscall(93 if platform.machine() == \"aarch64\" else 60, 0)"'
expect 143 'rank 0 .* killed by signal 15' "$run" -n 2 bash -c '[ $RANK = 0 ] && kill $$; trap "" TERM; while :; do sleep 1; done'
expect 127 "cannot start '/no/such/program'" "$run" -n 3 /no/such/program
[ "$(wc -l <"$work/err")" = 1 ] || fail "a missing program is named more than once"
expect 0 '^$' "$run" -n 4 -l -- bash -c 'echo $RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE ${MASTER_ADDR:?} ${MASTER_PORT:?} >/dev/null; echo "I am $RANK of $(wc -c <"$GYRE_SECRET_FILE")"'
[ "$(sort "$work/out" | tr '\n' ';')" = '[0] I am 0 of 64;[1] I am 1 of 64;[2] I am 2 of 64;[3] I am 3 of 64;' ] || fail "labels: $(cat "$work/out")"
[ "$(echo hello | "$run" -n 3 cat)" = hello ] || fail "stdin belongs to rank 0 alone"

# Elastic: a failed rank starts again, as a joining process, but not for ever; too few survivors end the job.
export work
expect 0 '^gyre-run: rank 1 .* ended with exit status 7, and is given up after 2 starts$' "$run" --elastic --restarts 1 -n 2 bash -c '
    [ $RANK = 1 ] && echo "join ${GYRE_JOIN:-no}" && exit 7
    until grep -q "given up" "$work/err"; do sleep 0.02; done'
[ "$(tr '\n' ';' <"$work/out")" = 'join no;join 1;' ] || fail "starts of rank 1: $(cat "$work/out")"
grep -q 'it starts again in 0.25 s (1 of 1)' "$work/err" || fail "no restart is announced: $(cat "$work/err")"
expect 3 'fewer than --min 2; the last to go, rank [0-2], ended with exit status 3$' "$run" --elastic --min 2 -n 3 bash -c 'exit 3'
# The same seed, the same faults, whatever becomes of the ranks.
for i in 1 2; do
    expect 0 '' "$run" --elastic --restarts 99 -n 3 --chaos 7,60 bash -c 'until [ $(grep -c chaos "$work/err") -ge 12 ]; do sleep 0.05; done'
    sed -n 's/.*\(chaos [0-9]* at .*: [a-z]* rank [0-9]\).*/\1/p' "$work/err" | head -n 12 >"$work/faults.$i"
done
[ "$(wc -l <"$work/faults.1")" = 12 ] && cmp "$work/faults.1" "$work/faults.2" || fail "faults differ: $(cat "$work"/faults.?)"
for word in kill stop cut; do grep -q " $word rank" "$work/faults.1" || fail "no $word in $(cat "$work/faults.1")"; done

# Ctrl-C ends all, and what they forked. The file is there, and empty, before its lines are counted.
: >"$work/pids"
"$run" -n 3 bash -c 'sleep 987 & echo $! $$; wait' >"$work/pids" 2>"$work/err" &
launcher=$!
while [ "$(wc -l <"$work/pids")" -lt 3 ]; do sleep 0.05; done
kill -INT $launcher
wait $launcher
[ $? = 130 ] || fail "status after SIGINT"
for pid in $(cat "$work/pids"); do
    outlives "$pid" && fail "process $pid is left after SIGINT"
done
# A killed launcher takes its ranks along.
: >"$work/pids"
"$run" -n 2 bash -c 'echo $$; exec sleep 987' >"$work/pids" 2>/dev/null &
launcher=$!
while [ "$(wc -l <"$work/pids")" -lt 2 ]; do sleep 0.05; done
kill -KILL $launcher
wait $launcher 2>/dev/null
for pid in $(cat "$work/pids"); do
    outlives "$pid" && fail "process $pid outlives its launcher"
done

# gyre-perf: rows, JSON keys, no wrong element, for every collective and both modes.
for collective in all_reduce reduce_scatter all_gather broadcast barrier; do
    for mode in isolated streaming; do
        expect 0 '^$' "$perf" $collective --ranks 2 -b 64 -e 4k -f 8 -n 3 -w 1 --mode $mode --json "$work/json"
        rows=$(grep -vc '^#' "$work/out")
        [ "$rows" = "$([ $collective = barrier ] && echo 1 || echo 3)" ] || fail "gyre-perf $collective: $rows rows"
        [ "$(wc -l <"$work/json")" = $((2 * rows)) ] || fail "gyre-perf $collective: JSON lines"
        for key in collective algorithm transport ranks bytes count dtype op root in_place time_us min median mean p99 max whole_us algbw busbw; do
            [ "$(grep -c "\"$key\":" "$work/json")" = $((2 * rows)) ] || fail "gyre-perf $collective: key $key"
        done
        [ "$(grep -c '"wrong":0}' "$work/json")" = $((2 * rows)) ] || fail "gyre-perf $collective: wrong elements"
    done
done
# The command lines of nccl-tests and of the OSU benchmarks, as users type them.
column() # COLUMN: of the rows, distinct, in their order
{
    grep -v '^#' "$work/out" | awk -v column="$1" '!seen[$column]++ { printf "%s ", $column }'
}
expect 0 '^$' "$perf" all_reduce_perf --ranks 2 --minbytes 8 --maxbytes 128 --stepfactor 4 --iters 2 --warmup_iters 1 \
    --datatype half -o avg -g 1 -t 1 -z 0 -p 0 -m 1 -c 1 -J "$work/json"
[ "$(column 1)/$(column 3)/$(column 4)" = '8 32 128 /float16 /average ' ] || fail "nccl-tests' options: $(cat "$work/out")"
grep -q '^# accepted, as gyre-perf does so anyway: -g 1, -t 1, -z 0, -p 0, -m 1$' "$work/out" || fail "accepted: $(cat "$work/out")"
grep -q '^# Out of bounds values : 0 OK$' "$work/out" && grep -Eq '^# Avg bus bandwidth    : [0-9.e-]+$' "$work/out" ||
    fail "nccl-tests' last lines: $(cat "$work/out")"
[ "$(wc -l <"$work/json")" = 6 ] || fail "-J: $(cat "$work/json")"
expect 0 '^$' "$run" -np 2 "$perf" osu_allreduce -m 8:64 --stepbytes 28 -d float -n 1 -w 0
[ "$(column 1)" = '8 36 64 ' ] || fail "-m and --stepbytes: $(cat "$work/out")"
expect 0 '^$' "$perf" reduce --ranks 2 -b 64 -e 64 -n 1 -w 0 -r all -d all -o all
[ "$(column 3)" = 'int8 uint8 int32 uint32 int64 uint64 float16 bfloat16 float32 float64 float8_e4m3 float8_e5m2 bool ' ] &&
    [ "$(column 4)" = 'sum product min max average bit_and bit_or bit_xor ' ] && [ "$(column 5)" = '0 1 ' ] &&
    [ "$(grep -vc '^#' "$work/out")" = $((2 * (6 * 8 + 6 * 5 + 7))) ] || fail "-r all -d all -o all: $(cat "$work/out")"
expect 0 '^$' "$perf" all_reduce_perf --ranks 2 -b 8 -e 8 -n 1 -w 0 -t 1 -g 1 -m 1 --run_cycles 1 -p 0 -z 0 -y 0 -T 0 -G 0 -C 0 -S 0 \
    -a 3 -R 0 -M 0 --memory 0 -D 0 --device_cta_count 16 -x 0 -u 0 -I 0 -K 0
grep -q '^# accepted.*: -t 1, -g 1, -N 1, .*, --device_cta_count 16, -u 0, -I 0, -K 0, -m 1, -x 0$' "$work/out" || fail "all accepted: $(cat "$work/out")"
# The same word is nccl-tests' or the OSU benchmarks', as the name is; -N starts ranks where no launcher has.
expect 0 '^$' "$perf" osu_allreduce -N 2 -m 8 -i 7 -x 3
grep -q 'iterations 7  warm-up 3 ' "$work/out" && [ "$(column 1)" = '8 ' ] || fail "osu_allreduce -i 7 -x 3: $(cat "$work/out")"
expect 0 '^$' "$run" -np 2 "$perf" all_reduce -N 1 -b 8 -e 8 -n 1
expect 2 'exit status 2$' "$run" --np 2 "$perf" all_reduce -N 2 -b 8 -e 8 -n 1
grep -q 'only 1 is possible here: .*--ranks' "$work/err" || fail "-N 2 under a launcher: $(cat "$work/err")"
# Sizes that are the same in whole elements have one row.
expect 0 '^$' "$perf" all_gather --ranks 3 -b 1 -e 64 -n 1 -w 0
[ "$(grep -v '^#' "$work/out" | awk '{ printf "%s ", $1 }')" = '12 24 60 ' ] || fail "rows of odd sizes: $(cat "$work/out")"
for case in sendrecv:3 osu_latency:1 latency:1 osu_bw:1 bandwidth:1 osu_bibw:1 bibandwidth:1; do
    expect 0 '^$' "$perf" ${case%:*} --ranks 2 -b 1 -e 64k -f 16 -n 3 -w 1 -W 4 --json "$work/json"
    [ "$(grep -v '^#' "$work/out" | awk -v n=${case#*:} 'NF == n + 2 && $2 > 0 && $(n + 1) > 0 && $NF == 0' | wc -l)" = 5 ] &&
        [ "$(grep -cE '"latency_us":.*"bandwidth_mb":.*"bibandwidth_mb":.*"wrong":0}' "$work/json")" = 5 ] &&
        [ "$(grep -oE '_(us|mb|bi)":[0-9]' "$work/json" | wc -l)" = $((5 * ${case#*:})) ] &&
        [ "$(tail -n 3 "$work/out" | grep -cE '^# (Out of bounds values : 0 OK|Avg bus bandwidth    : [0-9.e-]+)$')" = 2 ] ||
        fail "gyre-perf ${case%:*}: $(cat "$work/out" "$work/json")"
done
for name in sendrecv_perf sendrecv_ring; do
    expect 0 '^$' "$perf" $name --ranks 3 -b 1k -e 1k -n 2 -w 1 -d double --json "$work/json"
    [ "$(grep -v '^#' "$work/out" | awk '{ print $1, $3, $4, $9, $NF }')" = '1024 float64 none 0 N/A' ] &&
        [ "$(grep -c '"collective":"sendrecv_ring".*"in_place":false.*"wrong":0}' "$work/json")" = 1 ] || fail "gyre-perf $name: $(cat "$work/out")"
done
expect 1 'exit status 1$' "$run" -n 3 "$perf" sendrecv -e 8
# What has a root names it, in the column and in JSON; the others have none.
for case in broadcast:1 reduce:1 gather:1 scatter:1 all_reduce:-1 reduce_scatter:-1 all_gather:-1 all_to_all:-1 barrier:-1; do
    expect 0 '^$' "$perf" ${case%:*} --ranks 2 -b 1k -e 1k -n 2 -w 1 -r 1 --json "$work/json"
    [ "$(grep -v '^#' "$work/out" | awk '{ print $5 }')" = "${case#*:}" ] || fail "gyre-perf ${case%:*}: root: $(cat "$work/out")"
    [ "$(grep -c "\"root\":${case#*:},\"in_place\"" "$work/json")" = 2 ] || fail "gyre-perf ${case%:*}: root: $(cat "$work/json")"
done
expect 0 '^$' "$perf" all_reduce --ranks 2 -b 1k -e 1k -n 2 -c 0 --mem gyre --transport tcp --algorithm ring --json -
grep -q '"algorithm":"ring","transport":"tcp"' "$work/out" || fail "gyre-perf: forced algorithm and transport"
expect 0 '^$' "$run" -n 3 "$perf" all_reduce -b 1k -e 1k -n 2
expect 0 '^$' "$perf" all_reduce --ranks 2 -b 1k -e 1k -n 2 -d float8_e4m3 -o product
grep -q 'float8_e4m3 product' "$work/out" || fail "gyre-perf does not show type and operation"
expect 2 'exit status 2$' "$perf" all_reduce --ranks 17 -b 1k -e 1k -n 2 -d float8_e5m2
expect 2 'rank [01] .* exit status 2$' "$run" -n 2 "$perf" broadcast -r 2 -b 8 -e 8
expect 1 'rank 0 .* exit status 1$' "$perf" all_reduce --ranks 2 -b 8 -e 8 --json /no/such/folder/rows
# A name that there is not is found once, by the launcher, and the error message lists those that there are.
refused 'broadcast has no algorithm direct_two_shot; it has ' "$perf" broadcast --ranks 2 -b 8 -e 8 --algorithm direct_two_shot
for tool in "$run -n 4 $perf all_reduce -e 8" "$run -n 4 true" "$perf all_reduce --ranks 4"; do
    refused 'all_reduce has no algorithm rng; it has direct_one_shot, .*ring' env GYRE_ALGORITHM=all_reduce:rng $tool
    refused 'must be .*one of all_reduce, ' env GYRE_ALGORITHM=allreduce:ring $tool
    refused 'GYRE_TRANSPORT=shn,tcp: there is no transport shn; there are self, shm, rdma, tcp' env GYRE_TRANSPORT=shn,tcp $tool
    for setting in GYRE_HIERARCHY=hots GYRE_ORDER=canonicl GYRE_INTEGRITY=cr GYRE_ENDS=unifrm GYRE_LOG=inf GYRE_LAUNCHER=slrum; do
        refused "$setting is invalid: it must be " env $setting $tool
    done
done
# What a full disk does not take is no success.
for tool in "$info" "$train --quiet --epochs 1"; do
    expect 1 'cannot write the output(: No space left on device)?$' bash -c "exec $tool >/dev/full"
done
expect 1 'exit status 1$' bash -c "exec $perf all_reduce --ranks 2 -b 8 -e 64 -n 2 >/dev/full"
grep -q '^gyre-perf: cannot write the output: No space left on device$' "$work/err" || fail "gyre-perf to a full disk: $(cat "$work/err")"
expect 1 'exit status 1$' "$perf" all_reduce --ranks 2 -b 8 -e 64 -n 2 --json /dev/full
grep -q '^gyre-perf: cannot write /dev/full: No space left on device$' "$work/err" || fail "gyre-perf --json to a full disk: $(cat "$work/err")"
expect 1 'exit status 1$' "$perf" latency --ranks 2 -b 8 -e 64 -n 2 --json /dev/full
grep -q '^gyre-perf: cannot write /dev/full: No space left on device$' "$work/err" || fail "gyre-perf latency --json to a full disk: $(cat "$work/err")"
# The formulas of nccl-tests: busbw is algbw times 2(n-1)/n, (n-1)/n or 1, and algbw is bytes over time.
for case in all_reduce:1.5 reduce_scatter:0.75 all_gather:0.75 broadcast:1; do
    expect 0 '^$' "$perf" ${case%:*} --ranks 4 -b 64k -e 64k -n 3 --json "$work/json"
    sed -E 's/.*"bytes":([0-9]+).*"median":([0-9.]+).*"algbw":([0-9.e-]+),"busbw":([0-9.e-]+),.*/\1 \2 \3 \4/' "$work/json" |
        awk -v factor=${case#*:} 'function off(a, b) { return a / b > 1.001 || a / b < 0.999 }
            { n++; if ($1 != 65536 || off($1 / $2 / 1e3, $3) || off($3 * factor, $4)) bad = 1 } END { exit bad || n != 2 }' ||
        fail "gyre-perf ${case%:*}: bandwidths $(cat "$work/json")"
done

# gyre-train: the final event of its metrics.
expect 0 '^$' "$run" -n 2 "$train" --epochs 1 --quiet --metrics "$work/metrics"
for key in event accuracy loss steps seconds samples_per_second hidden_fraction ranks params_xxh3; do
    tail -n 1 "$work/metrics" | grep -q "\"$key\": *[^ ]" || fail "gyre-train: the final event has no $key: $(tail -n 1 "$work/metrics")"
done

[ $failures = 0 ]

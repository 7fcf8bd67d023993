#!/bin/bash
# gyre-run --hosts over real sshds, one in each of two network namespaces, with keys and a configuration of their own.
# Skipped where namespaces or sshd are missing. Usage: hosts_test.sh GYRE-RUN HOSTS-RANKS CASE
set -u
run=$1 ranks=$2 what=$3
HOSTS=2
sshd=$(PATH=$PATH:/usr/sbin:/sbin command -v sshd)
. "$(dirname "$0")/../system/hosts.sh"
[ -n "$sshd" ] && command -v ssh ssh-keygen >/dev/null || skip "there is no sshd (package openssh-server)"
failures=0
fail() { echo "FAILED: $*"; failures=$((failures + 1)); }
marker=gyre-hosts-$job # in the command line of every rank

# Host h1 is namespace 1, h2 namespace 2. The key of "bare" is good for a command that is not there, "far" is an address
# without a host.
make_keys()
{
    ssh-keygen -q -t ed25519 -N '' -f "$scratch/host" && ssh-keygen -q -t ed25519 -N '' -f "$scratch/key" &&
        ssh-keygen -q -t ed25519 -N '' -f "$scratch/bare" || skip "ssh-keygen makes no keys"
    cat "$scratch/key.pub" >"$scratch/authorized"
    echo "command=\"no-such-gyre-run --agent\" $(cat "$scratch/bare.pub")" >>"$scratch/authorized"
    cat >"$scratch/config" <<END
Host bare
    HostName 10.77.2.1
    IdentityFile $scratch/bare
Host h1
    HostName 10.77.1.1
Host h2
    HostName 10.77.2.1
Host far
    HostName 10.77.2.99
Host h1 h2 far
    IdentityFile $scratch/key
Host *
    IdentitiesOnly yes
    UserKnownHostsFile $scratch/known
    StrictHostKeyChecking accept-new
    LogLevel ERROR
    Port 2200
END
}

start_sshd() # NUMBER
{
    cat >"$scratch/sshd$1" <<END
Port 2200
HostKey $scratch/host
AuthorizedKeysFile $scratch/authorized
PidFile none
StrictModes no
UsePAM no
PermitRootLogin yes
SetEnv GYRE_HOST_ID=host$1
END
    mkdir -p /run/sshd
    ip netns exec "$job-$1" "$sshd" -D -e -f "$scratch/sshd$1" 2>"$scratch/sshd$1.log" &
    pids+=($!)
    local tries
    for ((tries = 0; tries < 100; tries++)); do
        why=$(in_h1 ssh -F "$scratch/config" -o BatchMode=yes "h$1" true 2>&1) && return
        sleep 0.1
    done
    skip "sshd does not let this user in: $why $(tail -n 3 "$scratch/sshd$1.log")"
}

in_h1() { ip netns exec "$job-1" "$@"; }
sanitizer=() # what makes sanitizers write their reports where .ci/run looks for them
for name in ASAN_OPTIONS UBSAN_OPTIONS LSAN_OPTIONS TSAN_OPTIONS; do [ -z "${!name:-}" ] || sanitizer+=(-x "$name"); done
gyre_run() { in_h1 timeout -k 1 60 "$run" "${sanitizer[@]}" --ssh "ssh -F $scratch/config" "$@"; }
now_ms() { local now=${EPOCHREALTIME//[.,]/}; echo $((now / 1000)); }

# expect STATUS PATTERN ARGUMENTS OF gyre-run...: the exit status, and the last line on stderr matches
expect()
{
    local wanted=$1 pattern=$2 status last
    shift 2
    gyre_run "$@" >"$scratch/out" 2>"$scratch/err" </dev/null
    status=$?
    ended=$(now_ms)
    judge "$wanted" "$pattern" "$status" "$*"
}
judge() # WANTED PATTERN STATUS WHAT
{
    local last
    last=$(tail -n 1 "$scratch/err")
    [ "$3" = "$1" ] || fail "$4: status $3, not $1: $(cat "$scratch/err")"
    [[ $last =~ $2 ]] || fail "$4: last line '$last' does not match '$2'; all: $(cat "$scratch/err")"
}

# Files that hold a text; the text is in no argument of the search itself.
holding() { grep -lszaF -f <(printf '%s\n' "$1") -- "${@:2}"; }
members() { holding "$marker" /proc/[0-9]*/cmdline | cut -d/ -f3; } # the marked processes that there are
# All ranks are gone, and were within two seconds of FROM, plus what this machine delayed a sleeper.
gone_since() # FROM
{
    local left late from=$1
    while left=$(members) && [ -n "$left" ] && [ $(($(now_ms) - from)) -lt 20000 ]; do sleep 0.02; done
    late=$(($(now_ms) - from))
    [ -z "$left" ] || fail "processes are left: $left"
    [ $late -le $((2000 + $(worst_lateness))) ] || fail "the ranks ended $late ms after the failure (lateness $(worst_lateness) ms)"
    echo "ended after $late ms"
}
wait_for_members() # NUMBER
{
    local tries
    for ((tries = 0; tries < 300; tries++)); do
        [ "$(members | wc -l)" -lt "$1" ] || return 0
        sleep 0.1
    done
    fail "there are $(members | wc -l) ranks, not $1: $(cat "$scratch/err")"
}
# Ranks that wait for SIGKILL, on both hosts, and gyre-run as the leader of a session; `job_pid` is its process.
start_stubborn()
{
    setsid ip netns exec "$job-1" "$run" "${sanitizer[@]}" --ssh "ssh -F $scratch/config" --hosts h1:2,h2:2 "$scratch/stubborn" "$marker" \
        >"$scratch/out" 2>"$scratch/err" </dev/null &
    job_pid=$!
    wait_for_members 5 # gyre-run has the marker, too
    sleep 0.3
}
end_stubborn() # WANTED PATTERN FROM WHAT
{
    local status=0
    wait "$job_pid" || status=$?
    judge "$1" "$2" "$status" "$4"
    gone_since "$3"
}
agent_of() { pgrep -f -- '--agent' | while read -r pid; do [ "$(ip netns identify "$pid")" != "$job-$1" ] || echo "$pid"; done; }

case_reduce()
{
    cd "$scratch" || exit 1
    local one two
    one=$(in_h1 readlink /proc/self/ns/net) two=$(ip netns exec "$job-2" readlink /proc/self/ns/net)
    export GYRE_MEET_TIMEOUT=77 HOSTS_TEST=kept
    expect 0 '^$' -l --hosts h1:2,h2:2 -x HOSTS_TEST "$ranks"
    for r in 0 1 2 3; do
        local net=$one
        [ $r -lt 2 ] || net=$two
        grep -qxF "[$r] rank $r of 4 local $((r % 2)) in $net at $scratch with 77 and kept" "$scratch/out" ||
            fail "rank $r is missing: $(cat "$scratch/out")"
    done
    [ "$(wc -l <"$scratch/out")" = 4 ] || fail "more than four lines: $(cat "$scratch/out")"
    # This host needs no ssh; a file of hosts; fewer ranks than slots.
    printf '# two hosts\nlocalhost slots=1\n\nh2:2 # the other\n' >"$scratch/hostfile"
    expect 0 '^$' --hostfile "$scratch/hostfile" -x HOSTS_TEST=new -np 2 "$ranks"
    grep -qF "rank 0 of 2 local 0 in $one" "$scratch/out" && grep -qF "rank 1 of 2 local 0 in $two" "$scratch/out" ||
        fail "ranks of the file: $(cat "$scratch/out")"
    grep -q 'and new$' "$scratch/out" || fail "-x NAME=VALUE: $(cat "$scratch/out")"
    expect 0 '^$' --hosts h2,localhost "$ranks"
    grep -qF "rank 0 of 2 local 0 in $two" "$scratch/out" && grep -q 'and (null)$' "$scratch/out" ||
        fail "ranks of another order: $(cat "$scratch/out")"
}

case_killed()
{
    watch_lateness
    expect 137 '^gyre-run: rank 3 on h2 \(pid [0-9]+\) was killed by signal 9 \(Killed\)$' --hosts h1:2,h2:2 "$ranks" kill 3
    local at
    at=$(sed -n 's/^failed at \([0-9]*\) ms$/\1/p' "$scratch/out")
    [ -n "$at" ] && [ $((ended - at)) -le $((2050 + $(worst_lateness))) ] || fail "the job ended at $ended ms, the rank at $at ms"
    grep -q '^rank 0: .*rank 3' "$scratch/err" || fail "rank 0 does not name rank 3: $(cat "$scratch/err")"
    # Ranks that take no notice of a failure, and of SIGTERM only by a line: those of the other host get it, too.
    expect 5 '^gyre-run: rank 1 on h1 \(pid [0-9]+\) ended with exit status 5$' --hosts h1:2,h2:1 \
        sh -c 'trap "echo asked $RANK" TERM; [ $RANK != 1 ] || { sleep 1; date +"failed at %s%3N ms"; exit 5; }; while :; do sleep 0.1; done' "$marker"
    at=$(sed -n 's/^failed at \([0-9]*\) ms$/\1/p' "$scratch/out")
    gone_since "$at"
    [ $((ended - at)) -le $((2000 + $(worst_lateness))) ] || fail "gyre-run ended at $ended ms, the rank at $at ms"
    for r in 0 2; do grep -qx "asked $r" "$scratch/out" || fail "rank $r got no SIGTERM: $(cat "$scratch/out")"; done
}

case_interrupt()
{
    local from
    watch_lateness
    start_stubborn
    from=$(now_ms)
    kill -INT -- "-$job_pid" # as a terminal does: gyre-run and its ssh
    end_stubborn 130 '^gyre-run: ended by signal 2 \(Interrupt\), and all ranks with it$' "$from" "Ctrl-C"
    start_stubborn
    from=$(now_ms)
    kill -KILL "$job_pid"
    wait "$job_pid"
    gone_since "$from"
}

case_lost()
{
    local from connection
    watch_lateness
    start_stubborn
    from=$(now_ms)
    connection=$(pgrep -P "$job_pid" -f ' h2 ')
    kill -KILL "$connection"
    end_stubborn 1 '^gyre-run: h2: the connection to it or its gyre-run was lost \(exit status 137\)' "$from" "ssh killed"
    start_stubborn
    from=$(now_ms)
    kill -KILL "$(agent_of 2)"
    end_stubborn 1 '^gyre-run: h2: the connection to it or its gyre-run was lost \(exit status [0-9]+\)' "$from" "agent killed"
}

case_unreachable()
{
    expect 1 '^gyre-run: far cannot be reached \(exit status 255 of .*\): ssh: connect to host 10.77.2.99 port 2200: ' \
        --hosts h1:2,far:2 "$ranks"
    [ -z "$(agent_of 1)" ] || fail "the agent of h1 is left"
    expect 127 '^gyre-run: bare: gyre-run cannot be started there: .*no-such-gyre-run' --hosts h1,bare "$ranks"
}

case_program()
{
    expect 127 "^gyre-run: h[12]: cannot start './none': No such file or directory$" --hosts h1:2,h2:2 ./none
    expect 126 "^gyre-run: h1: cannot start '/etc/passwd': Permission denied$" --hosts h1 /etc/passwd
    mkdir "$scratch/gone" && cd "$scratch/gone" && rmdir "$scratch/gone"
    expect 1 "^gyre-run: (cannot prepare the job|h[12]: cannot change to the working directory)" --hosts h1,h2 true
}

holders() { holding "$1" /proc/[0-9]*/cmdline /proc/[0-9]*/environ; }
case_secret()
{
    local secret
    (umask 077; od -An -N32 -tx1 /dev/urandom | tr -d ' \n' >"$scratch/secret")
    for own in no yes; do
        rm -f "$scratch"/secret.[0-9]
        [ $own = no ] || export GYRE_SECRET_FILE=$scratch/secret
        start_stubborn
        unset GYRE_SECRET_FILE
        secret=$(cat "$scratch/secret.0")
        [ ${#secret} = 64 ] || fail "the secret is '$secret'"
        for r in 1 2 3; do cmp "$scratch/secret.0" "$scratch/secret.$r" || fail "rank $r has another secret"; done
        [ $own = no ] || cmp "$scratch/secret" "$scratch/secret.3" || fail "the secret is not that of the file"
        [ -z "$(holders "$secret")" ] || fail "the secret is in $(holders "$secret")"
        X=$secret sleep 30 & # the search finds what is there
        pids+=($!)
        sleep 0.2
        [ -n "$(holders "$secret")" ] || fail "the search for the secret finds nothing"
        kill -TERM "$job_pid"
        wait "$job_pid"
    done
}

cat >"$scratch/stubborn" <<END
#!/bin/sh
# $marker
trap '' TERM INT HUP
(umask 077; cat "\$GYRE_SECRET_FILE" >"$scratch/secret.\$RANK")
while :; do sleep 0.1; done
END
chmod +x "$scratch/stubborn"
make_keys
start_sshd 1
start_sshd 2
"case_$what"
[ $failures = 0 ] || exit 1

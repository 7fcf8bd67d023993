#!/bin/bash
# Deaths while the kernel takes memory away: ranks are killed one after the other, and several at once
# (recovery_test.c), in a memory cgroup that is full all the time. A balloon beside them grows until the kernel kills
# it, again and again. So what can be reclaimed is: the ranks' own program, which is read from the disk anew, over and
# over. They are slow then, at any moment, and no live rank may be declared dead: the survivors agree, go on, and sum up
# just themselves. Without root or a memory cgroup (version 1 or 2) the same deaths come without the pressure, and the
# last line says so.
#   pressure_test.sh RECOVERY_TEST LIBGYRE DEATHS FOLDER        FOLDER: on a disk
set -euo pipefail
test=$1 library=$2 deaths=$3 folder=$4
group='' balloon=''
work=$(mktemp -d "$folder/pressure-XXXXXX")
stop() {
    [ -z "$balloon" ] || { kill "$balloon" 2>/dev/null || true; wait "$balloon" 2>/dev/null || true; }
    if [ -n "$group" ]; then
        local tries=50
        until rmdir "$group" 2>/dev/null || [ $((tries -= 1)) = 0 ]; do
            xargs -r kill -KILL <"$group/cgroup.procs" 2>/dev/null || true
            sleep 0.1
        done
    fi
    rm -rf "$work"
}
trap stop EXIT
trap 'exit 130' INT TERM

# A group of our own below the one of version 1 or 2 that has the memory controller.
make_group() {
    local at
    at=$(awk '$3 == "cgroup" && $4 ~ /(^|,)memory(,|$)/ {print $2; exit}' /proc/mounts)
    limit=memory.limit_in_bytes
    if [ -z "$at" ]; then
        at=$(awk '$3 == "cgroup2" {print $2; exit}' /proc/mounts)
        limit=memory.max
        [ -n "$at" ] && echo +memory >"$at/cgroup.subtree_control"
    fi
    [ -n "$at" ] && mkdir "$at/gyre-pressure-$$" && group=$at/gyre-pressure-$$ && [ -w "$group/$limit" ]
}

# Grows by what it reads, a line without an end, until the kernel kills it, which prefers it, or swap has taken all of
# it.
inflate() {
    trap 'kill $(jobs -p) 2>/dev/null; exit 0' TERM
    while :; do
        (echo 1000 >/proc/self/oom_score_adj && head -c 256M /dev/zero | tail -n 1 >/dev/null) &
        wait $! || true
    done
}

# What the group had to read again, and how often it was full.
reads() { awk '$1 == "total_pgmajfault" || $1 == "pgmajfault" {n = $2} END {print n + 0}' "$group/memory.stat"; }
fulls() { if [ -e "$group/memory.failcnt" ]; then cat "$group/memory.failcnt"; else awk '$1 == "max" {print $2}' "$group/memory.events"; fi; }

run() { # SCENARIO RANKS: in the group, where there is one, with a program of its own, whose pages are the group's
    GYRE_TEST_DEATHS=$deaths timeout 100 "$work/${test##*/}" "$1" "$2"
}

pressed=yes
make_group 2>/dev/null || pressed=no
export LD_LIBRARY_PATH=$work GYRE_TRANSPORT=${GYRE_TRANSPORT:-shm,tcp}
if [ $pressed = no ]; then
    cp "$test" "$work/" && cp "$library" "$work/libgyre.so.1"
    run one 4 && run more 6
    echo "without pressure: no memory cgroup that this user may make"
    exit 0
fi
echo $((64 << 20)) >"$group/$limit" # the ranks need some 20
(
    echo "$BASHPID" >"$group/cgroup.procs"
    cp "$test" "$work/" && cp "$library" "$work/libgyre.so.1"
)
(echo "$BASHPID" >"$group/cgroup.procs" && inflate 2>/dev/null) &
balloon=$!
for ((tries = 100; tries > 0; tries--)); do
    [ "$(fulls)" = 0 ] || break
    sleep 0.1
done
before=$(fulls)
for job in "one 4" "more 6"; do
    (
        echo "$BASHPID" >"$group/cgroup.procs"
        # shellcheck disable=SC2086 # two words
        run $job
    ) || { echo "failed under pressure: $job"; exit 1; }
done
full=$(($(fulls) - before))
echo "meanwhile the group was full $full times, and since the beginning $(reads) pages had to be read again"
[ "$full" -gt 0 ]

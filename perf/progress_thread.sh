#!/bin/bash
# What an all_reduce in the background costs a rank that computes: two hosts as network namespaces with links of RATE
# (scripts/hosts; root), one rank and one core each, a progress thread each; with the shapers' bucket of 128 KiB, of 32
# (which the kernel fills packet by packet), and of 32 with packets that fit. Beside it, in turns, what a bare exchange
# of as many bytes costs: less than that is not to be had on this machine.
#   perf/progress_thread.sh [ROUNDS [BUILD]]         15, build/demo; RATE=200mbit MIB=8 in the environment
set -euo pipefail
case ${1:-} in -h | --help) sed -n '2,/^set/{/^set/!s/^# \?//p}' "$0"; exit ;; esac
cd "$(dirname "$0")/.."
rounds=${1:-15} program=${2:-build/demo}/perf/costs/gyre-background rate=${RATE:-200mbit} mib=${MIB:-8}
[ -x "$program" ] || { echo "progress_thread: there is no $program: build it, or name another folder" >&2; exit 1; }
export GYRE_PROGRESS_THREAD=1
status=0
for case in 128k 32k 32k:16000; do
    burst=${case%:*} gso=${case#"$burst"}
    echo "# links of $rate each way, burst $burst${gso:+, packets of ${gso#:}}, $(nproc) cores, load $(cut -d' ' -f1 /proc/loadavg), $(date -u +%F)"
    # 1: it was never through in time
    BURST=$burst GSO=${gso#:} timeout 300 scripts/hosts 2 "$rate" 0 "$program" "$mib" "$rounds" || status=$?
done
exit "$status"

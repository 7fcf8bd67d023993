#!/bin/bash
# What GYRE_INTEGRITY costs: an all_reduce of 8 MiB, and one of 4 bytes, over TCP on loopback between two ranks, with
# each mode in turn. Round by round the time is divided by that of `off`; medians of these ratios over the rounds, with
# the quartiles.
#   perf/integrity.sh [ROUNDS [BUILD]]   7 rounds, build/demo
# On a busy machine the ratios are still of use, the absolute figures not.
set -euo pipefail
case ${1:-} in -h | --help) sed -n '2,/^set/{/^set/!s/^# \?//p}' "$0"; exit ;; esac
cd "$(dirname "$0")/.."
rounds=${1:-7} build=${2:-build/demo}
fail() { echo "integrity: $*" >&2; exit 1; }
[[ $rounds =~ ^[1-9][0-9]*$ ]] || { echo "integrity: ROUNDS is a number above zero, not '$rounds'" >&2; exit 2; }
[ -x "$build/perf/gyre-perf" ] || fail "there is no $build/perf/gyre-perf: build it, or name another folder"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

seconds() { # MODE BYTES CALLS: microseconds a call
    GYRE_INTEGRITY=$1 timeout 120 "$build/perf/gyre-perf" all_reduce --ranks 2 --transport tcp -b "$2" -e "$2" -n "$3" -w 2 -c 0 --json "$work/json" \
        >"$work/log" 2>&1 || fail "gyre-perf failed: $(tail -n 1 "$work/log")"
    python3 -c "import json; print(json.loads(open('$work/json').readline())['time_us']['median'])"
}

echo "# $(nproc) cores of $(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -n 1), load $(cut -d' ' -f1 /proc/loadavg), $(date -u +%F)"
for ((round = 1; round <= rounds; round++)); do
    for mode in off crc mac encrypt; do
        echo "$round $mode $(seconds $mode 8M 10) $(seconds $mode 4 300)" >>"$work/times"
    done
done
python3 - "$work/times" <<'END'
import statistics, sys
rows = [line.split() for line in open(sys.argv[1])]
def at(round_, mode, column):
    return next(float(row[column]) for row in rows if row[0] == round_ and row[1] == mode)
print("# time of a call, divided by that without; the median of off itself in microseconds")
for column, what in ((2, "8 MiB"), (3, "4 bytes")):
    rounds = sorted({row[0] for row in rows}, key=int)
    print(f"{what:8} off      {statistics.median(at(r, 'off', column) for r in rounds):.1f} us")
    for mode in ("crc", "mac", "encrypt"):
        ratios = [at(r, mode, column) / at(r, "off", column) for r in rounds]
        low, _, high = statistics.quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else ratios * 3
        print(f"{what:8} {mode:8} {statistics.median(ratios):.2f} (quartiles {low:.2f} to {high:.2f})")
END

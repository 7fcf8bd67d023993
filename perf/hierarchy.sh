#!/bin/bash
# What hierarchical all_reduce makes of several ranks on a host: hosts as network namespaces with links of RATE
# (scripts/hosts; root), in turns
#   one      one rank on each host                                      what the links give
#   auto     two ranks on each host, gyre's own choice                  should be the next one
#   nested   two ranks on each host, hierarchical                       at most 1.1 times `one`
#   flat     two ranks on each host, a ring that knows nothing of hosts
# and per size the median ratio to `one` of the same round, with its quartiles. The ranks run before everything else on
# the machine (chrt), where that is allowed: links of 200 Mbit/s leave the cores mostly idle, and what is asked for is
# the time on links. The load is printed.
#   perf/hierarchy.sh [HOSTS [ROUNDS [BUILD]]]   4 hosts, 5 rounds, build/demo
# RATE=200mbit SIZES="1M 4M 16M" in the environment.
set -euo pipefail
case ${1:-} in -h | --help) sed -n '2,/^set/{/^set/!s/^# \?//p}' "$0"; exit ;; esac
cd "$(dirname "$0")/.."
hosts=${1:-4} rounds=${2:-5} build=${3:-build/demo} rate=${RATE:-200mbit} sizes=${SIZES:-1M 4M 16M}
perf=$build/perf/gyre-perf
[ -x "$perf" ] || { echo "hierarchy: there is no $perf: build it, or name another folder" >&2; exit 1; }
[[ $rounds =~ ^[1-9][0-9]*$ ]] || { echo "hierarchy: ROUNDS is a number above zero, not '$rounds'" >&2; exit 2; }
export GYRE_SPIN=0 # the hosts share this machine's cores, which no rank can know
first=(chrt -r 1)
"${first[@]}" true 2>/dev/null || first=()
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

run() { # NAME RANKS-PER-HOST SIZE ARGUMENTS...; notes the time out of place
    local name=$1 ranks=$2 size=$3
    shift 3
    rm -f "$work/json"
    timeout 300 "${first[@]}" scripts/hosts "${hosts}x$ranks" "$rate" 0 "$perf" all_reduce -b "$size" -e "$size" -n 5 -w 1 --no-pin --json "$work/json" "$@" \
        >"$work/log" || { cat "$work/log" >&2; exit 1; }
    python3 - "$work/json" "$name" "$size" >>"$work/times" <<'END'
import json, sys
row = json.loads(open(sys.argv[1]).readline())
print(sys.argv[2], sys.argv[3], row["time_us"]["median"])
END
}

echo "# $hosts hosts, $rate each way, $(nproc) cores, ${first[*]:-no priority}, load $(cut -d' ' -f1-3 /proc/loadavg), $(date -u +%F)"
for ((round = 0; round < rounds; round++)); do
    for size in $sizes; do
        run one 1 "$size"
        run nested 2 "$size" --algorithm hierarchical
        run flat 2 "$size" --algorithm ring
        run auto 2 "$size"
    done
done
echo "# load at the end $(cut -d' ' -f1-3 /proc/loadavg)"
python3 - "$work/times" <<'END'
import collections, statistics, sys
times = collections.defaultdict(list)
for line in open(sys.argv[1]):
    name, size, time = line.split()
    times[size, name].append(float(time))
for size in dict.fromkeys(size for size, _ in times):
    one = times[size, "one"]
    print(f"{size:>5}  one {statistics.median(one) / 1e3:8.1f} ms", end="")
    for name in ("nested", "auto", "flat"):
        ratios = [mine / base for mine, base in zip(times[size, name], one)]
        low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else ratios * 3
        print(f"   {name} {middle:.2f} times ({low:.2f} to {high:.2f})", end="")
    print()
END

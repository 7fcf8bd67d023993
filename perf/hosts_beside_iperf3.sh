#!/bin/bash
# What gyre makes of shaped links between hosts, beside what iperf3 makes of them: hosts as network namespaces (scripts/hosts; root), one rank
# each, links of RATE both ways with a shaper's burst of 32 KiB. On the same links, in turns: `iperf3 --bidir` between two of the hosts, and
# an all_reduce over all of them. busbw is what each rank sends, and at the same time receives, per second, so it stands beside the mean of
# iperf3's two directions. Both run before everything else on the machine (chrt), where that is allowed. Medians over the rounds, with the quartiles; the ratio is taken round by round. To be reached: 0.95 from 4 MiB up.
#   perf/hosts_beside_iperf3.sh [HOSTS [ROUNDS [BUILD]]]         4 hosts, 5 rounds, build/demo; RATE=200mbit SIZES="4M 16M 64M" in the environment
set -euo pipefail
cd "$(dirname "$0")/.."
fail() { echo "hosts_beside_iperf3: $*" >&2; exit 1; }

if [ "${1:-}" = rank ]; then # a rank of scripts/hosts: BUILD ROUNDS WORK SIZES...
    perf=$2/perf/gyre-perf rounds=$3 work=$4
    shift 4
    first=(chrt -r 1)
    "${first[@]}" true 2>/dev/null || first=()
    export GYRE_SPIN=0 # the hosts share this machine's cores, which no rank can know
    await() { # FILE, which another rank makes
        local try
        for ((try = 0; try < 1200; try++)); do
            [ ! -e "$1" ] || return 0
            sleep 0.05
        done
        fail "rank $RANK waited 60 s for $(basename "$1")"
    }
    iperf() { # ROUND; rank 0 serves, rank 1 asks
        local file=$work/iperf.$1 try
        if [ "$RANK" = 0 ]; then
            timeout 60 "${first[@]}" iperf3 -s -1 >"$work/server.$1"
        elif [ "$RANK" = 1 ]; then
            for ((try = 0; try < 50; try++)); do
                sleep 0.1
                timeout 50 "${first[@]}" iperf3 -c "$MASTER_ADDR" --bidir -t 4 -O 1 -J >"$file.part" 2>/dev/null && break
            done
            mv "$file.part" "$file"
        fi
        await "$file"
    }
    gyre() { # ROUND SIZES...; each launch meets at a port of its own
        local round=$1 size
        shift
        for size in "$@"; do
            export MASTER_PORT=$((MASTER_PORT + 1))
            timeout 200 "${first[@]}" "$perf" all_reduce -b "$size" -e "$size" -n 5 -w 1 --no-pin --json "$work/gyre.$RANK.$round.$size" >"$work/log.$RANK" ||
                fail "rank $RANK: gyre-perf: $(tail -n 1 "$work/log.$RANK")"
        done
    }
    for ((round = 1; round <= rounds; round++)); do
        if ((round % 2)); then iperf "$round"; gyre "$round" "$@"; else gyre "$round" "$@"; iperf "$round"; fi
    done
    exit 0
fi

hosts=${1:-4} rounds=${2:-5} build=${3:-build/demo} rate=${RATE:-200mbit} sizes=${SIZES:-4M 16M 64M}
[[ $rounds =~ ^[1-9][0-9]*$ ]] || { echo "hosts_beside_iperf3: ROUNDS is a number above zero, not '$rounds'" >&2; exit 2; }
command -v iperf3 >/dev/null || fail "iperf3 is missing (scripts/install-dependencies ci)"
[ -x "$build/perf/gyre-perf" ] || fail "there is no $build/perf/gyre-perf: build it, or name another folder"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
echo "# $hosts hosts, $rate each way, burst 32 KiB, $(nproc) cores, $(iperf3 --version | head -n 1 | cut -d' ' -f1,2), load $(cut -d' ' -f1-3 /proc/loadavg), $(date -u +%F)"
# shellcheck disable=SC2086 # sizes are words
BURST=32k timeout 1800 scripts/hosts "$hosts" "$rate" 0 "$0" rank "$build" "$rounds" "$work" $sizes
python3 - "$work" "$rounds" $sizes <<'END'
import json, statistics, sys
from pathlib import Path
work, rounds, sizes = Path(sys.argv[1]), range(1, int(sys.argv[2]) + 1), sys.argv[3:]
def peer(r):
    end = json.loads((work / f"iperf.{r}").read_text())["end"]
    return (end["sum_received"]["bits_per_second"] + end["sum_received_bidir_reverse"]["bits_per_second"]) / 16e6
def own(r, size):
    return json.loads((work / f"gyre.0.{r}.{size}").read_text().splitlines()[0])
def show(values):
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3
    return f"{middle:.2f} (quartiles {low:.2f} to {high:.2f})"
peers = [peer(r) for r in rounds]
print("iperf3 --bidir, MB/s each way:", show(peers))
for size in sizes:
    rows = [own(r, size) for r in rounds]
    print(f"{size:>4} {rows[0]['algorithm']:20} busbw MB/s {show([row['busbw'] * 1e3 for row in rows])}",
          f"  ratio {show([row['busbw'] * 1e3 / p for row, p in zip(rows, peers)])}")
END

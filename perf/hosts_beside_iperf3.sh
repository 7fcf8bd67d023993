#!/bin/bash
# What gyre makes of shaped links between hosts, beside what iperf3 makes of them: hosts as network namespaces
# (scripts/hosts; root), one rank each, links of RATE both ways with a shaper's burst of 32 KiB. On the same links, in
# turns:
#   pair   iperf3 --bidir between two of the hosts
#   ring   iperf3 from every host to its right at once, as a ring loads the links: the most that the cores let pass
#   gyre   an all_reduce over all hosts
# busbw is what each rank sends, and at the same time receives, per second, so it stands beside the mean of iperf3's
# directions. All run before everything else on the machine (chrt), where that is allowed. Medians over the rounds, with
# the quartiles; ratios are taken round by round. To be reached: 0.95 of the pair from 4 MiB up. GSO as in
# scripts/hosts, here 16000: larger packets than the burst are cut one by one, and then it is the machine's cores that
# are measured (GSO= for that). CPU is how busy they were.
#   perf/hosts_beside_iperf3.sh [HOSTS [ROUNDS [BUILD]]]   4 hosts, 5 rounds, build/demo
# RATE=200mbit SIZES="4M 16M 64M" in the environment.
set -euo pipefail
case ${1:-} in -h | --help) sed -n '2,/^set/{/^set/!s/^# \?//p}' "$0"; exit ;; esac
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
    client() { # FILE ARGUMENTS...; until the server is there
        local file=$1 try
        shift
        for ((try = 0; try < 50; try++)); do
            sleep 0.1
            timeout 50 "${first[@]}" iperf3 "$@" -t 3 -O 1 -J >"$file.part" 2>/dev/null && break
        done
        mv "$file.part" "$file"
    }
    pair() { # ROUND; rank 0 serves, rank 1 asks
        if [ "$RANK" = 0 ]; then
            timeout 60 "${first[@]}" iperf3 -s -1 >"$work/server.$1"
        elif [ "$RANK" = 1 ]; then
            client "$work/pair.$1" -c "$MASTER_ADDR" --bidir
        fi
        await "$work/pair.$1"
    }
    ring() { # ROUND; every host is a server for its left and a client of its right
        local rank
        timeout 60 "${first[@]}" iperf3 -s -1 >"$work/server.$RANK.$1" &
        client "$work/ring.$RANK.$1" -c "10.77.$(((RANK + 1) % WORLD_SIZE)).1"
        wait $!
        for ((rank = 0; rank < WORLD_SIZE; rank++)); do await "$work/ring.$rank.$1"; done
    }
    busy() { # NAME COMMAND...: rank 0 notes which part of the cores' time COMMAND took
        local name=$1 before after
        shift
        before=$(head -n 1 /proc/stat)
        "$@"
        after=$(head -n 1 /proc/stat)
        [ "$RANK" != 0 ] || printf '%s\n' "$before" "$after" >"$work/busy.$name"
    }
    gyre() { # ROUND SIZES...; each launch meets at a port of its own
        local round=$1 size
        shift
        for size in "$@"; do
            export MASTER_PORT=$((MASTER_PORT + 1))
            timeout 200 "${first[@]}" "$perf" all_reduce -b "$size" -e "$size" -n 4 -w 1 --no-pin --json "$work/gyre.$RANK.$round.$size" >"$work/log.$RANK" ||
                fail "rank $RANK: gyre-perf: $(tail -n 1 "$work/log.$RANK")"
        done
    }
    for ((round = 1; round <= rounds; round++)); do
        ((round % 2)) || busy "gyre.$round" gyre "$round" "$@"
        pair "$round"
        busy "ring.$round" ring "$round"
        ((round % 2 == 0)) || busy "gyre.$round" gyre "$round" "$@"
    done
    exit 0
fi

hosts=${1:-4} rounds=${2:-5} build=${3:-build/demo} rate=${RATE:-200mbit} sizes=${SIZES:-4M 16M 64M}
[[ $rounds =~ ^[1-9][0-9]*$ ]] || { echo "hosts_beside_iperf3: ROUNDS is a number above zero, not '$rounds'" >&2; exit 2; }
command -v iperf3 >/dev/null || fail "iperf3 is missing (scripts/install-dependencies ci)"
[ -x "$build/perf/gyre-perf" ] || fail "there is no $build/perf/gyre-perf: build it, or name another folder"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export GSO=${GSO-16000}
control=${CONGESTION:-$(cat /proc/sys/net/ipv4/tcp_congestion_control)}
[ -z "${GYRE_TCP_CONGESTION:-}" ] || control="$control, gyre with $GYRE_TCP_CONGESTION"
echo "# $hosts hosts, $rate each way, burst 32 KiB, packets of ${GSO:-up to 64 KiB}, $control, $(nproc) cores, $(iperf3 --version | head -n 1 | cut -d' ' -f1,2), load $(cut -d' ' -f1-3 /proc/loadavg), $(date -u +%F)"
# shellcheck disable=SC2086 # sizes are words
BURST=32k timeout 1800 scripts/hosts "$hosts" "$rate" 0 perf/hosts_beside_iperf3.sh rank "$build" "$rounds" "$work" $sizes
python3 - "$work" "$rounds" "$hosts" $sizes <<'END'
import json, statistics, sys
from pathlib import Path
work, rounds, hosts, sizes = Path(sys.argv[1]), range(1, int(sys.argv[2]) + 1), int(sys.argv[3]), sys.argv[4:]
def end(name):
    return json.loads((work / name).read_text())["end"]
def pair(r):
    both = end(f"pair.{r}")
    return (both["sum_received"]["bits_per_second"] + both["sum_received_bidir_reverse"]["bits_per_second"]) / 16e6
def ring(r):
    return statistics.mean(end(f"ring.{h}.{r}")["sum_received"]["bits_per_second"] for h in range(hosts)) / 8e6
def own(r, size):
    return json.loads((work / f"gyre.0.{r}.{size}").read_text().splitlines()[0])
def busy(name):
    before, after = ([int(x) for x in line.split()[1:9]] for line in (work / f"busy.{name}").read_text().splitlines())
    spent = [b - a for a, b in zip(before, after)]
    return 1 - (spent[3] + spent[4]) / sum(spent)
def show(values):
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3
    return f"{middle:.2f} ({low:.2f} to {high:.2f})"
def ratios(rates, others):
    return show([a / b for a, b in zip(rates, others)])
pairs, rings = [pair(r) for r in rounds], [ring(r) for r in rounds]
print("pair, MB/s each way:", show(pairs))
print("ring, MB/s:", show(rings), " of the pair", ratios(rings, pairs), " CPU", show([busy(f"ring.{r}") for r in rounds]))
for size in sizes:
    rows = [own(r, size) for r in rounds]
    rates = [row["busbw"] * 1e3 for row in rows]
    print(f"{size:>4} {rows[0]['algorithm']:20} busbw MB/s {show(rates)}  of the pair {ratios(rates, pairs)}  of the ring {ratios(rates, rings)}")
print("gyre, all sizes: CPU", show([busy(f"gyre.{r}") for r in rounds]))
END

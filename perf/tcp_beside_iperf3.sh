#!/bin/bash
# What gyre makes of TCP on loopback, beside what iperf3 makes of it: an all_reduce of 64 MiB on two ranks and `iperf3
# --bidir` take turns, each process on a core of its own. With two ranks busbw is what each rank sends, and at the same
# time receives, per second, so it stands beside the mean of iperf3's two directions. Medians over the rounds, with the
# quartiles; the ratio is taken round by round.
#   perf/tcp_beside_iperf3.sh [ROUNDS [BUILD]]         7 rounds, build/demo; nothing else should run
set -euo pipefail
case ${1:-} in -h | --help) sed -n '2,/^set/{/^set/!s/^# \?//p}' "$0"; exit ;; esac
cd "$(dirname "$0")/.."
rounds=${1:-7} build=${2:-build/demo} port=${GYRE_IPERF_PORT:-25201}
fail() { echo "tcp_beside_iperf3: $*" >&2; exit 1; }
[[ $rounds =~ ^[1-9][0-9]*$ ]] || { echo "tcp_beside_iperf3: ROUNDS is a number above zero, not '$rounds'" >&2; exit 2; }
command -v iperf3 >/dev/null || fail "iperf3 is missing (scripts/install-dependencies ci)"
[ -x "$build/perf/gyre-perf" ] || fail "there is no $build/perf/gyre-perf: build it, or name another folder"
[ "$(nproc)" -ge 2 ] || fail "this needs two cores"
work=$(mktemp -d)
server=
cleanup() {
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

iperf() { # GB/s, the mean of the two directions as their receivers count them
    taskset -c 0 iperf3 -s -1 -p "$port" >/dev/null &
    server=$!
    for ((try = 0; try < 50; try++)); do
        sleep 0.1
        taskset -c 1 iperf3 -c 127.0.0.1 -p "$port" --bidir -t 3 -O 1 -J >"$work/iperf" 2>/dev/null && break
        kill -0 "$server" 2>/dev/null || break
    done
    wait "$server" || fail "iperf3's server failed; is port $port taken (GYRE_IPERF_PORT)?"
    server=
    python3 - "$work/iperf" <<'END'
import json, sys
end = json.load(open(sys.argv[1]))["end"]
print((end["sum_received"]["bits_per_second"] + end["sum_received_bidir_reverse"]["bits_per_second"]) / 16e9)
END
}

gyre() { # GB/s
    timeout 120 "$build/perf/gyre-perf" all_reduce --ranks 2 --transport tcp -b 64M -e 64M -n 20 --json "$work/gyre" >"$work/log" ||
        fail "gyre-perf failed: $(tail -n 1 "$work/log")"
    python3 -c "import json; print(json.loads(open('$work/gyre').readline())['busbw'])"
}

echo "# $(nproc) cores of $(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -n 1), Linux $(uname -r), $(iperf3 --version | head -n 1 | cut -d' ' -f1,2), load $(cut -d' ' -f1 /proc/loadavg), $(date -u +%F)"
for ((round = 1; round <= rounds; round++)); do
    if ((round % 2)); then
        peer=$(iperf) own=$(gyre)
    else
        own=$(gyre) peer=$(iperf)
    fi
    echo "$own $peer" | tee -a "$work/pairs" | awk -v round=$round '{ printf "round %d  gyre %.3f GB/s  iperf3 %.3f GB/s  ratio %.2f\n", round, $1, $2, $1 / $2 }'
done
python3 - "$work/pairs" <<'END'
import statistics, sys
pairs = [tuple(map(float, line.split())) for line in open(sys.argv[1])]
def show(name, values, unit):
    low, _, high = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3
    print(f"{name}  {statistics.median(values):.2f} (quartiles {low:.2f} to {high:.2f}){unit}")
show("gyre all_reduce, 64 MiB, 2 ranks, busbw    ", [own for own, _ in pairs], " GB/s")
show("iperf3 --bidir, mean of the two directions ", [peer for _, peer in pairs], " GB/s")
show("ratio                                      ", [own / peer for own, peer in pairs], "")
END

#!/bin/bash
# What a second link per host is worth: an all_reduce over hosts that are network namespaces (scripts/hosts; root), one
# rank each, with one link of RATE both ways and with LINKS of them (GYRE_INTERFACE), in turns. Prints medians over the
# rounds with the quartiles, and the ratio of the bandwidths, taken round by round. To be reached with two links: 1.9.
# Ranks run before everything else on the machine (chrt), where that is allowed; GSO as in scripts/hosts, and as in
# perf/hosts_beside_iperf3.sh.
#   perf/links.sh [HOSTS [ROUNDS [BUILD]]]   4 hosts, 5 rounds, build/demo
# LINKS=2 RATE=200mbit SIZES="4M 16M" in the environment.
set -euo pipefail
case ${1:-} in -h | --help) sed -n '2,/^set/{/^set/!s/^# \?//p}' "$0"; exit ;; esac
cd "$(dirname "$0")/.."
hosts=${1:-4} rounds=${2:-5} build=${3:-build/demo} links=${LINKS:-2} rate=${RATE:-200mbit} sizes=${SIZES:-4M 16M}
fail() { echo "links: $*" >&2; exit 1; }
[[ $rounds =~ ^[1-9][0-9]*$ ]] || { echo "links: ROUNDS is a number above zero, not '$rounds'" >&2; exit 2; }
[[ $links =~ ^[2-4]$ ]] || { echo "links: LINKS is 2, 3 or 4, not '$links'" >&2; exit 2; }
[ -x "$build/perf/gyre-perf" ] || fail "there is no $build/perf/gyre-perf: build it, or name another folder"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
first="chrt -r 1"
$first true 2>/dev/null || first=
export GSO=${GSO-16000} BURST=${BURST:-32k} GYRE_SPIN=0 # the hosts share this machine's cores, which no rank can know
measure() { # LINKS ROUND SIZE
    # shellcheck disable=SC2016 # for the rank's shell
    LINKS=$1 timeout 200 scripts/hosts "$hosts" "$rate" 0 sh -c 'json=$1.$RANK; shift; exec "$@" --json "$json"' rank "$work/$1.$2.$3" \
        ${first:+$first} "$build/perf/gyre-perf" all_reduce -b "$3" -e "$3" -n 4 -w 1 --no-pin >"$work/log" || fail "$1 links, $3: $(tail -n 1 "$work/log")"
}
control=${CONGESTION:-$(cat /proc/sys/net/ipv4/tcp_congestion_control)}
[ -z "${GYRE_TCP_CONGESTION:-}" ] || control="$control, gyre with $GYRE_TCP_CONGESTION"
echo "# $hosts hosts, links of $rate each way, burst $BURST, packets of ${GSO:-up to 64 KiB}, $control, $(nproc) cores, load $(cut -d' ' -f1-3 /proc/loadavg), $(date -u +%F)"
for ((round = 1; round <= rounds; round++)); do
    for size in $sizes; do
        if ((round % 2)); then order="1 $links"; else order="$links 1"; fi
        for each in $order; do measure "$each" "$round" "$size"; done
    done
done
# shellcheck disable=SC2086 # sizes are words
python3 - "$work" "$rounds" "$links" $sizes <<'END'
import json, statistics, sys
from pathlib import Path
work, rounds, links, sizes = Path(sys.argv[1]), range(1, int(sys.argv[2]) + 1), int(sys.argv[3]), sys.argv[4:]
def row(number, r, size):
    return json.loads((work / f"{number}.{r}.{size}.0").read_text().splitlines()[0])
def show(values):
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3
    return f"{middle:.2f} ({low:.2f} to {high:.2f})"
for size in sizes:
    one, more = [[row(n, r, size)["busbw"] * 1e3 for r in rounds] for n in (1, links)]
    print(f"{size:>4} {row(1, 1, size)['algorithm']:20} busbw MB/s: one link {show(one)}, {links} links {show(more)}, ratio {show([b / a for a, b in zip(one, more)])}")
END

#!/bin/bash
# gyre beside Open MPI over shaped hosts with two ranks each: network namespaces (scripts/hosts; root) with links of
# RATE both ways. In turns, an all_reduce of float32 by
#   gyre     its own choice, which is hierarchical
#   tuned    Open MPI with TCP between hosts and shared memory inside them, its component tuned
#   han      the same with han, its hierarchical component
# Open MPI is launched as over ssh, but what takes the ssh's place enters a namespace. A call's time is from the latest
# start to the latest end, results are checked. Medians over the rounds with the quartiles; ratios are taken round by
# round, to the faster of tuned and han. To be reached: 1.8.
#   perf/hosts_beside_open_mpi.sh [HOSTS [ROUNDS [BUILD]]]   4 hosts, 5 rounds, build/demo
# RATE=200mbit SIZES="1048576 4194304 16777216" in the environment, and CONGESTION as in scripts/hosts, for both.
set -euo pipefail
case ${1:-} in -h | --help) sed -n '2,/^set/{/^set/!s/^# \?//p}' "$0"; exit ;; esac
cd "$(dirname "$0")/.."
fail() { echo "hosts_beside_open_mpi: $*" >&2; exit 1; }
calls=5

if [ "${1:-}" = mpi ]; then # on host 0 of scripts/hosts, where all others only wait: WORK COMPONENT SIZE
    work=$2 component=$3 size=$4
    if [ "$RANK" != 0 ]; then
        for ((try = 0; try < 2400; try++)); do
            [ ! -e "$work/done" ] || exit 0
            sleep 0.05
        done
        fail "rank $RANK waited two minutes for mpirun"
    fi
    trap 'touch "$work/done"' EXIT
    own=$(ip netns identify $$) hosts=$((WORLD_SIZE / 2)) list=
    for ((i = 0; i < hosts; i++)); do list+=${list:+,}10.77.$i.1:2; done
    first=(chrt -r 1)
    "${first[@]}" true 2>/dev/null || first=()
    # What mpirun takes for ssh: an address, then a command. Hosts have names of their own, or Open MPI would think that
    # they are one.
    cat >"$work/agent" <<END
#!/bin/bash
i=\${1#10.77.}
i=\${i%.1}
shift
exec ip netns exec "${own%?}\$i" unshare --uts ${first[*]} bash -c "hostname host\$i; \$*"
END
    chmod +x "$work/agent"
    if [ "$component" = han ]; then
        choice=(--mca coll_han_priority 100 --mca coll_adapt_priority 0)
    else
        choice=(--mca coll_tuned_priority 100 --mca coll ^han)
    fi
    unset RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE
    timeout 100 unshare --uts bash -c 'hostname host0; exec "$@"' _ "${first[@]}" mpirun.openmpi --allow-run-as-root --host "$list" -n $((hosts * 2)) \
        --bind-to none --map-by slot --mca plm_rsh_agent "$work/agent" --mca plm_rsh_no_tree_spawn 1 --mca oob_tcp_if_include 10.77.0.0/16 \
        --mca pml ob1 --mca btl tcp,vader,self --mca btl_tcp_if_include 10.77.0.0/16 --mca mpi_yield_when_idle 1 "${choice[@]}" \
        "$work/hosts_mpi" "$size" "$calls" >"$work/time" 2>"$work/log" || fail "mpirun with $component: $(tail -n 3 "$work/log")"
    exit 0
fi

hosts=${1:-4} rounds=${2:-5} build=${3:-build/demo} rate=${RATE:-200mbit} sizes=${SIZES:-1048576 4194304 16777216}
[[ $rounds =~ ^[1-9][0-9]*$ ]] || { echo "hosts_beside_open_mpi: ROUNDS is a number above zero, not '$rounds'" >&2; exit 2; }
for tool in mpicc.openmpi mpirun.openmpi; do command -v "$tool" >/dev/null || fail "$tool is missing (packages openmpi-bin, libopenmpi-dev)"; done
perf=$build/perf/gyre-perf
[ -x "$perf" ] || fail "there is no $perf: build it, or name another folder"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mpicc.openmpi -O2 -o "$work/hosts_mpi" perf/hosts_mpi.c
export GYRE_SPIN=0 GSO=${GSO-16000} # as in hosts_beside_iperf3.sh
first=(chrt -r 1)
"${first[@]}" true 2>/dev/null || first=()

gyre() { # SIZE
    timeout 200 scripts/hosts "${hosts}x2" "$rate" 0 "${first[@]}" "$perf" all_reduce -b "$1" -e "$1" -n "$calls" -w 1 --no-pin --json "$work/json" >"$work/log" ||
        fail "gyre-perf: $(tail -n 1 "$work/log")"
    python3 -c 'import json, sys; print(json.loads(open(sys.argv[1]).readline())["time_us"]["median"])' "$work/json"
    rm -f "$work/json"
}
mpi() { # COMPONENT SIZE
    rm -f "$work/done" "$work/time"
    timeout 200 scripts/hosts "${hosts}x2" "$rate" 0 perf/hosts_beside_open_mpi.sh mpi "$work" "$@" >&2 || fail "Open MPI with $1"
    cat "$work/time"
}

echo "# $hosts hosts, 2 ranks each, $rate each way, packets of ${GSO:-up to 64 KiB}, ${CONGESTION:-$(sysctl -n net.ipv4.tcp_congestion_control)}, $(nproc) cores, $(mpirun.openmpi --version | head -n 1), load $(cut -d' ' -f1-3 /proc/loadavg), $(date -u +%F)"
for ((round = 0; round < rounds; round++)); do
    for size in $sizes; do
        time=$(gyre "$size")
        echo "$size gyre $time"
        time=$(mpi tuned "$size")
        echo "$size tuned $time"
        time=$(mpi han "$size")
        echo "$size han $time"
    done
done >"$work/times"
python3 - "$work/times" <<'END'
import collections, statistics, sys
times = collections.defaultdict(list)
for line in open(sys.argv[1]):
    size, name, time = line.split()
    times[int(size), name].append(float(time))
def show(values, digits):
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3
    return f"{middle:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"
for size in sorted({size for size, _ in times}):
    gyre, tuned, han = (times[size, name] for name in ("gyre", "tuned", "han"))
    print(f"{size:>9}", *(f" {name} {show([t / 1e3 for t in times[size, name]], 1)} ms" for name in ("gyre", "tuned", "han")),
          "  the best of Open MPI takes", show([min(a, b) / own for own, a, b in zip(gyre, tuned, han)], 2), "times gyre's")
END

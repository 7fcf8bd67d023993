#!/bin/bash
# RDMA beside the device's own tools, beside Open MPI over the same device and beside TCP over the same interface: in one guest with soft-RoCE
# (tests/rdma/guest), in one run, in turns, medians over the rounds and the ratios of them.
#   perf/rdma.sh [-q] [-r ROUNDS] [-t SECONDS] [BUILD]       7 rounds, 3000 s, build/demo; -q: one round of few calls, to see that it goes
#   perf/rdma.sh -i DEVICE [-q] [-r ROUNDS] [BUILD]          on this machine's own device, without a guest
# Times in a guest without KVM are those of an emulated processor: only the ratios mean anything, and only where nothing else runs.
# Point-to-point: perf/pair.c. ib_write_bw and ib_write_lat: perftest. Open MPI: its ucx or its openib path, whichever works.
set -euo pipefail
cd "$(dirname "$0")/.."
usage() { sed -n '2,/^set/{/^set/!s/^# \?//p}' "$0" >&2; exit 2; }
rounds=7 quick='' device='' seconds=3000
while getopts qr:i:t: option; do
    case $option in
    q) quick=-q ;;
    r) rounds=$OPTARG ;;
    i) device=$OPTARG ;;
    t) seconds=$OPTARG ;;
    *) usage ;;
    esac
done
shift $((OPTIND - 1))
build=${1:-build/demo}
[ -x "$build/perf/gyre-pair" ] || { echo "rdma.sh: there is no $build/perf/gyre-pair: build it, or name another folder" >&2; exit 1; }
build=$(cd "$build" && pwd)
[ -z "$quick" ] || rounds=1

# ---- outside: MPI's program, then the guest ----
if [ -z "${RDMA_PAIRS:-}" ]; then
    export RDMA_PAIRS=$PWD/build/pairs
    mkdir -p "$RDMA_PAIRS"
    mpicc.openmpi -O2 -std=gnu11 -DPAIR_MPI perf/pair.c -o "$RDMA_PAIRS/openmpi"
    if [ -z "$device" ]; then
        exec tests/rdma/guest -t "$seconds" env RDMA_PAIRS="$RDMA_PAIRS" perf/rdma.sh -i rxe0 $quick -r "$rounds" "$build"
    fi
fi

# ---- inside ----
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
interface=$(ls "/sys/class/infiniband/$device/device/net" 2>/dev/null | head -n 1 || true)
[ -n "$interface" ] || interface=$(cat "/sys/class/infiniband/$device/parent" 2>/dev/null || echo lo)
address=$(ip -4 -o addr show dev "$interface" | awk '{ sub("/.*", "", $4); print $4; exit }')
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 GYRE_RDMA_DEVICES=$device GYRE_LOG=warn
calls=200 sizes=(8 512 4096 65536 262144 1048576)
[ -z "$quick" ] || { calls=16 sizes=(8 4096 65536); }

# The index of the first GID of RoCE v2 over IPv4, which gyre takes, too.
gid() {
    local types=/sys/class/infiniband/$device/ports/1/gid_attrs/types i
    for ((i = 0; i < 16; i++)); do
        grep -q 'RoCE v2' "$types/$i" 2>/dev/null && grep -q ':ffff:' "/sys/class/infiniband/$device/ports/1/gids/$i" && { echo "$i"; return; }
    done
    echo 0
}
gid=$(gid)
own() { GYRE_TRANSPORT=rdma timeout 300 "$build/tools/gyre-run" -n 2 "$build/perf/gyre-pair" "$calls" "${sizes[@]}"; }
tcp() { env -u GYRE_RDMA_DEVICES GYRE_TRANSPORT=tcp GYRE_INTERFACE="$interface" timeout 300 "$build/tools/gyre-run" -n 2 "$build/perf/gyre-pair" "$calls" "${sizes[@]}"; }
ucx=(--mca pml ucx -x UCX_NET_DEVICES="$device:1" -x UCX_IB_GID_INDEX="$gid" -x UCX_TLS=rc,self)
openib=(--mca pml ob1 --mca btl openib,self --mca btl_openib_allow_ib true --mca btl_openib_if_include "$device" --mca btl_openib_cpc_include rdmacm --mca btl_openib_gid_index "$gid")
path=()
mpi() { timeout 300 mpirun.openmpi -n 2 --bind-to none --oversubscribe "${path[@]}" "$RDMA_PAIRS/openmpi" "$@"; }
openmpi() { [ ${#path[@]} -eq 0 ] || mpi "$calls" "${sizes[@]}"; }
# One size of one of perftest's programs, both ends here: its last line of figures.
perftest() { # PROGRAM BYTES
    timeout 120 "$1" -d "$device" -x "$gid" -F -s "$2" -n "$((calls < 5 ? 5 : calls))" >/dev/null 2>&1 &
    local server=$!
    for ((try = 0; try < 20; try++)); do
        sleep 0.5
        timeout 120 "$1" -d "$device" -x "$gid" -F -s "$2" -n "$((calls < 5 ? 5 : calls))" "$address" >"$work/perftest" 2>&1 && break
        kill -0 "$server" 2>/dev/null || break
    done
    wait "$server" || true
    awk '$1 ~ /^[0-9]+$/ && NF >= 4 { line = $0 } END { print line }' "$work/perftest"
}
device_tools() {
    local bytes figures
    for bytes in "${sizes[@]}"; do
        read -ra figures <<<"$(perftest ib_write_lat "$bytes")"
        [ ${#figures[@]} -lt 5 ] || echo "latency $bytes ${figures[4]}" # typical
        read -ra figures <<<"$(perftest ib_write_bw "$bytes")"
        [ ${#figures[@]} -lt 4 ] || echo "bandwidth $bytes $(awk "BEGIN { print ${figures[3]} * 1.048576 }")" # average, MiB/s
    done
}

for try in ucx openib; do
    declare -n words=$try
    path=("${words[@]}")
    if timeout 120 bash -c "$(declare -p path device RDMA_PAIRS); $(declare -f mpi); mpi 2 8" >"$work/try" 2>&1; then
        echo "# Open MPI $(mpirun.openmpi --version | awk 'NR == 1 { print $NF }') by $try"
        break
    fi
    echo "# Open MPI's $try does not work here: $(grep -iE 'error|reason|unreach|fail' "$work/try" | head -n 3 | tr '\n' ';')"
    path=()
done
echo "# $(nproc) cores of $(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -n 1), Linux $(uname -r), $device over $interface, load $(cut -d' ' -f1 /proc/loadavg)"
contenders=(own device_tools openmpi tcp)
for ((round = 0; round < rounds; round++)); do
    for ((i = 0; i < ${#contenders[@]}; i++)); do # each round begins with another one
        who=${contenders[$(((i + round) % ${#contenders[@]}))]}
        "$who" >"$work/out" 2>"$work/err" || { echo "rdma.sh: $who failed:" >&2; tail -n 5 "$work/out" "$work/err" >&2; exit 1; }
        sed "s/^/$who /" "$work/out" >>"$work/all"
    done
done
python3 - "$work/all" <<'END'
import collections, statistics, sys
figures = collections.defaultdict(list)
for line in open(sys.argv[1]):
    words = line.split()
    if len(words) == 4 and words[1] in ("latency", "bandwidth", "all_reduce"):
        figures[words[0], words[1], int(words[2])].append(float(words[3]))
medians = {key: statistics.median(values) for key, values in figures.items()}
print(f"{'what':<11}{'bytes':>9}{'gyre':>11}{'device':>11}{'Open MPI':>11}{'TCP':>11}    gyre is so many times as good as: device, Open MPI, TCP")
for what in ("latency", "bandwidth", "all_reduce"):
    for size in sorted({key[2] for key in figures if key[1] == what}):
        row = [medians.get((who, what, size)) for who in ("own", "device_tools", "openmpi", "tcp")]
        mine = row[0]
        ratios = [None if not other or not mine else mine / other if what == "bandwidth" else other / mine for other in row[1:]]
        shown = "".join(f"{'-' if value is None else f'{value:.2f}':>11}" for value in row)
        print(f"{what:<11}{size:>9}{shown}    " + "  ".join("-" if ratio is None else f"{ratio:.2f}" for ratio in ratios))
if not any(key[0] == "own" for key in figures) or not any(key[0] == "device_tools" for key in figures):
    sys.exit("rdma.sh: gyre or the device's tools gave no figure")
END

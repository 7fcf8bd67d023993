#!/bin/bash
# RDMA beside the device's own tools, beside Open MPI over the same device and beside TCP over the same interface: in
# one guest with soft-RoCE (tests/rdma/guest), in one run, in turns, medians over the rounds and the ratios of them.
#   perf/rdma.sh [-q] [-r ROUNDS] [-t SECONDS] [-s BYTES,...] [-c PEER,...] [-m MTU] [-k FILE] [BUILD]
#     5 rounds, 1500 s, build/demo
#   perf/rdma.sh -i DEVICE ...         on this machine's own device, without a guest
#     -q   one round of few calls, to see that it goes
#     -s   these sizes only    -c   these only: own, device_tools, openmpi, tcp    -k   appends every figure to FILE
#     -m   of the guest's interface; 9000, as networks for RoCE have it: packets carry 4096 bytes then, and 1024 with
#          1500. TCP between two processes of one host has 65536 in any case
# Times in a guest without KVM are those of an emulated processor: only the ratios mean anything, and only where nothing
# else runs. Point-to-point: perf/pair.c. perftest: ib_write_lat up to 4 KiB, ib_write_bw from 64 KiB. Open MPI: its ucx
# path. UCX (1.13) looks at the address in each packet over which two ranks find each other, and takes its kind from the
# completion's service level, as Mellanox' devices put it there; soft-RoCE does not, every packet of an IPv4 address is
# dropped, and the ranks wait for ever: UCX_UD_VERBS_ETH_DGID_CHECK=n. Its openib path connects by rdmacm, which
# Debian's is built without, or by udcm, which is for InfiniBand: "CPCs attempted: udcm".
set -euo pipefail
self=$(realpath "$0")
usage() { sed -n '2,/^set/{/^set/!s/^# \?//p}' "$self"; }
cd "$(dirname "$0")/.."
case ${1:-} in -h | --help) usage; exit ;; esac
rounds=5 quick='' device='' seconds=1500 mtu=9000 only='' who='own,device_tools,openmpi,tcp' kept=''
while getopts qr:i:t:s:c:m:k: option; do
    case $option in
    q) quick=-q ;;
    r) rounds=$OPTARG ;;
    i) device=$OPTARG ;;
    t) seconds=$OPTARG ;;
    s) only=$OPTARG ;;
    c) who=$OPTARG ;;
    m) mtu=$OPTARG ;;
    k) kept=$(realpath -m "$OPTARG") ;;
    *) usage >&2; exit 2 ;;
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
        out=$(mktemp -d)
        status=0
        tests/rdma/guest -t "$seconds" -m "$mtu" -o "$out" env RDMA_PAIRS="$RDMA_PAIRS" \
            bash -c 'perf/rdma.sh -k "$OUT/figures" "$@"' rdma -i rxe0 $quick -r "$rounds" -s "$only" -c "$who" "$build" || status=$?
        [ -z "$kept" ] || cat "$out/figures" >>"$kept" || status=1
        rm -rf "$out"
        exit "$status"
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
[ -z "$only" ] || IFS=, read -ra sizes <<<"$only"

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
openmpi() {
    timeout 300 mpirun.openmpi -n 2 --bind-to none --oversubscribe --mca pml ucx -x UCX_NET_DEVICES="$device:1" -x UCX_IB_GID_INDEX="$gid" \
        -x UCX_TLS=rc_v,ud_v,self -x UCX_UD_VERBS_ETH_DGID_CHECK=n "$RDMA_PAIRS/openmpi" "$calls" "${sizes[@]}"
}
# One size of one of perftest's programs, both ends here: its last line of figures.
perftest() { # PROGRAM BYTES CALLS
    timeout 120 "$1" -d "$device" -x "$gid" -F -s "$2" -n "$3" >/dev/null 2>&1 &
    local server=$!
    for ((try = 0; try < 20; try++)); do
        sleep 0.5
        timeout 120 "$1" -d "$device" -x "$gid" -F -s "$2" -n "$3" "$address" >"$work/perftest" 2>&1 && break
        kill -0 "$server" 2>/dev/null || break
    done
    wait "$server" || true
    awk '$1 ~ /^[0-9]+$/ && NF >= 4 { line = $0 } END { print line }' "$work/perftest"
}
device_tools() {
    local bytes figures most
    for bytes in "${sizes[@]}"; do
        if [ "$bytes" -le 4096 ]; then
            read -ra figures <<<"$(perftest ib_write_lat "$bytes" "$calls")"
            # typical; "inf" where it has not found the clock's rate
            [[ ! ${figures[4]:-} =~ ^[0-9.]+$ ]] || echo "latency $bytes ${figures[4]}"
        elif [ "$bytes" -ge 65536 ]; then
            most=$(((16 << 20) / bytes)) # 16 MiB will do
            read -ra figures <<<"$(perftest ib_write_bw "$bytes" "$((most < calls ? most : calls))")"
            # average, MiB/s
            [[ ! ${figures[3]:-} =~ ^[0-9.]+$ ]] || echo "bandwidth $bytes $(awk "BEGIN { print ${figures[3]} * 1.048576 }")"
        fi
    done
}

echo "# $(nproc) cores of $(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -n 1), Linux $(uname -r), $device over $interface (MTU $(cat "/sys/class/net/$interface/mtu" 2>/dev/null)), load $(cut -d' ' -f1 /proc/loadavg)"
IFS=, read -ra contenders <<<"$who"
for ((round = 0; round < rounds; round++)); do
    for ((i = 0; i < ${#contenders[@]}; i++)); do # each round begins with another one
        who=${contenders[$(((i + round) % ${#contenders[@]}))]}
        "$who" >"$work/out" 2>"$work/err" || { echo "rdma.sh: $who failed:" >&2; tail -n 5 "$work/out" "$work/err" >&2; exit 1; }
        sed "s/^/$who /" "$work/out" >>"$work/all"
    done
done
[ -z "$kept" ] || cat "$work/all" >>"$kept"
perf/rdma_table.py "$work/all"

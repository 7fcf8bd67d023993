#!/bin/bash
# A path that drops long packets and lets short ones pass: keep-alive probes are answered, data never arrives. Both
# ranks are told that the other is out of reach, and what to look at, in the time that a silent host has. Needs root and
# /dev/net/tun. Usage: blackhole_test.sh GYRE-PERF
set -eu
perf=$1 scratch=$(mktemp -d) one=gyre$$-1 two=gyre$$-2 relay=''
skip() { echo "skipped: $1"; [ "${GYRE_TEST_STRICT:-0}" != 1 ] || exit 1; exit 77; }
clean() {
    trap - EXIT
    [ -z "$relay" ] || kill "$relay" 2>/dev/null || true
    ip netns del "$one" 2>/dev/null || true
    ip netns del "$two" 2>/dev/null || true
    rm -rf "$scratch"
}
trap clean EXIT
trap 'exit 1' INT TERM
[ "$(id -u)" = 0 ] && ip netns add "$one" 2>/dev/null && ip netns add "$two" || skip "network namespaces need root"
[ -c /dev/net/tun ] || { mkdir -p /dev/net && mknod /dev/net/tun c 10 200; } 2>/dev/null || true
touch "$scratch/relay"
python3 "$(dirname "$0")/blackhole.py" "$one" "$two" 1280 50 >"$scratch/relay" 2>&1 &
relay=$!
for ((i = 0; i < 100; i++)); do
    grep -q ready "$scratch/relay" && break
    kill -0 "$relay" 2>/dev/null || skip "there is no TUN device: $(tail -n 1 "$scratch/relay")"
    sleep 0.05
done

export GYRE_SECRET=0123456789abcdef0123456789abcdef MASTER_ADDR=10.78.0.1 MASTER_PORT=29711 WORLD_SIZE=2 GYRE_PEER_TIMEOUT=1 GYRE_LOG=error
pids=()
for rank in 0 1; do
    RANK=$rank LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 timeout 30 ip netns exec "gyre$$-$((rank + 1))" "$perf" all_reduce -b 1M -e 1M -n 5 >"$scratch/$rank" 2>&1 &
    pids+=($!)
done
for rank in 0 1; do
    status=0
    wait "${pids[rank]}" || status=$?
    text=$(grep -m 1 "rank $((1 - rank))" "$scratch/$rank" || true)
    [ $status -ne 124 ] || { echo "rank $rank hangs"; cat "$scratch/$rank"; exit 1; }
    grep -q 'MTU' "$scratch/$rank" && [ -n "$text" ] || { echo "rank $rank: $(cat "$scratch/$rank")"; exit 1; }
    echo "rank $rank: $text"
done

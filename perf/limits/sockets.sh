#!/bin/bash
# limit-sockets over a pair of virtual Ethernet devices between two network namespaces (root), unshaped.
#   perf/limits/sockets.sh [MIB [BUILD]]         256, build/demo
set -euo pipefail
case ${1:-} in -h | --help) sed -n '2,/^set/{/^set/!s/^# \?//p}' "$0"; exit ;; esac
cd "$(dirname "$0")/../.."
mib=${1:-256} program=${2:-build/demo}/perf/limits/limit-sockets tag=gys$$
[ -x "$program" ] || { echo "sockets: there is no $program: build it, or name another folder" >&2; exit 1; }
trap 'ip netns del ${tag}a 2>/dev/null || true; ip netns del ${tag}b 2>/dev/null || true' EXIT
ip netns add ${tag}a
ip netns add ${tag}b
ip -n ${tag}a link add eth0 type veth peer name eth0 netns ${tag}b
ip -n ${tag}a addr add 10.78.0.1/24 dev eth0
ip -n ${tag}b addr add 10.78.0.2/24 dev eth0
ip -n ${tag}a link set eth0 up
ip -n ${tag}b link set eth0 up
timeout 120 ip netns exec ${tag}b "$program" "$mib" dial 10.78.0.1 &
timeout 120 ip netns exec ${tag}a "$program" "$mib" serve 10.78.0.1
wait $!

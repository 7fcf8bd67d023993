#!/bin/bash
# Seven ranks send to one that computes, on a host whose kernel lets one connection wait at a listener: a network
# namespace of its own. Needs root. Usage: backlog_test.sh GYRE-RUN BACKLOG-TEST
set -eu
skip() { echo "skipped: $1"; [ "${GYRE_TEST_STRICT:-0}" != 1 ] || exit 1; exit 77; }
if [ -z "${GYRE_TEST_OWN_NAMESPACE:-}" ]; then
    unshare --net true 2>/dev/null || skip "a network namespace needs root"
    export GYRE_TEST_OWN_NAMESPACE=1
    exec unshare --net bash "$0" "$@"
fi
ip link set lo up
[ -w /proc/sys/net/core/somaxconn ] && echo 1 >/proc/sys/net/core/somaxconn || skip "this kernel has one backlog for all"
dropped() { awk '/^TcpExt/ && !n {for (i = 1; i <= NF; i++) if ($i == "ListenOverflows") n = i; next} /^TcpExt/ {print $n}' /proc/net/netstat; }
env -u GYRE_TEST_OWN_NAMESPACE GYRE_TRANSPORT=tcp GYRE_PEER_TIMEOUT=1 GYRE_LOG=error "$1" -n 8 "$2" 10000
echo "connections that the kernel had no room for: $(dropped)"
[ "$(dropped)" -ge 10 ]

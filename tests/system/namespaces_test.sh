#!/bin/bash
# Hosts as network namespaces around a router: 2 to 4 hosts with 1 to 3 ranks each, IPv4 and IPv6, and on every host one
# more interface that leads nowhere. Each rank runs the whole correctness sweep. Needs root. Usage: namespaces_test.sh
# SWEEP-TEST
set -eu
test=$1
if [ "$(id -u)" != 0 ] || ! ip netns add "gyre$$x" 2>/dev/null; then
    echo "skipped: network namespaces need root"
    [ "${GYRE_TEST_STRICT:-0}" = 1 ] && exit 1
    exit 77
fi
ip netns del "gyre$$x"
job=gyre$$
pids=()

clean()
{
    trap - EXIT
    for pid in "${pids[@]}"; do kill -KILL "$pid" 2>/dev/null || true; done
    wait 2>/dev/null || true
    for name in $(ip netns list | awk -v job="$job-" 'index($1, job) == 1 {print $1}'); do ip netns del "$name"; done
}
trap clean EXIT
trap 'exit 1' INT TERM

# A router, itself a namespace, so that the machine's own network is not touched; veth is the one kind of device that is needed.
ip netns add "$job-r"
ip netns exec "$job-r" sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward; echo 1 >/proc/sys/net/ipv6/conf/all/forwarding'
for host in 1 2 3 4; do
    ns=$job-$host
    ip netns add "$ns"
    ip -n "$ns" link add net type veth peer name "port$host" netns "$job-r"
    ip -n "$job-r" addr add "10.77.$host.254/24" dev "port$host"
    ip -n "$job-r" addr add "fd77:0:0:$host::fe/64" dev "port$host" nodad
    ip -n "$job-r" link set "port$host" up
    ip -n "$ns" link set lo up
    ip -n "$ns" addr add "10.77.$host.1/24" dev net
    ip -n "$ns" addr add "fd77:0:0:$host::1/64" dev net nodad
    ip -n "$ns" link set net up
    ip -n "$ns" route add default via "10.77.$host.254"
    ip -n "$ns" -6 route add default via "fd77:0:0:$host::fe"
    ip -n "$ns" link add nowhere type veth peer name silent
    ip -n "$ns" addr add 192.0.2.7/24 dev nowhere
    ip -n "$ns" addr add "fd99::7/64" dev nowhere nodad
    ip -n "$ns" link set silent up
    ip -n "$ns" link set nowhere up
done

# job ADDRESS PORT RANKS-ON-HOST-1 RANKS-ON-HOST-2 ...
run_job()
{
    local address=$1 port=$2 host=0 rank=0 size=0 failed=0 local_rank count
    shift 2
    for count; do size=$((size + count)); done
    pids=()
    for count; do
        host=$((host + 1))
        for ((local_rank = 0; local_rank < count; local_rank++)); do
            RANK=$rank WORLD_SIZE=$size LOCAL_RANK=$local_rank LOCAL_WORLD_SIZE=$count MASTER_ADDR=$address MASTER_PORT=$port \
                GYRE_HOST_ID=host$host GYRE_SECRET=namespaces-test-secret-$job GYRE_MEET_TIMEOUT=30 \
                timeout -s KILL 120 ip netns exec "$job-$host" "$test" links &
            pids+=($!)
            rank=$((rank + 1))
        done
    done
    for pid in "${pids[@]}"; do wait "$pid" || failed=1; done
    pids=()
    [ $failed = 0 ] || { echo "failed: ranks per host $*, address $address"; exit 1; }
    echo "ranks per host $*, address $address: every bit right"
}

run_job 10.77.1.1 29501 1 1
run_job fd77:0:0:1::1 29502 1 1
run_job 10.77.1.1 29503 2 1 3
run_job fd77:0:0:1::1 29504 1 2 1 1

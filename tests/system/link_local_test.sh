#!/bin/bash
# Two hosts on one link, which have no addresses but those that IPv6 gives every interface, and number their interfaces
# otherwise: ranks meet by such an address, by a file; and where another interface than the first has an address that is
# good everywhere, by that. Each rank runs the correctness sweep of the common types, with GYRE_TEST_SHORT=1 of one.
# Needs root. Usage: link_local_test.sh SWEEP-TEST
set -eu
test=$1
types=${GYRE_TEST_SHORT:+one}
types=${types:-common}
HOSTS=0
. "$(dirname "$0")/hosts.sh"

make_neighbour() # NUMBER
{
    local ns=$job-$1
    ip netns add "$ns"
    ip -n "$ns" link add pad type veth peer name dap
    ip -n "$job-r" link set "link$1" netns "$ns" name net
    ip -n "$ns" link set lo up
    ip -n "$ns" link set net addrgenmode none
    ip -n "$ns" addr add "fe80::$1/64" dev net nodad
    ip -n "$ns" link set net up
}

ip -n "$job-r" link add link1 index 101 type veth peer name link2 index 202
make_neighbour 1
make_neighbour 2
index() { ip netns exec "$job-$1" cat /sys/class/net/net/ifindex; }
[ "$(index 1)" != "$(index 2)" ] || { echo "failed: both call it number $(index 1)"; exit 1; }

run_job() # WHAT PORT RANKS-ON-HOST-1 RANKS-ON-HOST-2
{
    start_job "fe80::1%net" "$2" "$3 $4" "$test" links "$types"
    end_job || { echo "failed: $1"; exit 1; }
    echo "$1, $3 and $4 ranks: every bit right"
}

run_job "by an address of the link" 29531 2 2
GYRE_ADDRESS=file://$scratch/meet run_job "by a file" 29532 1 2
for host in 1 2; do ip -n "$job-$host" addr add "fd78::$host/64" dev net nodad; done
for device in pad dap; do ip -n "$job-2" link set "$device" up; done # they come first
GYRE_ADDRESS=file://$scratch/meet run_job "by a better address of another interface" 29533 2 1

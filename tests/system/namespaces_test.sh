#!/bin/bash
# Hosts as network namespaces around a router: 2 to 4 hosts with 1 to 3 ranks each, IPv4 and IPv6, and on every host one
# more interface that leads nowhere; and a rank 0 whose own name means loopback to itself. Each rank runs the
# correctness sweep of the common types, with GYRE_TEST_SHORT=1 of one. Needs root. Usage: namespaces_test.sh SWEEP-TEST
set -eu
test=$1
types=${GYRE_TEST_SHORT:+one}
types=${types:-common}
HOSTS=4
. "$(dirname "$0")/hosts.sh"

# ADDRESS PORT RANKS-ON-HOST-1 RANKS-ON-HOST-2 ...; with `groups` set the hierarchical algorithms
run_job()
{
    local address=$1 port=$2
    shift 2
    start_job "$address" "$port" "$*" "$test" links "$types" ${groups:-}
    end_job || { echo "failed: ranks per host $*, address $address"; exit 1; }
    echo "ranks per host $*, address $address: every bit right"
}

run_job 10.77.1.1 29501 1 1
run_job fd77:0:0:1::1 29502 1 1
run_job 10.77.1.1 29503 2 1 3
run_job fd77:0:0:1::1 29504 1 2 1 1
groups=groups run_job 10.77.1.1 29506 1 2 1

# As Debian writes /etc/hosts: the own name is 127.0.1.1, the others' are addresses. One of the others has IPv6 only.
name_host 1 127.0.1.1 gyre-one
name_host 2 10.77.1.1 gyre-one
name_host 3 fd77:0:0:1::1 gyre-one
run_job gyre-one 29505 2 1 1

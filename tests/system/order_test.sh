#!/bin/bash
# The same bits on every run: the hashes that rank 0 prints, of three runs per transport. Usage: order_test.sh GYRE-RUN
# CALLS-TEST
set -eu
for transport in shm tcp; do
    for size in 3 4; do
        first=
        for run in 1 2 3; do
            hash=$(GYRE_TRANSPORT=$transport "$1" -n $size "$2" order)
            [ -n "$hash" ] || { echo "no hash"; exit 1; }
            [ "${first:=$hash}" = "$hash" ] || { echo "$transport, $size ranks: run $run gave $hash after $first"; exit 1; }
        done
    done
done

#!/bin/bash
# The test of order for several world sizes. Usage: order_test.sh GYRE-RUN ORDER-TEST shm|tcp|mixed SIZE...
set -eu
run=$1 test=$2 where=$3
shift 3
for size; do
    "$run" -l -n "$size" "$test" "$where" || { echo "failed with $size ranks, $where"; exit 1; }
done

#!/bin/bash
# The sweep for several world sizes over one transport. Usage: sweep_test.sh GYRE-RUN SWEEP-TEST TRANSPORT SIZE...
set -eu
run=$1 test=$2 transport=$3
shift 3
reach=links
[ "$transport" = shm ] && reach=windows
for size; do
    GYRE_TRANSPORT=$transport "$run" -l -n "$size" "$test" $reach || { echo "failed with $size ranks over $transport"; exit 1; }
done

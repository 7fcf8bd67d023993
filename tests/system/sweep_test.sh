#!/bin/bash
# The sweep for several world sizes over one transport; of more than four ranks every type only with GYRE_TEST_FULL=1.
# Usage: sweep_test.sh GYRE-RUN SWEEP-TEST TRANSPORT SIZE...
set -eu
run=$1 test=$2 transport=$3
shift 3
reach=links
[ "$transport" = shm ] && reach=windows
for size; do
    types=common
    [ "$size" -gt 4 ] && [ -z "${GYRE_TEST_FULL:-}" ] || types=
    GYRE_TRANSPORT=$transport "$run" -l -n "$size" "$test" $reach $types || { echo "failed with $size ranks over $transport"; exit 1; }
done

#!/bin/bash
# The sweep for several world sizes over one transport; of more than four ranks every type only with GYRE_TEST_FULL=1,
# with GYRE_TEST_SHORT=1 sums of float32 only.
# TRANSPORT mixed: two hosts by GYRE_HOST_ID, whose ranks take turns, so that every algorithm has links of shared memory
# and of TCP; three types, and every type and up to nine ranks with GYRE_TEST_FULL=1.
# Usage: sweep_test.sh GYRE-RUN SWEEP-TEST TRANSPORT SIZE...
set -eu
run=$1 test=$2 transport=$3
shift 3
reach=links
[ "$transport" = shm ] && reach=shm
if [ "$transport" = mixed ]; then
    types=common sizes=$*
    [ -z "${GYRE_TEST_SHORT:-}" ] || types=one
    [ -z "${GYRE_TEST_FULL:-}" ] || types= sizes='2 3 4 5 6 7 8 9'
    for size in $sizes; do
        # shellcheck disable=SC2016 # each rank's own RANK
        GYRE_SECRET=0123456789abcdef0123456789abcdef "$run" -l -n "$size" -- sh -c 'GYRE_HOST_ID=h$((RANK % 2)) exec "$@"' sh "$test" links $types ||
            { echo "failed with $size ranks on two hosts"; exit 1; }
    done
    exit 0
fi
for size; do
    types=common
    [ "$size" -gt 4 ] && [ -z "${GYRE_TEST_FULL:-}" ] || types=
    [ -z "${GYRE_TEST_SHORT:-}" ] || types=one
    GYRE_TRANSPORT=$transport "$run" -l -n "$size" "$test" $reach $types || { echo "failed with $size ranks over $transport"; exit 1; }
done

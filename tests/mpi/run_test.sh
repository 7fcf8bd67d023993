#!/bin/bash
# Runs a program under the mpirun of an MPI library, with the interposer before it, and looks at what the interposer
# says it has done.
#   run_test.sh openmpi|mpich RANKS SECONDS INTERPOSER [--taken NAMES] [--left NAMES] [--transport NAMES] PROGRAM
#   [ARGUMENT...]
# --taken: calls that gyre must have taken over, or "none"; --left: the only ones that may have been left to MPI;
# --transport: those of gyre; between commas.
set -uo pipefail
library=$1 ranks=$2 seconds=$3 interposer=$4
shift 4
taken='' left=any
unset GYRE_SECRET GYRE_SECRET_FILE GYRE_TIMEOUT GYRE_TRANSPORT GYREMPI_PASS
while :; do
    case $1 in
    --taken) taken=$2; shift 2 ;;
    --left) left=$2; shift 2 ;;
    --transport) export GYRE_TRANSPORT=$2; shift 2 ;;
    *) break ;;
    esac
done
fail() { printf '%s\n' "$output"; echo "run_test.sh: $*"; exit 1; }

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl_vader_single_copy_mechanism=none GYREMPI_REPORT=1
export GYREMPI_NEAR=8 # whatever processors are here
case $library in
openmpi) start=(mpirun.openmpi --oversubscribe -n "$ranks") ;;
mpich) start=(mpirun.mpich -n "$ranks") ;;
esac
output=$(timeout --kill-after=5 "$seconds" "${start[@]}" env LD_PRELOAD="$interposer" "$@" 2>&1)
status=$?

[ $status -eq 0 ] || fail "status $status"
line=$(grep '^gyre-mpi: rank 0: taken over:' <<<"$output") || fail "no report of the interposer"
if [ "$taken" = none ]; then
    [[ $line == *"taken over:; left"* ]] || fail "a call was taken over: $line"
    taken=''
fi
for name in ${taken//,/ }; do
    [[ "${line%%; left*}" == *" $name="* ]] || fail "MPI_$name was not taken over: $line"
done
for name in $(sed 's/.*left to MPI://' <<<"$line"); do
    [[ $left = any || ",$left," == *",${name%=*},"* ]] || fail "MPI_$name was left to MPI: $line"
done

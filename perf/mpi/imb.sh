#!/bin/bash
# IMB-MPI1 on two ranks, each bound to a core, with the interposer and without it in turns, one call after the other: a
# line "LIBRARY alone|gyre LAUNCH CALL BYTES MICROSECONDS" per row of IMB's tables (t_avg), on standard output. table.py
# makes tables of them.
#   perf/mpi/imb.sh [-p SECONDS] BUILD LAUNCHES openmpi=IMB-MPI1 mpich=IMB-MPI1
#     -p          pause after each program, for the others on a machine in use
#     IMB-MPI1    a path; built with that library's wrappers: in src_cpp,
#                 make TARGET=MPI1 CC=mpicc.openmpi CXX=mpicxx.openmpi
set -euo pipefail
case ${1:-} in -h | --help) sed -n '2,/^set/{/^set/!s/^# \?//p}' "$0"; exit ;; esac
pause=0
[ "$1" != -p ] || { pause=$2; shift 2; }
build=$(cd "$1" && pwd) launches=$2
shift 2
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
calls=(Barrier Bcast Reduce Allreduce Reduce_scatter Reduce_scatter_block Allgather Allgatherv Alltoall Alltoallv Gather Gatherv Scatter Scatterv)

launch() { # LIBRARY gyre|alone PROGRAM CALL
    local start=(timeout --kill-after=5 120 mpirun.openmpi --bind-to core -n 2)
    [ "$1" = openmpi ] || start=(timeout --kill-after=5 120 mpirun.mpich -bind-to core -n 2)
    [ "$2" = alone ] || start+=(env "LD_PRELOAD=$build/bindings/mpi/libgyre-mpi-$1.so")
    "${start[@]}" "$3" -npmin 2 -msglog 0:20 -iter 1000,100 -time 10 "$4" </dev/null
}

# Below a header of columns the first one is the size, in Barrier's table the number of repetitions.
rows() { # what is put before each row
    awk -v before="$1" '/^ +#/ {table = 1; next} NF == 0 || /^#/ {table = 0} table {print before, NF == 4 ? 0 : $1, $NF}'
}

for ((number = 1; number <= launches; number++)); do
    for call in "${calls[@]}"; do
        for pair; do
            turns=(alone gyre)
            ((number % 2)) || turns=(gyre alone)
            for how in "${turns[@]}"; do
                launch "${pair%%=*}" "$how" "${pair#*=}" "$call" | rows "${pair%%=*} $how $number $call"
                sleep "$pause"
            done
        done
    done
done

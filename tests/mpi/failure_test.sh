#!/bin/bash
# Rank 1 of failure.c is killed; every other rank must name it, and end within a second.
#   failure_test.sh openmpi|mpich RANKS INTERPOSER PROGRAM return|fatal
# The launcher would end the others itself: each rank runs in a session of its own, with its output in a file, so that
# only gyre tells it.
set -uo pipefail
library=$1 ranks=$2 interposer=$3 program=$4 handler=$5
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() { tail -n +1 "$folder"/*; echo "failure_test.sh: $*"; exit 1; }

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
unset GYRE_SECRET GYRE_SECRET_FILE GYRE_TIMEOUT GYREMPI_PASS GYREMPI_REPORT
case $library in
openmpi) start=(mpirun.openmpi --oversubscribe --enable-recovery -n "$ranks") ;;
mpich) start=(mpirun.mpich -disable-auto-cleanup -n "$ranks") ;;
esac
cat >"$folder/rank" <<EOF
rank=\${OMPI_COMM_WORLD_RANK:-\$PMI_RANK}
LD_PRELOAD=$interposer $program $handler >$folder/output.\$rank 2>&1
date +%s%3N >$folder/end.\$rank
EOF
timeout --kill-after=5 25 "${start[@]}" setsid --wait bash "$folder/rank" >"$folder/launcher" 2>&1

others=()
for ((rank = 0; rank < ranks; rank++)); do
    [ $rank -eq 1 ] || others+=("$rank")
done
for ((i = 0; i < 250; i++)); do # the launcher may end before they do
    [ "$(cat "$folder"/end.* 2>/dev/null | wc -l)" -lt "$ranks" ] || break
    sleep 0.1
done
for rank in "${others[@]}"; do
    [ -s "$folder/end.$rank" ] || fail "rank $rank has not ended"
    took=$(($(<"$folder/end.$rank") - $(<"$folder/end.1")))
    [ $took -lt 1000 ] || fail "rank $rank ended $took ms after rank 1"
    grep -q "^gyre-mpi: rank $rank of $ranks: MPI_[A-Z][a-z]*: .*rank 1" "$folder/output.$rank" || fail "rank $rank does not name rank 1"
    [ "$handler" = fatal ] || grep -q "^survivor $rank: right class in time" "$folder/output.$rank" || fail "rank $rank has another error"
    echo "rank $rank ended $took ms after rank 1"
done

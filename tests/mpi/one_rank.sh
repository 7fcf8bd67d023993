#!/bin/bash
# Runs a program with a setting that only rank 1 has: what it says must hold on every rank.
#   one_rank.sh NAME=VALUE PROGRAM [ARGUMENT...]
[ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" != 1 ] || export "$1"
shift
exec "$@"

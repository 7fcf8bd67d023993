#!/bin/bash
# Runs a program with a setting in rank 1 that gyre refuses: its gyre communicator cannot be made, and every rank must leave its calls to MPI.
#   one_fails.sh PROGRAM [ARGUMENT...]
[ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" != 1 ] || export GYRE_TRANSPORT=nonsense
exec "$@"

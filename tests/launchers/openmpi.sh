# Open MPI's mpirun: rank and size from its variables, the meeting through its PMIx server.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
mpirun="mpirun.openmpi -n 4"
four_ranks "mpirun" $mpirun
meets "mpirun, TCP between ranks" $mpirun -x GYRE_TRANSPORT=tcp
meets "mpirun, MASTER_ADDR" $mpirun -x MASTER_ADDR=127.0.0.1 -x MASTER_PORT=24987
refused "mpirun with RANK left over" "RANK=0 and WORLD_SIZE=1 (torchrun), OMPI_COMM_WORLD_RANK=" \
    $mpirun -x RANK=0 -x WORLD_SIZE=1 "$ranks"
meets "mpirun with RANK left over, and GYRE_LAUNCHER" $mpirun -x RANK=0 -x WORLD_SIZE=1 -x GYRE_LAUNCHER=openmpi
refused "mpirun, a process that does not come" "some did not come to the meeting in time (GYRE_MEET_TIMEOUT)" \
    mpirun.openmpi -x GYRE_MEET_TIMEOUT=2 -n 3 "$ranks" : -n 1 sleep 30

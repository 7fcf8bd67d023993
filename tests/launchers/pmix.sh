# PMIx alone, as prterun offers it: Debian 12 has no prterun, so the server is Open MPI's, and the ranks are told to
# look at PMIx only.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
mpirun="mpirun.openmpi -n 4"
# Without its own variables: env(1) takes them away.
bare=(env -u OMPI_COMM_WORLD_RANK -u OMPI_COMM_WORLD_SIZE -u OMPI_COMM_WORLD_LOCAL_RANK)
four_ranks "PMIx" $mpirun "${bare[@]}"
meets "PMIx, said" $mpirun -x GYRE_LAUNCHER=pmix
refused "PMIx without its server" "cannot meet the others through PMIx: PMIx_Init gave" env PMIX_RANK=0 PMIX_NAMESPACE=none "$ranks"
refused "PMIx of another rank" "PMIx says that this is rank " \
    $mpirun "${bare[@]}" sh -c "OMPI_COMM_WORLD_RANK=\$((3 - PMIX_RANK)) OMPI_COMM_WORLD_SIZE=4 GYRE_LAUNCHER=openmpi exec $ranks"

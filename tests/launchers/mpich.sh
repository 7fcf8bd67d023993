# MPICH's mpiexec (Hydra): PMI-1 over the socket PMI_FD.
mpiexec="mpiexec.hydra -n 4"
four_ranks "mpiexec" $mpiexec
meets "mpiexec, TCP between ranks" $mpiexec -genv GYRE_TRANSPORT tcp
refused "mpiexec without the socket" "PMI_RANK is set but PMI_FD is not" $mpiexec sh -c "unset PMI_FD; exec $ranks"
refused "mpiexec, a process that does not come" "did not come to the meeting in time (GYRE_MEET_TIMEOUT)" \
    mpiexec.hydra -genv GYRE_MEET_TIMEOUT 2 -n 3 "$ranks" : -n 1 sleep 30

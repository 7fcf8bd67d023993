# Slurm on one node: a munged, slurmctld and slurmd of our own in a temporary folder, ended by their process ids.
#
# The node is said to have 4 processors, whatever the machine has; nothing is confined (proctrack/pgid, task/none), as a
# container may allow no cgroups.
[ "$(id -u)" -eq 0 ] || fail "slurmd wants to be root"
chmod 755 "$folder"
mkdir "$folder/munge" "$folder/state" "$folder/spool"
head -c 1024 /dev/urandom >"$folder/munge.key"
chmod 600 "$folder/munge.key"
node=$(hostname -s)
free_port() { python3 -c 'import random, socket
while True:
    port = random.randrange(10000, 30000)
    with socket.socket() as s:
        try:
            s.bind(("127.0.0.1", port))
        except OSError:
            continue
    print(port)
    break'; }
cat >"$folder/slurm.conf" <<CONF
ClusterName=gyre
SlurmctldHost=$node(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge/socket
SlurmctldPort=$(free_port)
SlurmdPort=$(free_port)
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SchedulerType=sched/builtin
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SwitchType=switch/none
NodeName=$node NodeAddr=127.0.0.1 CPUs=4 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP OverSubscribe=FORCE:4
CONF
export SLURM_CONF=$folder/slurm.conf
daemons=()
ending='for daemon in "${daemons[@]}"; do kill "$daemon" 2>/dev/null; done; wait'
start() { # COMMAND...: a daemon in the foreground, of which we keep the process id
    "$@" >"$folder/$1.log" 2>&1 &
    daemons=($! "${daemons[@]}") # ended in reverse
}
start munged --foreground --force --key-file="$folder/munge.key" --socket="$folder/munge/socket" --pid-file="$folder/munge.pid" \
    --log-file="$folder/munged.out" --seed-file="$folder/munge.seed" --num-threads=2
for _ in $(seq 100); do [ -S "$folder/munge/socket" ] && break || sleep 0.1; done
start slurmctld -D -c -f "$SLURM_CONF"
start slurmd -D -f "$SLURM_CONF" -N "$node"
idle=
for _ in $(seq 150); do
    [ "$(timeout 5 sinfo -h -o %T 2>/dev/null)" != idle ] || { idle=yes; break; }
    sleep 0.2
done
[ -n "$idle" ] || { tail -n 20 "$folder"/*.log; fail "the node of Slurm did not become idle"; }

four_ranks "srun" srun -n 4
meets "srun, a secret and TCP between ranks" env GYRE_SECRET=a-secret-of-the-tests-0123456789 GYRE_TRANSPORT=tcp srun -n 4
four_ranks "srun --mpi=pmi2" srun --mpi=pmi2 -n 4
four_ranks "srun --mpi=pmix" srun --mpi=pmix -n 4
refused "srun with RANK left over" "RANK=0 and WORLD_SIZE=1 (torchrun), SLURM_PROCID=" env RANK=0 WORLD_SIZE=1 srun -n 4 "$ranks"
refused "srun, a process that does not come" "after 2.0 s 1 of 4 ranks are missing: rank 3" \
    env GYRE_MEET_TIMEOUT=2 srun -K0 -n 4 sh -c "[ \$SLURM_PROCID -ne 3 ] || exit 0; exec $ranks"
# In a batch script Slurm's variables of the script itself stand around those of what it starts.
printf '#!/bin/sh\n%s -n 4 %s 4 && mpirun.openmpi --allow-run-as-root --oversubscribe -n 4 %s 4\n' "$build/tools/gyre-run" "$ranks" "$ranks" >"$folder/job.sh"
echo "-- sbatch: gyre-run and mpirun in a batch script"
timeout 60 sbatch -W -n 4 -o "$folder/job.out" "$folder/job.sh" >/dev/null || { cat "$folder/job.out"; fail "the batch script failed"; }
[ "$(grep -cxE 'rank [0-3] of 4: two worlds' "$folder/job.out")" -eq 8 ] || fail "the batch script printed: $(cat "$folder/job.out")"

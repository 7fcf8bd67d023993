# torchrun. Its agent holds MASTER_PORT with the static rendezvous (TORCHELASTIC_USE_AGENT_STORE=True), and does not
# with c10d. -r and -t name a rank that there is not: Debian 12's torch 1.13 under Python 3.11 stumbles over their
# defaults.
torchrun="torchrun -r 9:1 -t 9:1 --nproc_per_node 4 --no_python"
four_ranks "torchrun, static" $torchrun --master_port 24988
meets "torchrun, c10d" $torchrun --rdzv_backend=c10d --rdzv_endpoint=localhost:0 --rdzv_id=gyre

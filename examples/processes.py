"""Ranks that are processes of multiprocessing: python3 processes.py

    rank 0   rank 1   rank 2        each process has a pipe to the parent, by which the ranks meet:
       \\       |       /            gyre.create() hands out a few bytes, and wants those of all ranks back.
           parent                   No address, no port and no secret has to be chosen.

The processes are spawned: a forked child of a process that has a communicator cannot use it."""
import multiprocessing
from multiprocessing.connection import Connection
from typing import List

import numpy

import gyre

RANKS = 3


def work(rank: int, pipe: Connection) -> None:
    """What each process runs."""

    def exchange(mine: bytes) -> List[bytes]:
        pipe.send_bytes(mine)
        return [pipe.recv_bytes() for _ in range(RANKS)]

    with gyre.create(rank=rank, world_size=RANKS, exchange=exchange) as comm:
        x = numpy.arange(4.0) + comm.rank
        comm.all_reduce(x)
        print(f"rank {comm.rank} of {comm.size}:", *(f"{value:g}" for value in x), flush=True)


def collect(pipes: List[Connection]) -> None:
    """Gathers the bytes of all ranks and gives them to each, until a rank ends. The ranks that wait are told by the
    end of their pipes."""
    try:
        while True:
            pieces = [pipe.recv_bytes() for pipe in pipes]
            for pipe in pipes:
                for piece in pieces:
                    pipe.send_bytes(piece)
    except (EOFError, OSError):
        for pipe in pipes:
            pipe.close()


def main() -> int:
    context = multiprocessing.get_context("spawn")
    pipes, processes = [], []
    for rank in range(RANKS):
        ours, theirs = context.Pipe()
        process = context.Process(target=work, args=(rank, theirs))
        process.start()
        theirs.close()  # or the end of the process would not end the pipe
        pipes.append(ours)
        processes.append(process)
    collect(pipes)
    for process in processes:
        process.join()
    return max(abs(process.exitcode or 0) for process in processes)


if __name__ == "__main__":
    raise SystemExit(main())

"""Ranks that are Ray actors, one of which is lost and replaced: python3 ray_actors.py

    driver ──┬─> Rank 0 ─┐
             ├─> Rank 1 ─┼─> Meeting    an all-gather of bytes, by which the ranks meet
             └─> Rank 2 ─┘

The driver kills an actor in the middle of training. The others raise gyre.PeerDead within a second and shrink the
world. A new actor joins it at the address that gyre gives (grow), takes over the state of the others, and all go on.

Gradients are added in fixed point, so the sums do not depend on the order of the ranks: the run ends with the bits of
one that lost no actor (ray_actors.py --undisturbed)."""
import asyncio
import itertools
import secrets
import sys
import time
from typing import Any, Dict, List, Optional, Tuple

import numpy
import ray

import gyre

RANKS = 3
STEPS = 150
LIMIT_S = 120


@ray.remote(num_cpus=0)
class Meeting:
    """What gyre.create() wants of a framework: each rank hands in some bytes and gets those of all ranks."""

    def __init__(self) -> None:
        self.pieces: Dict[Tuple[int, int], bytes] = {}
        self.changed = asyncio.Condition()

    async def exchange(self, turn: int, rank: int, mine: bytes) -> List[bytes]:
        wanted = [(turn, other) for other in range(RANKS)]
        async with self.changed:
            self.pieces[turn, rank] = mine
            self.changed.notify_all()
            await self.changed.wait_for(lambda: all(key in self.pieces for key in wanted))
        return [self.pieces[key] for key in wanted]


@ray.remote(num_cpus=0.5, max_restarts=0)
class Rank:
    """One rank of a linear regression, whose data are divided over the ranks."""

    comm: gyre.Communicator

    def __init__(self, secret: str) -> None:
        self.secret = secret
        self.step = 0
        self.weights = numpy.zeros(8)

    def meet(self, rank: int, meeting: Any) -> None:
        turns = itertools.count()

        def exchange(mine: bytes) -> List[bytes]:
            given: List[bytes] = ray.get(meeting.exchange.remote(next(turns), rank, mine), timeout=LIMIT_S)
            return given

        self.comm = gyre.create(rank=rank, world_size=RANKS, secret=self.secret, exchange=exchange)

    def join(self, address: str) -> None:
        self.comm = gyre.create(address=address, secret=self.secret, join=True)

    def shrink(self) -> str:
        """Makes a world of the ranks that live; the address at which others may join it."""
        failed, self.comm = self.comm, self.comm.shrink()
        failed.close()
        return self.comm.get("meeting")

    def grow(self, joining: int) -> int:
        """Takes in processes that join; the number of ranks."""
        grown = self.comm.grow(joining, seconds=LIMIT_S)
        if grown is not None:
            self.comm.close()
            self.comm = grown
        return self.comm.size

    def share(self) -> None:
        """The state of the rank that has done the most steps becomes that of all: a failure may have found some of
        them a step ahead, and one that has joined has done none."""
        steps = numpy.zeros(self.comm.size, dtype="int64")
        self.comm.all_gather(numpy.array([self.step]), steps)
        self.comm.broadcast(self.weights, root=int(steps.argmax()))
        self.step = int(steps.max())

    def train(self, until: int) -> Tuple[int, Optional[str]]:
        """Steps that are done, and what ended them early."""
        try:
            while self.step < until:
                gradient = numpy.rint(self.gradient() * 2**32).astype("int64")
                self.comm.all_reduce(gradient)
                self.weights -= 0.05 * gradient / 2**32 / self.comm.size
                self.step += 1
        except gyre.CommunicatorError as error:
            return self.step, str(error)
        return self.step, None

    def gradient(self) -> Any:
        """Of the mean squared error of this rank's share of the step's samples."""
        time.sleep(0.01)  # stands for a larger model
        samples = numpy.random.default_rng((self.step, self.comm.rank)).standard_normal((16, 8))
        return samples.T @ (samples @ (self.weights - numpy.arange(8.0))) / len(samples)

    def result(self) -> bytes:
        return self.weights.tobytes()


def of_living(ranks: List[Any], calls: List[Any]) -> Tuple[List[Any], List[Any]]:
    """The actors whose calls end, and the results of these."""
    living, results = [], []
    for rank, call in zip(ranks, calls):
        try:
            results.append(ray.get(call, timeout=LIMIT_S))
            living.append(rank)
        except ray.exceptions.RayActorError:
            pass
    return living, results


def replace(ranks: List[Any], secret: str) -> List[Any]:
    """A world of RANKS actors again, from those that live. Where another one is lost meanwhile: from the beginning."""
    while True:
        ranks, addresses = of_living(ranks, [rank.shrink.remote() for rank in ranks])
        fresh = [Rank.remote(secret) for _ in range(RANKS - len(ranks))]
        joining = [rank.join.remote(addresses[0]) for rank in fresh]
        try:
            ray.get([rank.grow.remote(len(fresh)) for rank in ranks] + joining, timeout=LIMIT_S)
            ranks += fresh
            ray.get([rank.share.remote() for rank in ranks], timeout=LIMIT_S)
            return ranks
        except (ray.exceptions.RayActorError, ray.exceptions.RayTaskError):
            for rank in fresh:
                ray.kill(rank)


def main(disturbed: bool) -> None:
    ray.init()
    secret = secrets.token_hex(32)  # a process without it cannot join
    meeting = Meeting.remote()
    ranks = [Rank.remote(secret) for _ in range(RANKS)]
    ray.get([rank.meet.remote(number, meeting) for number, rank in enumerate(ranks)], timeout=LIMIT_S)
    ray.kill(meeting)

    ray.get([rank.train.remote(STEPS // 3) for rank in ranks], timeout=LIMIT_S)
    training = [rank.train.remote(STEPS) for rank in ranks]
    if disturbed:
        time.sleep(0.2)
        ray.kill(ranks[1])
    while True:
        ranks, reports = of_living(ranks, training)
        for number, (step, error) in enumerate(reports):
            print(f"actor {number}: step {step}: {error or 'done'}")
        if all(step == STEPS for step, _ in reports):
            break
        ranks = replace(ranks, secret)
        training = [rank.train.remote(STEPS) for rank in ranks]
    results = {ray.get(rank.result.remote(), timeout=LIMIT_S) for rank in ranks}
    print(f"{len(ranks)} actors end with {len(results)} result: {results.pop().hex()}")


if __name__ == "__main__":
    main(disturbed="--undisturbed" not in sys.argv[1:])

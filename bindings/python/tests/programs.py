"""What the ranks of test_worlds.py do: python3 -m tests.programs NAME. A program that returns has succeeded."""
import asyncio
import gc
import os
import signal
import sys
import time
from typing import Any, Callable, Dict, List, Type

import numpy

import gyre


def check(condition: Any, *what: Any) -> None:
    if not condition:
        raise AssertionError(what)


def failure(kind: Type[gyre.Error], call: Any) -> str:
    """The error message of the error that `call` raises."""
    try:
        call()
    except kind as reason:
        check(type(reason) is kind, type(reason))
        check(reason.status is not None and reason.status == reason.code)
        return str(reason)
    raise AssertionError(f"no {kind.__name__}")


def forever(comm: gyre.Communicator) -> None:
    x = numpy.ones(100_000)
    while True:
        comm.all_reduce(x, op="max")


def death(comm: gyre.Communicator) -> None:
    """The last rank is killed while the others are in calls; they name it, however they wait."""
    victim = comm.size - 1
    x = numpy.ones(100_000)
    if comm.rank == victim:
        comm.all_reduce(x, op="max")
        os.kill(os.getpid(), signal.SIGKILL)
    if comm.rank == 0:
        sentence = failure(gyre.PeerDead, lambda: forever(comm))
    elif comm.rank == 1:
        sentence = failure(gyre.PeerDead, lambda: asyncio.run(forever_asleep(comm)))
    else:
        sentence = failure(gyre.PeerDead, lambda: forever_by_request(comm))
    check(f"rank {victim}" in sentence, sentence)
    check("all_reduce" in sentence, sentence)
    check(isinstance(gyre.PeerDead(""), gyre.CommunicatorError))
    check(failure(gyre.PeerDead, comm.barrier))  # it stays failed
    check(f"rank {victim}" in failure(gyre.PeerDead, lambda: comm.set("colour", "red")))
    check(f"rank {victim}" in comm.last_error, comm.last_error)  # and its error message stays
    comm.close()
    print(sentence)


def forever_by_request(comm: gyre.Communicator) -> None:
    x = numpy.ones(100_000)
    while True:
        comm.all_reduce_start(x, op="max").wait()


async def forever_asleep(comm: gyre.Communicator) -> None:
    x = numpy.ones(100_000)
    while True:
        await comm.all_reduce_start(x, op="max")


def torchrun(comm: gyre.Communicator) -> None:
    check(comm.rank == int(os.environ["RANK"]) and comm.size == int(os.environ["WORLD_SIZE"]))
    x = numpy.ones(10)
    with comm:
        comm.all_reduce(x)
    check((x == comm.size).all())


def by_exchange() -> None:
    """A framework's all-gather: files in a folder."""
    rank, size, folder = int(os.environ["TEST_RANK"]), int(os.environ["TEST_SIZE"]), os.environ["TEST_FOLDER"]
    calls = 0

    def exchange(mine: bytes) -> List[bytes]:
        nonlocal calls
        calls += 1
        with open(f"{folder}/{calls}.{rank}.part", "wb") as part:
            part.write(mine)
        os.rename(part.name, f"{folder}/{calls}.{rank}")
        everyone = []
        for other in range(size):
            deadline = time.monotonic() + 90
            while not os.path.exists(f"{folder}/{calls}.{other}") and time.monotonic() < deadline:
                time.sleep(0.002)
            with open(f"{folder}/{calls}.{other}", "rb") as file:
                everyone.append(file.read())
        return everyone

    with gyre.create(rank=rank, world_size=size, exchange=exchange) as comm:
        check(comm.rank == rank and comm.size == size and calls > 0)
        x = numpy.ones(10)
        comm.all_reduce(x)
        check((x == size).all())


def operation_raises(comm: gyre.Communicator) -> None:
    def divide(left: Any, right: Any, result: Any) -> None:
        raise ZeroDivisionError("of the user's own")

    op = comm.op_create(divide)
    x = numpy.ones(100)
    try:
        comm.all_reduce(x, op=op)
        comm.all_reduce(x, op=op)
    except gyre.Aborted as reason:
        # A rank that had nothing to reduce itself is told by another.
        if reason.__cause__ is not None:
            check(isinstance(reason.__cause__, ZeroDivisionError) and "of the user's own" in str(reason), str(reason))
            print("cause")
    else:
        raise AssertionError("no error")
    failure(gyre.Aborted, comm.barrier)
    comm.close()


def mismatch(comm: gyre.Communicator) -> None:
    x = numpy.ones(100 + comm.rank)
    sentence = failure(gyre.Mismatch, lambda: comm.all_reduce(x))
    check("100" in sentence and "101" in sentence, sentence)
    comm.close()


def fork(comm: gyre.Communicator) -> None:
    x = bytearray(1000)
    request = comm.all_reduce_init(x)
    child = os.fork()
    if child == 0:
        try:
            failure(gyre.Forked, comm.barrier)
            failure(gyre.Forked, request.start)
            del request
            comm.close()
            gc.collect()
        except BaseException as reason:
            print("child:", repr(reason), flush=True)
            os._exit(1)
        os._exit(0)
    check(os.waitpid(child, 0)[1] == 0)
    with request:
        request.start().wait()
    comm.barrier()
    comm.close()


def left_open(comm: gyre.Communicator) -> None:
    """Rank 0 ends without close(): it leaves in order, which is no failure."""
    if comm.rank == 0:
        comm.send(b"x", 1)
    else:
        comm.recv(bytearray(1), 0)
        sentence = failure(gyre.PeerLeft, lambda: comm.recv(bytearray(1), 0))
        check("rank 0" in sentence, sentence)


def recover(comm: gyre.Communicator) -> None:
    """The last rank is killed; the others find out, agree, and go on in a world of their own."""
    last = comm.size - 1
    if comm.rank == last:
        comm.barrier()  # a death while the ranks still connect is an error of create
        os.kill(os.getpid(), signal.SIGKILL)

    def until_it_dies() -> None:
        comm.barrier()
        barriers(comm)

    failure(gyre.PeerDead, until_it_dies)
    comm.revoke()
    check(comm.agree(~(1 << comm.rank)) == (1 << 64) - (1 << last))
    survivors = comm.shrink()
    found = comm.failed()
    check([lost.rank for lost in found][-1:] == [last] and found[-1].status == gyre.Status.PEER_DEAD, repr(found))
    check(f"rank {last}" in found[-1].why and found[-1].when > 0, repr(found))
    comm.close()
    check((survivors.rank, survivors.size) == (comm.rank, last))
    x = bytearray(b"\x01")
    survivors.all_reduce(x, dtype="uint8")
    check(x == bytes([last]), repr(x))
    survivors.close()


def memory_in_use(comm: gyre.Communicator) -> None:
    x = comm.mem_alloc(100_000).array("float32")
    twin = comm.duplicate()
    comm.close()  # not the last of its world
    try:
        twin.close()
    except BufferError as reason:
        check("1 block of mem_alloc is still looked at" in str(reason), str(reason))
    else:
        raise AssertionError("closed under an array")
    x[:] = 1
    twin.all_reduce(x)
    check((x == twin.size).all())
    del x
    twin.close()
    check(twin.closed)


def barriers(comm: gyre.Communicator) -> None:
    for _ in range(2):
        comm.barrier()


def group_raises(comm: gyre.Communicator) -> None:
    """A group that an exception has left is not waited for; the other ranks are told."""
    if comm.rank == 0:
        comm.barrier()
        try:
            with gyre.group():
                comm.recv(bytearray(8), 1)
                raise KeyError("left")
        except KeyError:
            pass
        failure(gyre.Aborted, comm.barrier)
    else:  # an abort may come while this rank is still in the first
        failure(gyre.Aborted, lambda: barriers(comm))
    with gyre.group():
        pass
    comm.close()


def close_under_way(comm: gyre.Communicator) -> None:
    """Requests end with the communicator, and give their buffers back."""
    if comm.rank == 0:
        comm.barrier()
        x = bytearray(100)
        request = comm.recv_start(x, 1)
        persistent = comm.recv_init(x, 1)
        comm.close()
        check("closed while the request was under way" in failure(gyre.Aborted, request.wait))
        check(request.done)
        x.extend(b"mine again")
        persistent.free()
        failure(gyre.InvalidArgument, persistent.start)
    else:
        failure(gyre.Aborted, lambda: barriers(comm))
        comm.close()


def progress_thread(comm: gyre.Communicator) -> None:
    """GYRE_PROGRESS_THREAD: an operation of one's own runs in a thread that Python has not made."""
    threads = set()

    def add(left: Any, right: Any, result: Any) -> None:
        import threading

        threads.add(threading.get_ident())
        numpy.add(left, right, out=result)

    op = comm.op_create(add)
    for turn in range(20):
        x = numpy.full(300_000, comm.rank + turn, "int64")
        request = comm.all_reduce_start(x, op=op)
        deadline = time.monotonic() + 0.05
        while time.monotonic() < deadline:  # computing
            sum(range(1000))
        request.wait()
        check((x == sum(range(comm.size)) + turn * comm.size).all())
    comm.close()
    check(len(threads) >= 1, threads)


def press_soon() -> None:
    """Ctrl-C, once the main thread waits."""
    import threading

    def press() -> None:
        time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=press).start()


def interrupt(comm: gyre.Communicator) -> None:
    """Ctrl-C on rank 0 while it waits for rank 1, which is told. How it waits: TEST_WAY."""
    x = numpy.ones(int(os.environ["TEST_COUNT"]))
    if comm.rank == 1:
        sentence = failure(gyre.Aborted, lambda: forever_looking(comm))
        check("rank 0 aborted" in sentence, sentence)
        comm.close()
        return

    def in_a_group() -> None:
        with gyre.group():
            comm.all_reduce(x)
            comm.recv(numpy.ones(10), 1)

    requests: List[gyre.Request] = []

    def by_request() -> None:
        requests.append(comm.all_reduce_start(x))
        requests[0].wait()

    ways: Dict[str, Callable[[], Any]] = {
        "blocking": lambda: comm.all_reduce(x),
        "elsewhere": lambda: comm.all_gatherv(x, numpy.ones(2 * len(x)), [len(x)] * 2),
        "request": by_request,
        "persistent": lambda: comm.all_reduce_init(x).start().wait(),
        "any": lambda: gyre.wait_any([comm.all_reduce_start(x), comm.all_reduce_start(x.copy())]),
        "group": in_a_group,
        "split": lambda: comm.split(0),
        "window": lambda: comm.window_create(x),
    }
    press_soon()
    try:
        ways[os.environ["TEST_WAY"]]()
    except KeyboardInterrupt:
        pass
    else:
        raise AssertionError("no KeyboardInterrupt")
    for request in requests:
        failure(gyre.Aborted, request.wait)
    check("rank 0 aborted" in failure(gyre.Aborted, comm.barrier))
    comm.close()


def forever_looking(comm: gyre.Communicator) -> None:
    while True:
        comm.progress()
        time.sleep(0.01)


def own_handler(comm: gyre.Communicator) -> None:
    """A handler of the program's own runs when the wait is over, and nothing is aborted."""
    seen: List[int] = []
    signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
    if comm.rank == 0:
        press_soon()
    else:
        time.sleep(1)
    comm.barrier()
    check(seen == ([signal.SIGINT] if comm.rank == 0 else []), seen)
    comm.barrier()
    comm.close()


def interrupted_meeting() -> None:
    """Ctrl-C while the others have not come."""
    press_soon()
    try:
        gyre.create()
    except KeyboardInterrupt:
        return
    raise AssertionError("no KeyboardInterrupt")


def two_worlds(comm: gyre.Communicator) -> None:
    """Requests and groups over worlds that share nothing."""
    other = gyre.create(address=os.environ["GYRE_ADDRESS"] + "-second")
    x, y = numpy.ones(100_000), numpy.ones(100_000)
    pair = [comm.all_reduce_start(x), other.all_reduce_start(y)]
    gyre.wait_all(pair if comm.rank % 2 else reversed(pair))
    with gyre.group():
        for one in (comm, other) if comm.rank % 2 else (other, comm):
            one.all_reduce(x if one is comm else y)
    check((x == comm.size**2).all() and (y == comm.size**2).all())
    try:
        other.all_reduce(x, op=comm.op_create(numpy.hypot))
    except gyre.InvalidArgument as reason:
        check("another world" in str(reason))
    else:
        raise AssertionError("an operation of another world")
    other.barrier()  # all earlier requests are complete on every rank
    if comm.rank == 0:
        comm.abort()
    failure(gyre.Aborted, lambda: gyre.wait_all([other.all_reduce_start(y), comm.all_reduce_start(x)]))
    other.all_reduce(y)
    comm.close()
    other.close()


def main() -> None:
    name = sys.argv[1]
    if name in ("by_exchange", "interrupted_meeting"):
        globals()[name]()
    else:
        globals()[name](gyre.create())
    print("ok")


if __name__ == "__main__":
    main()

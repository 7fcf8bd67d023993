"""The same from Python: gyre-run -n 4 python3 all_reduce.py (see bindings/python)."""
import asyncio

import numpy

import gyre


async def train(comm: gyre.Communicator) -> None:
    """Two requests under way at once; other tasks of the event loop would run meanwhile."""
    gradients = [numpy.full(100_000, float(comm.rank + layer)) for layer in range(2)]
    requests = [comm.all_reduce_start(gradient, op="average") for gradient in gradients]
    for layer, request in enumerate(requests):
        await request
        print(f"rank {comm.rank} of {comm.size}: layer {layer} averages {gradients[layer][0]:g}")


with gyre.create() as comm:
    x = numpy.arange(4, dtype="float32") + comm.rank
    comm.all_reduce(x)  # in place, blocking
    print(f"rank {comm.rank} of {comm.size}:", *(f"{value:g}" for value in x))

    distance = comm.op_create(numpy.hypot)  # an operation of one's own: func(left, right, result)
    y = numpy.full(1, 3.0)
    comm.all_reduce(y, op=distance)
    print(f"rank {comm.rank} of {comm.size}: hypot {y[0]:g}")

    asyncio.run(train(comm))

    try:
        comm.send(x[::2], peer=0)
    except gyre.InvalidArgument as error:
        if comm.rank == 0:
            print(error)

"""What each call needs: from Python's arguments to those of libgyre, checked.

Every function here checks its buffers against each other and against the ranks of the communicator, so that no call can
make gyre touch memory beyond them, and derives the counts. What they give, a Call, is run in one of three forms by the
communicator: at once, as a request, as a persistent request. Their documentation is that of the communicator's methods.

An argument that this rank does not need (the output of a reduce elsewhere than on root) may be None.
"""
import ctypes
from typing import Any, List, Optional, Sequence, Tuple, Union

from ._buffer import AnyBuffer, Buffer, dtype_of
from ._driver import AnyStream, stream_of
from ._errors import InvalidArgument
from ._gpu_array import Gpu
from ._types import OP_ALIASES, AnyDType, DType, Op
from ._world import UserOp, World

AnyOp = Union[Op, str, UserOp]
Counts = Sequence[int]

# What has algorithms.
COLLECTIVES = tuple("all_reduce reduce reduce_scatter broadcast all_gather gather scatter all_to_all barrier".split())


class Call:
    """A function of libgyre by its name without gyre_, its arguments but the communicator, the buffers it touches; and
    what the caller has given for the result, None where this rank gets none."""

    __slots__ = ("name", "arguments", "buffers", "result")

    def __init__(
        self, name: str, arguments: Tuple[Any, ...], buffers: Tuple[Buffer, ...], result: Optional[Buffer] = None
    ) -> None:
        self.name = name
        self.arguments = arguments
        self.buffers = buffers
        self.result = None if result is None else result.source


class Ranks:
    """What a call has to know of its communicator."""

    rank: int
    size: int
    _world: World
    _device: Optional[int]
    """The GPU it is attached to; NONE; None: it is not attached."""


_NO_GPU = Gpu(None, None)


class Given:
    """What the caller says about all buffers of a call."""

    __slots__ = ("dtype", "gpu")

    def __init__(self, comm: Ranks, dtype: Optional[AnyDType], stream: Optional[AnyStream]) -> None:
        if stream is not None and comm._device is None:
            raise InvalidArgument("the communicator is not attached to a GPU, so no stream orders its calls: call cuda_attach")
        self.dtype = dtype
        self.gpu = _NO_GPU
        if comm._device is not None:
            self.gpu = Gpu(comm._device, None if stream is None else stream_of(stream))


def op_number(comm: Ranks, op: AnyOp) -> int:
    if isinstance(op, UserOp):
        if op.world is not comm._world:
            raise InvalidArgument("the operation was made on a communicator of another world")
        return op.number
    try:
        if isinstance(op, str):
            alias = OP_ALIASES.get(op.lower())
            return Op[op.upper()] if alias is None else alias
        return Op(op)
    except (KeyError, ValueError):
        names = ", ".join(kind.name.lower() for kind in Op)
        raise InvalidArgument(f"{op!r} is not an operation; there are {names}, and those of op_create") from None


def op_of(comm: Ranks, op: AnyOp, buffer: Buffer) -> int:
    """The operation's number for the buffer's elements. Complex numbers are summed and averaged as pairs of floats;
    nothing else is defined for them."""
    number = op_number(comm, op)
    if buffer.kind == "complex" and number not in (Op.SUM, Op.AVERAGE):
        raise InvalidArgument(
            f"{op!r} has no meaning for complex numbers, which are reduced as pairs of floats: there are sum and average"
        )
    return number


def _rank(what: str, rank: int, comm: Ranks) -> int:
    if not 0 <= rank < comm.size:
        raise InvalidArgument(f"{what} {rank} is not a rank: there are {comm.size}")
    return rank


def _read(name: str, source: AnyBuffer, given: Given) -> Buffer:
    return Buffer(f"{name}: input", source, writable=False, dtype=given.dtype, gpu=given.gpu)


def _write(name: str, source: AnyBuffer, given: Given) -> Buffer:
    return Buffer(f"{name}: output", source, writable=True, dtype=given.dtype, gpu=given.gpu)


def _same_type(name: str, input: Buffer, output: Buffer) -> None:
    if input.dtype != output.dtype or input.kind != output.kind:
        kinds = [f"{it.kind} {it.dtype.name.lower()}".strip() for it in (input, output)]
        raise InvalidArgument(f"{name}: input holds {kinds[0]}, output {kinds[1]}; both must be equal")


def _want(name: str, what: str, has: int, wants: int, why: str) -> None:
    if has != wants:
        raise InvalidArgument(f"{name}: {what} has {has} elements and needs {wants}: {why}")


def _divide(name: str, what: str, buffer: Buffer, comm: Ranks) -> int:
    parts = 2 if buffer.kind == "complex" else 1
    if buffer.count % (comm.size * parts):
        raise InvalidArgument(
            f"{name}: {what} has {buffer.count // parts} elements, which {comm.size} ranks cannot share evenly"
        )
    return buffer.count // comm.size


def _vector(name: str, input: AnyBuffer, output: Optional[AnyBuffer], given: Given) -> Tuple[Buffer, Buffer]:
    """Input and output of equal length, or one for both."""
    if output is None or output is input:
        both = _write(name, input, given)
        return both, both
    source, target = _read(name, input, given), _write(name, output, given)
    _same_type(name, source, target)
    _want(name, "output", target.count, source.count, "as many as input")
    return source, target


# ---- blocks of equal size ----


def all_reduce(
    comm: Ranks,
    input: AnyBuffer,
    output: Optional[AnyBuffer] = None,
    op: AnyOp = Op.SUM,
    *,
    dtype: Optional[AnyDType] = None,
    stream: Optional[AnyStream] = None,
) -> Call:
    """Reduces `input` over all ranks into `output` on every rank; without `output`, in place."""
    given = Given(comm, dtype, stream)
    source, target = _vector("all_reduce", input, output, given)
    arguments = (source.address, target.address, source.count, source.dtype, op_of(comm, op, source))
    return Call("all_reduce", arguments, (source, target), target)


def reduce(
    comm: Ranks,
    input: AnyBuffer,
    output: Optional[AnyBuffer] = None,
    op: AnyOp = Op.SUM,
    root: int = 0,
    *,
    dtype: Optional[AnyDType] = None,
    stream: Optional[AnyStream] = None,
) -> Call:
    """Reduces `input` over all ranks into `output` on `root`; without `output`, in place there. Elsewhere `output` is
    not needed, and `input` stays as it is."""
    given = Given(comm, dtype, stream)
    _rank("root", root, comm)
    if comm.rank == root:
        source, target = _vector("reduce", input, output, given)
        address = target.address
    else:
        source = target = _read("reduce", input, given)
        address = None
    arguments = (source.address, address, source.count, source.dtype, op_of(comm, op, source), root)
    return Call("reduce", arguments, (source, target), None if address is None else target)


def reduce_scatter(
    comm: Ranks,
    input: AnyBuffer,
    output: Optional[AnyBuffer] = None,
    op: AnyOp = Op.SUM,
    *,
    dtype: Optional[AnyDType] = None,
    stream: Optional[AnyStream] = None,
) -> Call:
    """Reduces `input` over all ranks, of which rank r gets block r (of as many blocks as ranks) in `output`; without
    `output`, in place: in that block of `input`."""
    given = Given(comm, dtype, stream)
    name = "reduce_scatter"
    source = _read(name, input, given) if output is not None else _write(name, input, given)
    block = _divide(name, "input", source, comm)
    target, address = _block_or_own(comm, name, source, output, block, given)
    return Call(name, (source.address, address, block, source.dtype, op_of(comm, op, source)), (source, target), target)


def _block_or_own(
    comm: Ranks, name: str, whole: Buffer, output: Optional[AnyBuffer], block: int, given: Given
) -> Tuple[Buffer, Optional[int]]:
    """The output of one block, or this rank's block of the input."""
    if output is None:
        return whole, (whole.address or 0) + comm.rank * block * whole.dtype.size
    target = _write(name, output, given)
    _same_type(name, whole, target)
    _want(name, "output", target.count, block, f"the input's {whole.count} shared by {comm.size} ranks")
    return target, target.address


def broadcast(
    comm: Ranks,
    input: Optional[AnyBuffer],
    output: Optional[AnyBuffer] = None,
    root: int = 0,
    *,
    dtype: Optional[AnyDType] = None,
    stream: Optional[AnyStream] = None,
) -> Call:
    """Copies `input` of `root` to `output` on every rank; without `output`, `input` is the buffer on every rank: what
    is sent on root, what is received elsewhere."""
    given = Given(comm, dtype, stream)
    _rank("root", root, comm)
    if comm.rank != root:
        target = _write("broadcast", input if output is None else output, given)
        return Call("broadcast", (None, target.address, target.count, target.dtype, root), (target,), target)
    if output is None: # in place nothing is written on root: a buffer that is read-only will do
        source = target = _read("broadcast", input, given)
    else:
        source, target = _vector("broadcast", input, output, given)
    return Call("broadcast", (source.address, target.address, source.count, source.dtype, root), (source, target), target)


def all_gather(
    comm: Ranks,
    input: Optional[AnyBuffer],
    output: AnyBuffer,
    *,
    dtype: Optional[AnyDType] = None,
    stream: Optional[AnyStream] = None,
) -> Call:
    """Collects `input` of every rank in `output` of every rank, in rank order. `input` None: in place, it is already
    there as block `rank` of `output`."""
    given = Given(comm, dtype, stream)
    source, address, target, block = _own_and_whole(comm, "all_gather", input, output, given)
    return Call("all_gather", (address, target.address, block, target.dtype), (source, target), target)


def _own_and_whole(
    comm: Ranks, name: str, input: Optional[AnyBuffer], output: AnyBuffer, given: Given
) -> Tuple[Buffer, Optional[int], Buffer, int]:
    """One block of input and all blocks of output; without input it is the output's own block."""
    target = _write(name, output, given)
    block = _divide(name, "output", target, comm)
    if input is None:
        return target, (target.address or 0) + comm.rank * block * target.dtype.size, target, block
    source = _read(name, input, given)
    _same_type(name, source, target)
    _want(name, "output", target.count, source.count * comm.size, f"the input's {source.count} of {comm.size} ranks")
    return source, source.address, target, block


def gather(
    comm: Ranks,
    input: Optional[AnyBuffer],
    output: Optional[AnyBuffer] = None,
    root: int = 0,
    *,
    dtype: Optional[AnyDType] = None,
    stream: Optional[AnyStream] = None,
) -> Call:
    """Collects `input` of every rank in `output` on `root`, in rank order. `input` None on root: in place, as for
    all_gather. Elsewhere `output` is not needed."""
    given = Given(comm, dtype, stream)
    _rank("root", root, comm)
    if comm.rank == root:
        if output is None:
            raise InvalidArgument("gather: output is None on root")
        source, address, target, block = _own_and_whole(comm, "gather", input, output, given)
        return Call("gather", (address, target.address, block, target.dtype, root), (source, target), target)
    source = _read("gather", input, given)
    return Call("gather", (source.address, None, source.count, source.dtype, root), (source,))


def scatter(
    comm: Ranks,
    input: Optional[AnyBuffer],
    output: Optional[AnyBuffer] = None,
    root: int = 0,
    *,
    dtype: Optional[AnyDType] = None,
    stream: Optional[AnyStream] = None,
) -> Call:
    """Gives block r of `input` on `root` to rank r, in `output`. `output` None on root: in place, its own block stays
    where it is. Elsewhere `input` is not needed."""
    given = Given(comm, dtype, stream)
    _rank("root", root, comm)
    if comm.rank == root:
        if input is None:
            raise InvalidArgument("scatter: input is None on root")
        whole = _read("scatter", input, given)
        block = _divide("scatter", "input", whole, comm)
        target, address = _block_or_own(comm, "scatter", whole, output, block, given)
        return Call("scatter", (whole.address, address, block, whole.dtype, root), (whole, target), target)
    target = _write("scatter", output, given)
    return Call("scatter", (None, target.address, target.count, target.dtype, root), (target,), target)


def all_to_all(
    comm: Ranks,
    input: AnyBuffer,
    output: Optional[AnyBuffer] = None,
    *,
    dtype: Optional[AnyDType] = None,
    stream: Optional[AnyStream] = None,
) -> Call:
    """Sends block r of `input` to rank r; block r of `output` comes from rank r. Without `output`, in place."""
    given = Given(comm, dtype, stream)
    source, target = _vector("all_to_all", input, output, given)
    block = _divide("all_to_all", "input", source, comm)
    return Call("all_to_all", (source.address, target.address, block, source.dtype), (source, target), target)


def barrier(comm: Ranks, *, stream: Optional[AnyStream] = None) -> Call:
    """Returns, or completes, when every rank has called it."""
    Given(comm, None, stream)
    return Call("barrier", (), ())


# ---- blocks of different sizes ----


class _Blocks:
    """A list of counts, with displacements or one block after the other."""

    def __init__(self, name: str, comm: Ranks, counts: Counts, places: Optional[Counts]) -> None:
        self.name = name
        self.rank = comm.rank
        self.counts = self._list(comm, "counts", counts)
        self.places = None if places is None else self._list(comm, "displacements", places)

    def _list(self, comm: Ranks, what: str, values: Counts) -> List[int]:
        numbers = [int(value) for value in values]
        if len(numbers) != comm.size:
            raise InvalidArgument(f"{self.name}: {len(numbers)} {what} for {comm.size} ranks")
        for rank, number in enumerate(numbers):
            if not 0 <= number < 1 << 62:
                raise InvalidArgument(f"{self.name}: {what}[{rank}] is {number}")
        return numbers

    @property
    def own(self) -> int:
        return self.counts[self.rank]

    def check(self, what: str, buffer: Buffer) -> None:
        """Raises if the buffer does not hold all the blocks."""
        if buffer.kind == "complex":
            raise InvalidArgument(
                f"{self.name}: counts of complex numbers are not understood: give views of floats, twice as many"
            )
        place = 0
        for rank, count in enumerate(self.counts):
            if self.places is not None:
                place = self.places[rank]
            if count > 0 and place + count > buffer.count:
                raise InvalidArgument(
                    f"{self.name}: block {rank} of {what} would be elements {place} to {place + count - 1} of "
                    f"{buffer.count}"
                )
            place += count

    def own_address(self, whole: Buffer) -> int:
        place = self.places[self.rank] if self.places is not None else sum(self.counts[: self.rank])
        return (whole.address or 0) + place * whole.dtype.size

    def arguments(self) -> Tuple[Any, Any]:
        array = ctypes.c_size_t * len(self.counts)
        return array(*self.counts), None if self.places is None else array(*self.places)


def _own_v(
    blocks: _Blocks, input: Optional[AnyBuffer], whole: Optional[Buffer], given: Given
) -> Tuple[Buffer, Optional[int]]:
    """This rank's block: a buffer of exactly its size, or in place."""
    if input is None and whole is not None:
        return whole, blocks.own_address(whole)
    source = _read(blocks.name, input, given)
    _want(blocks.name, "input", source.count, blocks.own, f"counts[{blocks.rank}]")
    if whole is not None:
        _same_type(blocks.name, source, whole)
    return source, source.address


def all_gatherv(
    comm: Ranks,
    input: Optional[AnyBuffer],
    output: AnyBuffer,
    counts: Counts,
    displacements: Optional[Counts] = None,
    *,
    dtype: Optional[AnyDType] = None,
    stream: Optional[AnyStream] = None,
) -> Call:
    """all_gather with blocks of `counts[r]` elements, the same list on every rank, at `displacements[r]` of `output`
    or one after the other."""
    given = Given(comm, dtype, stream)
    blocks = _Blocks("all_gatherv", comm, counts, displacements)
    target = _write(blocks.name, output, given)
    blocks.check("output", target)
    source, address = _own_v(blocks, input, target, given)
    return Call(blocks.name, (address, target.address, *blocks.arguments(), target.dtype), (source, target), target)


def gatherv(
    comm: Ranks,
    input: Optional[AnyBuffer],
    output: Optional[AnyBuffer],
    counts: Counts,
    displacements: Optional[Counts] = None,
    root: int = 0,
    *,
    dtype: Optional[AnyDType] = None,
    stream: Optional[AnyStream] = None,
) -> Call:
    """gather with blocks of `counts[r]` elements, the same list on every rank."""
    given = Given(comm, dtype, stream)
    _rank("root", root, comm)
    blocks = _Blocks("gatherv", comm, counts, displacements)
    if comm.rank != root:
        source, address = _own_v(blocks, input, None, given)
        return Call(blocks.name, (address, None, *blocks.arguments(), source.dtype, root), (source,))
    target = _write(blocks.name, output, given)
    blocks.check("output", target)
    source, address = _own_v(blocks, input, target, given)
    return Call(blocks.name, (address, target.address, *blocks.arguments(), target.dtype, root), (source, target), target)


def scatterv(
    comm: Ranks,
    input: Optional[AnyBuffer],
    output: Optional[AnyBuffer],
    counts: Counts,
    displacements: Optional[Counts] = None,
    root: int = 0,
    *,
    dtype: Optional[AnyDType] = None,
    stream: Optional[AnyStream] = None,
) -> Call:
    """scatter with blocks of `counts[r]` elements, the same list on every rank."""
    given = Given(comm, dtype, stream)
    _rank("root", root, comm)
    blocks = _Blocks("scatterv", comm, counts, displacements)
    if comm.rank != root:
        target = _write(blocks.name, output, given)
        _want(blocks.name, "output", target.count, blocks.own, f"counts[{comm.rank}]")
        return Call(blocks.name, (None, *blocks.arguments(), target.address, target.dtype, root), (target,), target)
    source = _read(blocks.name, input, given)
    blocks.check("input", source)
    target, address = source, blocks.own_address(source)
    if output is not None:
        target = _write(blocks.name, output, given)
        _same_type(blocks.name, source, target)
        _want(blocks.name, "output", target.count, blocks.own, f"counts[{comm.rank}]")
        address = target.address or 0
    return Call(blocks.name, (source.address, *blocks.arguments(), address, source.dtype, root), (source, target), target)


def reduce_scatterv(
    comm: Ranks,
    input: AnyBuffer,
    output: Optional[AnyBuffer],
    counts: Counts,
    op: AnyOp = Op.SUM,
    *,
    dtype: Optional[AnyDType] = None,
    stream: Optional[AnyStream] = None,
) -> Call:
    """reduce_scatter with blocks of `counts[r]` elements, the same list on every rank, one after the other."""
    given = Given(comm, dtype, stream)
    blocks = _Blocks("reduce_scatterv", comm, counts, None)
    source = _read(blocks.name, input, given) if output is not None else _write(blocks.name, input, given)
    _want(blocks.name, "input", source.count, sum(blocks.counts), "the sum of counts")
    target, address = source, blocks.own_address(source)
    if output is not None:
        target = _write(blocks.name, output, given)
        _same_type(blocks.name, source, target)
        _want(blocks.name, "output", target.count, blocks.own, f"counts[{comm.rank}]")
        address = target.address or 0
    arguments = (source.address, address, blocks.arguments()[0], source.dtype, op_of(comm, op, source))
    return Call(blocks.name, arguments, (source, target), target)


def all_to_allv(
    comm: Ranks,
    input: AnyBuffer,
    output: Optional[AnyBuffer],
    input_counts: Counts,
    output_counts: Counts,
    input_displacements: Optional[Counts] = None,
    output_displacements: Optional[Counts] = None,
    *,
    dtype: Optional[AnyDType] = None,
    stream: Optional[AnyStream] = None,
) -> Call:
    """all_to_all with blocks of different sizes: what a rank sends to another is what the other expects from it.
    `output` None: in place, with equal lists."""
    given = Given(comm, dtype, stream)
    name = "all_to_allv"
    sent = _Blocks(name, comm, input_counts, input_displacements)
    received = _Blocks(name, comm, output_counts, output_displacements)
    in_place = output is None or output is input
    source = _write(name, input, given) if in_place else _read(name, input, given)
    target = source if in_place else _write(name, output, given)
    _same_type(name, source, target)
    sent.check("input", source)
    received.check("output", target)
    arguments = (source.address, *sent.arguments(), target.address, *received.arguments(), source.dtype)
    return Call(name, arguments, (source, target), target)


# ---- between two ranks ----


def send(
    comm: Ranks,
    input: AnyBuffer,
    peer: int,
    *,
    dtype: Optional[AnyDType] = None,
    stream: Optional[AnyStream] = None,
) -> Call:
    """Sends `input` to rank `peer`. May wait for its receive, unless inside a group."""
    given = Given(comm, dtype, stream)
    source = _read("send", input, given)
    return Call("send", (source.address, source.count, source.dtype, _rank("peer", peer, comm)), (source,))


def recv(
    comm: Ranks,
    output: AnyBuffer,
    peer: int,
    *,
    dtype: Optional[AnyDType] = None,
    stream: Optional[AnyStream] = None,
) -> Call:
    """Receives from rank `peer` as many elements as `output` has."""
    given = Given(comm, dtype, stream)
    target = _write("recv", output, given)
    return Call("recv", (target.address, target.count, target.dtype, _rank("peer", peer, comm)), (target,), target)


def sendrecv(
    comm: Ranks,
    input: AnyBuffer,
    to: int,
    output: AnyBuffer,
    from_: int,
    *,
    dtype: Optional[AnyDType] = None,
    stream: Optional[AnyStream] = None,
) -> Call:
    """Sends `input` to one rank and receives `output` from the same or another, at once."""
    given = Given(comm, dtype, stream)
    source, target = _read("sendrecv", input, given), _write("sendrecv", output, given)
    _same_type("sendrecv", source, target)
    _rank("peer", to, comm)
    _rank("peer", from_, comm)
    arguments = (source.address, source.count, to, target.address, target.count, from_, source.dtype)
    return Call("sendrecv", arguments, (source, target), target)


def scalar_bytes(scalar: Any, dtype: AnyDType) -> "ctypes.Array[ctypes.c_char]":
    """One element as gyre wants it: a number, or a buffer that holds it (for types that Python has no number for)."""
    kind = dtype_of(dtype)
    if isinstance(scalar, (int, float)):
        if kind in (DType.BFLOAT16, DType.FLOAT8_E4M3, DType.FLOAT8_E5M2):
            raise InvalidArgument(
                f"Python has no {kind.name.lower()}: give the scalar as a buffer of {kind.size} bytes that holds it"
            )
        return _packed(scalar, kind)
    buffer = Buffer("scalar", scalar, writable=False, dtype=kind)
    _want("premul_sum", "scalar", buffer.count, 1, "one element")
    copied = ctypes.create_string_buffer(ctypes.string_at(buffer.address or 0, kind.size), kind.size)
    buffer.release()
    return copied


def _packed(number: Union[int, float], kind: DType) -> "ctypes.Array[ctypes.c_char]":
    import struct

    from ._types import FORMATS

    integer = kind < DType.FLOAT16
    try:
        packed = struct.pack("=" + FORMATS[kind], int(number) if integer else float(number))
    except (struct.error, OverflowError) as reason:
        raise InvalidArgument(f"{number!r} is no {kind.name.lower()}: {reason}") from None
    if integer and int(number) != number:
        raise InvalidArgument(f"{number!r} is no {kind.name.lower()}")
    return ctypes.create_string_buffer(packed, kind.size)

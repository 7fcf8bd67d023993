"""Element types, operations and statuses: the lists of gyre.h, with the same names and values."""
from enum import IntEnum
from typing import Union


class DType(IntEnum):
    """Element types. Where a call takes a type it takes the name as well: "float32"."""

    INT8 = 0
    UINT8 = 1
    INT32 = 2
    UINT32 = 3
    INT64 = 4
    UINT64 = 5
    FLOAT16 = 6
    BFLOAT16 = 7
    FLOAT32 = 8
    FLOAT64 = 9
    FLOAT8_E4M3 = 10
    FLOAT8_E5M2 = 11
    BOOL = 12

    @property
    def size(self) -> int:
        """Bytes of one element."""
        return _SIZES[self]


_SIZES = (1, 1, 4, 4, 8, 8, 2, 2, 4, 8, 1, 1, 1)

# The format letters of the struct module; what memoryview and user-defined operations see. Types that Python has no
# letter for are seen as unsigned integers of their size.
FORMATS = ("b", "B", "i", "I", "q", "Q", "e", "H", "f", "d", "B", "B", "?")


class Op(IntEnum):
    """Operations. Where a call takes one it takes the name as well: "sum"; or what Communicator.op_create gives."""

    SUM = 0
    PRODUCT = 1
    MIN = 2
    MAX = 3
    AVERAGE = 4
    BIT_AND = 5
    BIT_OR = 6
    BIT_XOR = 7
    PREMUL_SUM = 8


# Names of other libraries, as gyre_dtype_from_name and gyre_op_from_name know them.
DTYPE_ALIASES = {
    "half": DType.FLOAT16,
    "fp16": DType.FLOAT16,
    "bf16": DType.BFLOAT16,
    "float": DType.FLOAT32,
    "fp32": DType.FLOAT32,
    "single": DType.FLOAT32,
    "double": DType.FLOAT64,
    "fp64": DType.FLOAT64,
    "fp8_e4m3": DType.FLOAT8_E4M3,
    "float8_e4m3fn": DType.FLOAT8_E4M3,
    "f8e4m3": DType.FLOAT8_E4M3,
    "fp8_e5m2": DType.FLOAT8_E5M2,
    "f8e5m2": DType.FLOAT8_E5M2,
    "char": DType.INT8,
    "byte": DType.UINT8,
    "int": DType.INT32,
    "uint": DType.UINT32,
    "boolean": DType.BOOL,
}
OP_ALIASES = {
    "avg": Op.AVERAGE,
    "mean": Op.AVERAGE,
    "prod": Op.PRODUCT,
    "band": Op.BIT_AND,
    "bor": Op.BIT_OR,
    "bxor": Op.BIT_XOR,
}


class Status(IntEnum):
    """What libgyre's calls return. Below 20 the call is at fault, below 40 this process, else a peer or the world."""

    SUCCESS = 0
    IN_PROGRESS = 1
    INVALID_ARGUMENT = 2
    UNSUPPORTED = 3
    FORKED = 4
    NO_MEMORY = 20
    NO_DESCRIPTORS = 21
    BAD_CONFIGURATION = 22
    SYSTEM = 23
    PEER_DEAD = 40
    PEER_UNREACHABLE = 41
    PEER_STALLED = 42
    PEER_LATE = 43
    PEER_LEFT = 44
    MISMATCH = 45
    ABORTED = 46
    MEETING_FAILED = 47
    REFUSED = 48
    PROTOCOL = 49
    INTERNAL = 50
    CORRUPTED = 51
    WRONG_RESULT = 52
    REVOKED = 53
    EXCLUDED = 54
    PARTITIONED = 55


AnyDType = Union[DType, str]

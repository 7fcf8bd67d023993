"""What is measured and how it is built and started: one row per library, one variant per setting worth a try.

A variant is a way of running a library; the summary takes the best one at each size, so that every peer stands at its
best settings.
"""
import os
from dataclasses import dataclass, field


@dataclass
class Library:
    name: str
    source: str                     # below the project's root; empty: cmake builds the driver
    compiler: tuple = ()
    link: tuple = ()
    launcher: str = "spawn"         # spawn, openmpi or mpich
    packages: tuple = ()            # of Debian
    peer: bool = True               # what gyre is compared with; not itself, and no limit
    memories: tuple = ("private",)
    transports: tuple = ("shm", "tcp", "rdma")
    ranks: tuple = ()               # world sizes it can do; empty: all
    # label -> (transport it is for, "" for both; environment; words for the launcher)
    variants: dict = field(default_factory=lambda: {"": ("", {}, ())})

    def driver(self, build):
        return os.path.join(build, "drivers", self.name) if self.source else os.path.join(build, *CMAKE_BUILT[self.name])


# As perf/rdma.sh says why: UCX drops packets between IPv4 addresses whose kind the completions of soft-RoCE do not
# tell.
UCX_RDMA = {"UCX_TLS": "rc_v,ud_v,self", "UCX_UD_VERBS_ETH_DGID_CHECK": "n"}

CMAKE_BUILT = {
    "gyre": ("perf", "compare", "compare-gyre"),
    "limit_private": ("perf", "limits", "limit-private"),
    "limit_shared": ("perf", "limits", "limit-shared"),
}

# Of private buffers' bound: the tile in KiB and how slots are written and read (perf/limits/pass.h). Each has a place
# (how far the cores are, how many bytes) where it is the best.
PASSES = ((32, "claim"), (128, "claim"), (512, "plain"), (32, "past"), (128, "past"), (128, "kernel"))

LIBRARIES = (
    Library("gyre", "", peer=False, memories=("private", "own")),
    Library("openmpi", "perf/compare/drive_mpi.c", ("mpicc.openmpi",), launcher="openmpi",
            packages=("openmpi-bin", "libopenmpi-dev"),
            variants={
                "": ("", {}, ()),
                "coll_sm": ("shm", {}, ("--mca", "coll_sm_priority", "90")),
            }),
    Library("mpich", "perf/compare/drive_mpi.c", ("mpicc.mpich",), launcher="mpich", packages=("mpich", "libmpich-dev"),
            variants={
                "": ("", {}, ()),
                "seg256k": ("tcp", {"UCX_TCP_TX_SEG_SIZE": "256k", "UCX_TCP_RX_SEG_SIZE": "256k"}, ()),
            }),
    Library("gloo", "perf/compare/drive_gloo.cc", ("g++", "-std=c++17"), ("-lgloo", "-lpthread"), packages=("libgloo-dev", "g++"),
            transports=("tcp",), variants={label: ("", {"COMPARE_VARIANT": label}, ()) for label in ("ring", "bcube")}),
    Library("limit_private", "", peer=False, transports=("shm",), ranks=(2,),
            variants={f"{tile}k-{way}": ("", {"COMPARE_TILE": str(tile << 10), "COMPARE_WAY": way}, ()) for tile, way in PASSES}),
    Library("limit_shared", "", peer=False, memories=("own",), transports=("shm",), ranks=(2,),
            variants={label: ("", {"COMPARE_VARIANT": label}, ()) for label in ("store", "stream")}),
)


def transport_environment(library, transport):
    """What makes a library use one transport; the driver counts the bytes and says so if it does not."""
    if library.launcher in ("openmpi", "mpich") and transport == "rdma":
        devices = sorted(os.listdir("/sys/class/infiniband"))       # gyre, too, takes all of one kind
        return {**UCX_RDMA, "UCX_NET_DEVICES": ",".join(f"{device}:1" for device in devices)}
    if library.launcher == "mpich" and transport == "tcp":
        return {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "lo"}
    if library.name == "gyre":
        return {"GYRE_TRANSPORT": transport}
    return {}


def command(library, variant, ranks, cores, transport, program):
    """The argument list that starts all ranks, or None where every rank is started alone."""
    words = list(library.variants[variant][2])
    if library.launcher == "openmpi":
        if transport == "rdma":
            words += ["--mca", "pml", "ucx"]
        else:
            words += ["--mca", "pml", "ob1", "--mca", "btl", "vader,self" if transport == "shm" else "tcp,self"]
        if transport == "tcp":
            words += ["--mca", "btl_tcp_if_include", "lo"]
        if ranks > cores:
            words += ["--mca", "mpi_yield_when_idle", "1"]
        if os.geteuid() == 0:
            words.append("--allow-run-as-root")
        return ["mpirun.openmpi", "-n", str(ranks), "--bind-to", "none", "--oversubscribe", *words, *program]
    if library.launcher == "mpich":
        return ["mpiexec.mpich", "-n", str(ranks), *words, *program]
    return None

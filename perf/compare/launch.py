"""One launch: a memfd for the ranks to share, a folder to meet in, the processes, and what rank 0 printed."""
import json
import os
import secrets
import shutil
import signal
import subprocess
import tempfile

from libraries import command, transport_environment

ARENA_BYTES = 768 << 20     # stamps of the ranks, and room for the buffers of perf/limits; sparse, so that it costs nothing
NOT_OFFERED = 77


class Failed(Exception):
    """The launch has no figures; the text says why."""


def environment(library, variant, transport, ranks, store):
    values = {name: value for name, value in os.environ.items()
              if not name.startswith(("OMPI_", "PMI_", "PMIX_", "UCX_", "MPIR_", "GYRE_"))}
    values.update(transport_environment(library, transport))
    values.update(library.variants[variant][1])
    values.update(WORLD_SIZE=str(ranks))
    if library.name == "gyre":
        values.update(GYRE_SECRET=secrets.token_hex(16))
    return values


def start(words, values, **more):
    return subprocess.Popen(words, env=values, start_new_session=True, stdin=subprocess.DEVNULL, text=True, **more)


def end_group(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def start_all(words, values, program, ranks, errors):
    """Rank 0 (or the launcher) first; its standard output is the one that is read."""
    if words:
        return [start(words, values, stdout=subprocess.PIPE, stderr=errors)]
    return [start(program, {**values, "RANK": str(rank)}, stderr=errors,
                  stdout=subprocess.PIPE if rank == 0 else subprocess.DEVNULL) for rank in range(ranks)]


def finish(processes, patience):
    """Standard output of the first; one process that fails ends all."""
    try:
        output, _ = processes[0].communicate(timeout=patience)
        codes = [process.wait(timeout=10) for process in processes]
    except subprocess.TimeoutExpired as error:
        raise Failed(f"not finished within {error.timeout:.0f} s") from None
    finally:
        for process in processes:
            end_group(process)
    if NOT_OFFERED in codes:
        return None
    if any(codes):
        raise Failed(f"exit status {next(code for code in codes if code)}")
    return output


def launch(library, variant, build, transport, memory, ranks, cores, options, patience):
    """Objects that rank 0 printed, version first; None if the library does not offer this."""
    arena = os.memfd_create("compare")
    store = tempfile.mkdtemp(prefix="compare-")
    processes = []
    try:
        os.ftruncate(arena, ARENA_BYTES)
        program = [library.driver(build), "--arena", f"/proc/{os.getpid()}/fd/{arena}", "--store", store, "--ranks", str(ranks),
                   "--transport", transport, "--memory", memory, *options]
        words = command(library, variant, ranks, cores, transport, program)
        values = environment(library, variant, transport, ranks, store)
        with tempfile.TemporaryFile("w+") as errors:
            try:
                processes = start_all(words, values, program, ranks, errors)
                output = finish(processes, patience)
            except (Failed, OSError) as error:
                errors.seek(0)
                text = " | ".join(line for line in errors.read().splitlines() if line.strip())[-1500:]
                raise Failed(f"{error}: {text}") from None
        if output is None:
            return None
        return [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    finally:
        os.close(arena)
        shutil.rmtree(store, ignore_errors=True)

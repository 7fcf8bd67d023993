"""One launch: a memfd for the ranks to share, a folder to meet in, the processes, and what rank 0 printed."""
import json
import os
import secrets
import shutil
import signal
import subprocess
import tempfile

from libraries import command, transport_environment

# stamps of the ranks, and room for the buffers of perf/limits; sparse, so that it costs nothing
ARENA_BYTES = 768 << 20
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


def start(words, values, group=0, **more):
    """In a process group of the launch, to be ended together, but in no session of its own: where the kernel groups
    tasks by session (sched_autogroup), ranks of different sessions cannot yield to one another."""
    return subprocess.Popen(words, env=values, process_group=group, stdin=subprocess.DEVNULL, text=True, **more)


def start_all(words, values, program, ranks, errors):
    """Rank 0 (or the launcher) first; its standard output is the one that is read."""
    if words:
        return [start(words, values, stdout=subprocess.PIPE, stderr=errors)]
    processes = [start(program, {**values, "RANK": "0"}, stderr=errors, stdout=subprocess.PIPE)]
    for rank in range(1, ranks):
        processes.append(start(program, {**values, "RANK": str(rank)}, processes[0].pid, stderr=errors, stdout=subprocess.DEVNULL))
    return processes


def end_all(processes):
    """Nothing where all have ended. A launcher is asked first, since its ranks need not be in its process group."""
    for signal_number, patience in ((signal.SIGTERM, 5), (signal.SIGKILL, 60)):
        alive = [process for process in processes if process.returncode is None]
        if alive:
            try:
                os.killpg(processes[0].pid, signal_number)
            except ProcessLookupError:
                pass
        try:
            for process in reversed(alive):
                process.wait(timeout=patience)
        except subprocess.TimeoutExpired:
            continue


def finish(processes, patience):
    """Standard output of the first. A rank that fails ends the launch; so does the end of patience."""
    try:
        output, _ = processes[0].communicate(timeout=patience)
        codes = [process.wait(timeout=10) for process in processes]
    except subprocess.TimeoutExpired as error:
        raise Failed(f"not finished within {error.timeout:.0f} s") from None
    finally:
        end_all(processes)
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

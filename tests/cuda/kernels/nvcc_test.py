"""Checks the GPU kernels that nvcc has compiled. They use no spills and no stack, their registers are within the launch
bound, and every kernel of the table exists. The plug-in contains data only.

nvcc_test.py FOLDER PLUGIN PROGRAM   FOLDER: of cmake/GyreCuda.cmake, with sm_*.log; PROGRAM: nvcc_test
"""

import re
import subprocess
import sys
from pathlib import Path

REGISTERS = 65536 // 512  # of a thread, if one block of GY_BLOCK_THREADS occupies a multiprocessor
BYTES = 12 << 20  # of a plug-in with seven architectures and PTX


def output(*command: str) -> str:
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def kernels_of(log: str) -> dict[str, dict[str, int]]:
    found = {}
    for entry in re.split(r"Compiling entry function '", log)[1:]:
        numbers = {what: 0 for what in ("stack frame", "spill stores", "spill loads")}
        for value, what in re.findall(r"(\d+) bytes (stack frame|spill stores|spill loads)", entry):
            numbers[what] += int(value)
        registers = re.search(r"Used (\d+) registers", entry)
        numbers["registers"] = int(registers.group(1)) if registers else -1
        found[entry.split("'")[0]] = numbers
    return found


def faults_of_code(log: Path, cubin: Path, names: set[str]) -> list[str]:
    found = kernels_of(log.read_text())
    faults = [f"{log.stem}: {name} was not compiled" for name in sorted(names - found.keys())]
    faults += [f"{log.stem}: {name} is not in the table" for name in sorted(found.keys() - names)]
    for name, numbers in found.items():
        faults += [f"{log.stem}: {name}: {n} bytes of {what}" for what, n in numbers.items() if n and what != "registers"]
        if not 0 < numbers["registers"] <= REGISTERS:
            faults.append(f"{log.stem}: {name}: {numbers['registers']} registers")
    functions = set(re.findall(r"FUNC +GLOBAL .* (gy_\w+)$", output("readelf", "-sW", str(cubin)), re.M))
    if functions != names:
        faults.append(f"{cubin.name}: functions differ from the table: {sorted(functions ^ names)[:5]}")
    most = max((numbers["registers"], name) for name, numbers in found.items())
    print(f"{log.stem}: {len(found)} kernels, {cubin.stat().st_size} bytes, at most {most[0]} registers ({most[1]})")
    return faults


def faults_of_file(plugin: Path, architectures: int) -> list[str]:
    faults = []
    needed = re.findall(r"\(NEEDED\).*", output("readelf", "-dW", str(plugin)))
    if needed:
        faults.append(f"the plug-in needs libraries: {needed}")
    exported = [line.split()[-1] for line in output("nm", "-D", "--defined-only", str(plugin)).splitlines()]
    if exported != ["gy_cuda_kernels"]:
        faults.append(f"the plug-in exports {exported}")
    if output("nm", "-D", "--undefined-only", str(plugin)):
        faults.append("the plug-in has undefined symbols")
    size, most = plugin.stat().st_size, BYTES * (architectures + 1) // 8
    print(f"the plug-in has {size} bytes")
    if size > most:
        faults.append(f"the plug-in has {size} bytes; with {architectures} architectures it may have {most}")
    return faults


def main(folder: Path, plugin: Path, program: str) -> int:
    names = set(output(program, str(plugin)).split())
    logs = sorted(folder.glob("sm_*.log"))
    faults = [] if logs else ["ptxas has left no log"]
    for log in logs:
        faults += faults_of_code(log, log.with_suffix(".cubin"), names)
    faults += faults_of_file(plugin, len(logs))
    for fault in faults[:20]:
        print(fault)
    print(f"{len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]))

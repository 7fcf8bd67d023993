"""Steps of cmake/GyreCuda.cmake that neither CMake nor nvcc has.

cuda_image.py join OUT PART...        joins parts of PTX, which define different names, to one module
cuda_image.py assemble LOG PTXAS ...  runs ptxas; what it says of each kernel goes to the file LOG
cuda_image.py bytes OUT IMAGE         writes a header with the size of the image
"""

import os
import subprocess
import sys
from pathlib import Path


def join(out: str, *parts: str) -> int:
    directives = (".version", ".target", ".address_size")
    text = []
    for number, part in enumerate(parts):
        lines = Path(part).read_text().splitlines(keepends=True)
        text += [line for line in lines if number == 0 or not line.startswith(directives)]
    Path(out).write_text("".join(text))
    return 0


def assemble(log: str, *command: str) -> int:
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    Path(log).write_text(run.stdout)
    if run.returncode:
        sys.stderr.write(run.stdout[-4000:])
    return run.returncode


def bytes_of(out: str, image: str) -> int:
    Path(out).write_text(f"#define GY_IMAGE_BYTES {os.path.getsize(image)}\n")
    return 0


if __name__ == "__main__":
    sys.exit({"join": join, "assemble": assemble, "bytes": bytes_of}[sys.argv[1]](*sys.argv[2:]))

"""Result files that appear whole or not at all."""
from __future__ import annotations

import os
from pathlib import Path


def write(path: str | Path, text: str) -> None:
    """Writes `text` to PATH.new, flushes it and renames it to PATH; a device or a pipe is written itself. Where that
    fails PATH stays as it was, and the program ends with status 1 and a sentence that names it."""
    path = Path(path)
    special = path.exists() and not path.is_file()
    target = path if special else path.with_name(path.name + ".new")
    try:
        with open(target, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            if not special:
                os.fsync(file.fileno())
        if not special:
            target.replace(path)
    except OSError as problem:
        if not special:
            target.unlink(missing_ok=True)
        raise SystemExit(f"cannot write {path}: {problem.strerror}") from problem

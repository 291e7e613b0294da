"""Where cuBLASLt and cuSOLVER are, which the backend looks for as the dynamic linker does."""

import glob
import os
import pathlib
import sys


def folders() -> list[str]:
    """That of $CUBLASLT_LIBRARY, those beside installed Python packages, and the toolkit's, if they hold one of them."""
    named = os.environ.get("CUBLASLT_LIBRARY", "")
    found = [str(pathlib.Path(named).parent)] if named else []
    for place in [*sys.path, "/usr/local/cuda*"]:
        for pattern in ("nvidia/*/lib", "lib64", "lib"):
            for library in ("libcublasLt", "libcusolver"):
                matches = sorted(glob.glob(f"{place}/{pattern}/{library}.so.*")) if place else []
                found += [str(pathlib.Path(match).parent) for match in matches]
    return list(dict.fromkeys(found))


def add_to_search_path() -> None:
    """Programs that are started from now on look for libraries there, too."""
    old = os.environ.get("LD_LIBRARY_PATH", "")
    os.environ["LD_LIBRARY_PATH"] = ":".join([*([old] if old else []), *folders()])

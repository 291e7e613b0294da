#!/usr/bin/env python3
"""Checks what the compiler made of the hot kernels, without a GPU.

    census.py libtensord_cuda.so [--list REGEX]

Counts the memory instructions of every kernel in the library and compares them with EXPECTED: accesses as wide as
meant, and neither spills nor local arrays. With --list, prints the counts of the kernels that match instead.

Machine code of compute capability 7.0 to 9.x is a sequence of 16-byte instructions; the low 12 bits are the opcode, bits
73 to 75 the width of a memory access.
"""

import argparse
import re
import struct
import subprocess
import sys
from collections import Counter

OPCODES = {0x981: "LDG", 0x381: "LDG", 0x986: "STG", 0x386: "STG", 0x984: "LDS", 0x388: "STS", 0x988: "STS",
           0x983: "LDL", 0x387: "STL", 0x589: "SHFL", 0xF89: "SHFL", 0x389: "SHFL", 0x989: "SHFL"}
WIDTHS = ["8", "8", "16", "16", "32", "64", "128", "128"]
CUDA_MACHINE = 190

# Kernel (a regular expression on its demangled name), and at least so many of each instruction; "none" lists what may
# not occur. Every kernel that moves bits must be here.
EXPECTED = [
    (r"TiledCopy<uint4, true>", {"LDG.128": 4, "STG.128": 4}),
    (r"TiledCopy<unsigned long, true>", {"LDG.64": 4, "STG.64": 4}),
    (r"TiledCopy<unsigned int, true>", {"LDG.32": 4, "STG.32": 4}),
    (r"TiledCopy<unsigned (short|char), true>", {}),
    (r"Tiled<unsigned int, 1, true>", {"LDG.32": 16, "STG.32": 16}),
    (r"Tiled<unsigned int, [24], true>", {"LDG.32": 8, "STG.32": 8}),
    (r"Tiled<unsigned long, 1, true>", {"LDG.64": 4, "STG.64": 4}),
    (r"Tiled<uint4, 1, true>", {"LDG.128": 4, "STG.128": 4}),
    (r"Tiled<unsigned (short|char), 1, true>", {}),
    (r"Packed<uint4, 4, (true|false), true>", {"LDG.128": 4, "STG.128": 4, "SHFL": 10}),
    (r"Packed<unsigned (int|long|short|char), [48], (true|false), true>", {"SHFL": 10}),
]
SPILLS = ("LDL", "STL")


def cubins(library: bytes):
    """Each embedded ELF file of machine code, with its architecture."""
    at = library.find(b"\x7fELF", 1)
    while at >= 0:
        if struct.unpack_from("<H", library, at + 18)[0] == CUDA_MACHINE:
            flags = struct.unpack_from("<I", library, at + 0x30)[0]
            yield flags >> 8 & 0xFF, library[at:]
        at = library.find(b"\x7fELF", at + 4)


def kernels(cubin: bytes):
    """Name and machine code of each function."""
    (table,) = struct.unpack_from("<Q", cubin, 0x28)
    count, names_index = struct.unpack_from("<HH", cubin, 0x3C)
    headers = [struct.unpack_from("<IIQQQQIIQQ", cubin, table + 64 * i) for i in range(count)]
    names = headers[names_index][4]
    for header in headers:
        start = names + header[0]
        name = cubin[start : cubin.index(b"\0", start)].decode()
        if name.startswith(".text."):
            yield name.removeprefix(".text."), cubin[header[4] : header[4] + header[5]]


def census(code: bytes) -> Counter:
    counts: Counter = Counter()
    for at in range(0, len(code) - 15, 16):
        low, high = struct.unpack_from("<QQ", code, at)
        opcode = OPCODES.get(low & 0xFFF)
        if opcode is None:
            continue
        if opcode[:2] in ("LD", "ST"):
            counts[opcode] += 1
            opcode += "." + WIDTHS[high >> 9 & 7]
        counts[opcode] += 1
    return counts


def demangled(names: list[str]) -> list[str]:
    output = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True).stdout
    short = [re.sub(r"^.*\(anonymous namespace\)::", "", line.split(">(")[0] + ">") for line in output.splitlines()]
    return short


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("library")
    parser.add_argument("--list", metavar="REGEX")
    arguments = parser.parse_args()
    with open(arguments.library, "rb") as file:
        library = file.read()

    found = [(arch, name, census(code)) for arch, cubin in cubins(library) for name, code in kernels(cubin)]
    names = demangled([name for _, name, _ in found])
    if arguments.list is not None:
        for (arch, _, counts), name in zip(found, names):
            if re.search(arguments.list, name):
                print(f"sm_{arch} {name}", " ".join(f"{k}={v}" for k, v in sorted(counts.items())))
        return 0

    failures = []
    checked = 0
    for pattern, least in EXPECTED:
        matches = [(arch, name, counts) for (arch, _, counts), name in zip(found, names) if re.fullmatch(pattern, name)]
        if not matches:
            failures.append(f"no kernel is called {pattern}")
        for arch, name, counts in matches:
            checked += 1
            for instruction, count in least.items():
                if counts[instruction] < count:
                    failures.append(f"sm_{arch} {name} has {counts[instruction]} {instruction}, wanted at least {count}")
            for spill in SPILLS:
                if counts[spill]:
                    failures.append(f"sm_{arch} {name} has {counts[spill]} {spill}: it spills, or has a local array")
    for failure in failures:
        print(failure)
    print(f"{checked} kernels checked, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Checks what the compiler made of the hot kernels, without a GPU.

    census.py libtensord_cuda.so [--list REGEX]

Reads the machine code of every kernel in the library and compares it with EXPECTED: accesses as wide as meant, neither
spills nor local arrays, few enough registers, and few enough instructions for the bytes that a thread moves. With
--list, prints the counts of the kernels that match instead. Functions that are not inlined lie behind the code of each
kernel that calls them.

Machine code of compute capability 7.0 to 9.x is a sequence of 16-byte instructions; the low 12 bits are the opcode, bits
12 to 15 the predicate, bits 73 to 75 the width of a memory access. A branch counts from the instruction after it: in
units of 4 bytes from bit 34 on and, from 9.0 on, with 8 more bits below those at bit 16.

How many instructions are few enough: an H200's memory gives each of 132 multiprocessors 4.8e12 / 132 / 1.7e9 = 21 bytes
a cycle at the lowest clock, and it issues 4 instructions of 32 threads: 6 for each byte of a thread. Counted is the
shortest way through the code that makes all the accesses of the usual case, once around the loop or from the first
instruction to the last: whole groups, a single mode. Branches that work of other kinds takes are not in it.

Loads that a thread makes at once must also be under way together. Bits 110 to 112 of a load name the barrier that it
releases, bits 116 to 121 of an instruction the barriers that it waits for: none may wait for such a load before the
last has begun.
"""

import argparse
import re
import struct
import subprocess
import sys
from collections import Counter, deque
from dataclasses import dataclass, field

OPCODES = {0x981: "LDG", 0x381: "LDG", 0x986: "STG", 0x386: "STG", 0x984: "LDS", 0x388: "STS", 0x988: "STS",
           0xFAE: "LDGSTS", 0x983: "LDL", 0x387: "STL", 0x589: "SHFL", 0xF89: "SHFL", 0x389: "SHFL", 0x989: "SHFL",
           0x947: "BRA", 0x94D: "EXIT"}
WIDTHS = ["8", "8", "16", "16", "32", "64", "128", "128"]
ALWAYS = 7  # the predicate that is true
CUDA_MACHINE = 190
# Of entries of the section .nv.info: their form, and what they are.
SIZED_VALUE = 4
REGISTER_COUNT = 0x2F
FUNCTION = 2  # of symbols: their kind
OPERATORS = ["ADD", "MUL", "MAX", "MIN"]  # as core/ops/operators.h counts them
INSTRUCTIONS_PER_BYTE = 6


@dataclass
class Work:
    """What a thread does at once, and what of the bandwidth its instructions may cost."""

    accesses: dict[str, int]
    is_loop: bool = False
    instructions_per_byte: float = INSTRUCTIONS_PER_BYTE

    def instructions(self) -> int:
        moved = sum(count * int(access.split(".")[1]) // 8 for access, count in self.accesses.items())
        return int(moved * self.instructions_per_byte)


@dataclass
class Expectation:
    """Of every kernel whose name matches as a whole: at least so many of each instruction, no more registers."""

    pattern: str
    least: dict[str, int] = field(default_factory=dict)
    registers: int = 255
    work: Work | None = None
    together: str = ""  # loads that must be under way together; of groups, where there is work
    # It calls functions, for operators that cost more than a call: what those keep in local arrays is theirs.
    calls: bool = False


NUMBER = r"(Half|Bfloat16|float|double|std::complex<float>|std::complex<double>|short|int|long)"
BYTE = r"(signed char|unsigned char|bool)"
# Three blocks of 256 threads on a multiprocessor: 48 KiB under way where a thread reads 64 bytes at once; 25 are needed.
REGISTERS = 80
FOUR_GROUPS = {"LDG.128": 4}
TWO_GROUPS = {"LDG.128": 2}  # of single bytes
# Of three inputs and d, two groups each.
FUSED = {"LDG.128": 6, "STG.128": 2}
# A block of 512 threads on a multiprocessor.
ONE_BLOCK = 128
# Of rows that begin anywhere: a group of a is put together from two.
PUT_TOGETHER = {"LDG.128": 4, "STG.128": 2}


def turned(load: str, shared: str, count: int = 4) -> dict[str, int]:
    """Of three inputs, as many elements a thread, each at once."""
    return {f"LDG.{load}": 3 * count, f"STG.{load}": count, **in_shared_memory(shared, count)}


def in_shared_memory(width: str, count: int = 4) -> dict[str, int]:
    return {f"STS.{width}": 3 * count, f"LDS.{width}": 3 * count}


# Every kernel that moves bits must be here, and every one that reduces or combines groups of 16 bytes or turns tiles.
EXPECTED = [
    Expectation(r"TiledCopy<uint4, true>", {"LDG.128": 4, "STG.128": 4}),
    Expectation(r"TiledCopy<unsigned long, true>", {"LDG.64": 4, "STG.64": 4}),
    Expectation(r"TiledCopy<unsigned int, true>", {"LDG.32": 4, "STG.32": 4}),
    Expectation(r"TiledCopy<unsigned (short|char), true>"),
    Expectation(r"Runs<unsigned (char|short|int|long), unsigned (char|short|int|long), void>", PUT_TOGETHER, 64,
                together="LDG.128"),
    Expectation(r"Runs<(float|double|std::complex<(float|double)>), \1, .*>", PUT_TOGETHER, 64, together="LDG.128"),
    Expectation(r"Runs<(Half|Bfloat16), (Half|Bfloat16), float>", PUT_TOGETHER, 64, together="LDG.128"),
    Expectation(r"Runs<(Half|Bfloat16), float, float>", {"LDG.64": 4, "STG.128": 2}, 64),
    Expectation(r"Runs<float, (Half|Bfloat16), float>", {"LDG.128": 4, "STG.64": 2}, 64),
    Expectation(r"Runs<float, double, double>", {"LDG.64": 4, "STG.128": 2}, 64),
    Expectation(r"Runs<double, float, double>", {"LDG.128": 4, "STG.64": 2}, 64),
    Expectation(r"Tiled<unsigned int, 1, true>", {"LDG.32": 16, "STG.32": 16}),
    Expectation(r"Tiled<unsigned int, [24], true>", {"LDG.32": 8, "STG.32": 8}),
    Expectation(r"Tiled<unsigned long, 1, true>", {"LDG.64": 4, "STG.64": 4}),
    Expectation(r"Tiled<uint4, 1, true>", {"LDG.128": 4, "STG.128": 4}),
    Expectation(r"Tiled<unsigned (short|char), 1, true>"),
    # A word a thread, of which a multiprocessor has 2048.
    Expectation(r"Copy<uint4>", {"LDG.128": 1, "STG.128": 1}, 32),
    Expectation(r"Copy<unsigned long>", {"LDG.64": 1, "STG.64": 1}, 32),
    Expectation(r"Copy<unsigned int>", {"LDG.32": 1, "STG.32": 1}, 32),
    Expectation(r"Copy<unsigned (short|char)>", {}, 32),
    Expectation(r"TakeWords<uint4>", {"LDG.128": 1, "STG.128": 1}, 32),
    Expectation(r"TakeWords<unsigned long>", {"LDG.64": 1, "STG.64": 1}, 32),
    Expectation(r"TakeWords<unsigned int>", {"LDG.32": 1, "STG.32": 1}, 32),
    Expectation(r"TakeWords<unsigned (short|char)>", {}, 32),
    Expectation(r"SplitInParts<unsigned int, float>", {"LDG.32": 1, "STG.32": 3}, 32),
    Expectation(r"SplitInParts<unsigned long, std::complex<float> ?>", {"LDG.64": 1, "STG.64": 3}, 40),
    Expectation(r"Fill<uint4>", {"STG.128": 1}, 32),
    Expectation(r"Fill<unsigned long>", {"STG.64": 1}, 32),
    Expectation(r"Fill<unsigned int>", {"STG.32": 1}, 32),
    Expectation(r"Fill<unsigned (short|char)>", {}, 32),
    # A block of 1024 threads on a multiprocessor, or two of 512.
    Expectation(r"Packed<uint4, (true|false), true>", {"LDGSTS.128": 4, "STG.128": 4}, 64),
    Expectation(r"Packed<unsigned long, (true|false), true>", {"LDGSTS.64": 4, "STG.64": 4}, 64),
    Expectation(r"Packed<unsigned int, (true|false), true>", {"LDGSTS.32": 4, "STG.32": 4}, 64),
    Expectation(r"Packed<unsigned (short|char), (true|false), true>", {}, 64),
    Expectation(rf"(LongRows|Columns)<{NUMBER}, (ADD|MUL|MAX|MIN)>", FOUR_GROUPS, REGISTERS,
                Work(FOUR_GROUPS, is_loop=True)),
    Expectation(rf"ShortRows<{NUMBER}, (ADD|MUL|MAX|MIN)>", FOUR_GROUPS, REGISTERS, Work(FOUR_GROUPS)),
    # More than memory leaves time for: reductions of single bytes reach 0.9 of the bandwidth at least.
    Expectation(rf"(LongRows|Columns)<{BYTE}, (ADD|MUL|MAX|MIN)>", TWO_GROUPS, REGISTERS,
                Work(TWO_GROUPS, is_loop=True, instructions_per_byte=INSTRUCTIONS_PER_BYTE / 0.9)),
    Expectation(rf"ShortRows<{BYTE}, (ADD|MUL|MAX|MIN)>", TWO_GROUPS, REGISTERS,
                Work(TWO_GROUPS, instructions_per_byte=INSTRUCTIONS_PER_BYTE / 0.9)),
    # Two blocks of 256 threads on a multiprocessor, or of 192 (DirectTile 3), and one of complex128. Asynchronous copies by
    # vectors and by elements, or halves of complex128.
    Expectation(r"Tiles<(float|Half|Bfloat16|short), \(DirectTile\)[012], \(TileTransfer\)0>", {"LDS.128": 4}, 128),
    Expectation(r"Tiles<(signed|unsigned) char, \(DirectTile\)[12], \(TileTransfer\)0>", {"LDS.128": 4}, 128),
    Expectation(r"Tiles<(float|Half|Bfloat16), \(DirectTile\)3, \(TileTransfer\)0>", {"LDS.128": 8}, 168),
    Expectation(r"Tiles<(float|int), \(DirectTile\)[012], \(TileTransfer\)1>",
                {"LDS.128": 4, "LDGSTS.32": 24, "LDGSTS.128": 12}, 128),
    Expectation(r"Tiles<float, \(DirectTile\)3, \(TileTransfer\)1>",
                {"LDS.128": 8, "LDGSTS.32": 24, "LDGSTS.128": 12}, 168),
    Expectation(r"Tiles<(double|std::complex<float>), \(DirectTile\)3, \(TileTransfer\)0>", {"LDS.128": 8}, 168),
    Expectation(r"Tiles<(double|std::complex<float>), \(DirectTile\)3, \(TileTransfer\)1>",
                {"LDS.128": 8, "LDGSTS.64": 24, "LDGSTS.128": 12}, 168),
    Expectation(r"Tiles<(double|std::complex<float>), \(DirectTile\)[12], \(TileTransfer\)0>", {"LDS.128": 8}, 128),
    Expectation(r"Tiles<(double|long|std::complex<float>), \(DirectTile\)[12], \(TileTransfer\)1>",
                {"LDS.128": 8, "LDGSTS.64": 24, "LDGSTS.128": 12}, 128),
    Expectation(r"Tiles<std::complex<double>, \(DirectTile\)[123], \(TileTransfer\)0>", {"LDS.128": 8}, 200),
    Expectation(r"Tiles<std::complex<double>, \(DirectTile\)[123], \(TileTransfer\)1>",
                {"LDS.128": 8, "LDGSTS.64": 48, "LDGSTS.128": 12}, 200),
    Expectation(rf"PerThread<({NUMBER}|{BYTE}), 1u>", {}, 128),
    Expectation(rf"PerThread<({NUMBER}|{BYTE}), 4u>", {}, 255),
    Expectation(rf"Deep<({NUMBER}|{BYTE}), [14]u, [14]u>", {}, 128),
    Expectation(rf"FusedGroups<({NUMBER}|{BYTE}), false, (false|true)>", FUSED, REGISTERS, Work(FUSED)),
    # Not of complex128, whose values are too many for the registers that last through a call.
    Expectation(r"FusedGroups<(Half|Bfloat16|float|double|std::complex<float>), true, (false|true)>", FUSED, REGISTERS,
                calls=True),
    # Four elements a thread, or two of complex128: four blocks of 256 threads on a multiprocessor, or three.
    Expectation(r"FusedMixed<(float|long|std::complex<float> )>", {}, 64, calls=True),
    Expectation(r"FusedMixed<(double|std::complex<double> )>", {}, REGISTERS, calls=True),
    Expectation(r"Tiled<Uniform<(Half|Bfloat16)> >", turned("16", "16"), REGISTERS, together="LDG.16"),
    Expectation(r"Tiled<Uniform<float> >", turned("32", "32"), REGISTERS, together="LDG.32"),
    Expectation(r"Tiled<Uniform<(double|std::complex<float> )> >", turned("64", "64"), ONE_BLOCK, together="LDG.64"),
    Expectation(r"Tiled<Uniform<std::complex<double> > >", turned("128", "128", 2), ONE_BLOCK),
    Expectation(r"Tiled<Mixed<float> >", in_shared_memory("32"), ONE_BLOCK, calls=True),
    Expectation(r"Tiled<Mixed<(double|long|std::complex<float> )> >", in_shared_memory("64"), ONE_BLOCK, calls=True),
    Expectation(r"Tiled<Mixed<std::complex<double> > >", in_shared_memory("128", 2), ONE_BLOCK, calls=True),
    # Eight blocks of 256 threads on a multiprocessor.
    Expectation(r"(SortRuns|MergeRuns|StoreIndices)\(.*", {}, 32),
    Expectation(r"JoinTotals<.*>", {}, 128),
    # Around calls of libraries that take far longer.
    Expectation(r"(Look|Power|Upper|Triangle|Hermitian|Identity|Diagonal|Factors|Cut|Sums|Divide|Combine|Quotient|Finished|Exponents|Balance|Unbalance)<.*>|Addresses.*", {}, 64),
]
# Those that change elements on the way by a function of all types and operators, and those of all cases.
NOT_EXPECTED = r"(Packed|Tiled|TiledCopy)<.*, false>|(Reference|TakeTerms|Tree|Scan|Gather|Scatter).*|FusedGroups<std::complex<double>, true, .*>"
SPILLS = ("LDL", "STL")


@dataclass
class Kernel:
    arch: int
    symbol: str
    registers: int
    code: list[tuple[int, int]]  # the two words of each instruction
    own: int  # how many of them come before the first function that it calls
    name: str = ""


def cubins(library: bytes):
    """Each embedded ELF file of machine code, with its architecture."""
    at = library.find(b"\x7fELF", 1)
    while at >= 0:
        if struct.unpack_from("<H", library, at + 18)[0] == CUDA_MACHINE:
            flags = struct.unpack_from("<I", library, at + 0x30)[0]
            yield flags >> 8 & 0xFF, library[at:]
        at = library.find(b"\x7fELF", at + 4)


def register_counts(cubin: bytes, info: tuple[int, int], symbols: tuple[int, int]) -> dict[int, int]:
    """Registers of each function, by the number of its section. Takes offsets and sizes of .nv.info and .symtab."""
    counts = {}
    at, end = info[0], sum(info)
    while at < end:
        form, attribute, size = struct.unpack_from("<BBH", cubin, at)
        at += 4
        if form != SIZED_VALUE:
            continue
        if attribute == REGISTER_COUNT:
            symbol, registers = struct.unpack_from("<II", cubin, at)
            (section,) = struct.unpack_from("<H", cubin, symbols[0] + 24 * symbol + 6)
            counts[section] = registers
        at += size
    return counts


def first_functions(cubin: bytes, symbols: tuple[int, int]) -> dict[int, int]:
    """Where in a section the first function begins that its kernel calls."""
    first: dict[int, int] = {}
    for at in range(symbols[0], sum(symbols), 24):
        _, kind, _, section, place, _ = struct.unpack_from("<IBBHQQ", cubin, at)
        if kind & 15 == FUNCTION and place > 0:
            first[section] = min(first.get(section, place), place)
    return first


def kernels(arch: int, cubin: bytes):
    """Each function."""
    (table,) = struct.unpack_from("<Q", cubin, 0x28)
    count, names_index = struct.unpack_from("<HH", cubin, 0x3C)
    headers = [struct.unpack_from("<IIQQQQIIQQ", cubin, table + 64 * i) for i in range(count)]
    names = headers[names_index][4]

    def name_of(header) -> str:
        start = names + header[0]
        return cubin[start : cubin.index(b"\0", start)].decode()

    places = {name_of(header): header[4:6] for header in headers}
    if ".nv.info" not in places:
        return
    registers = register_counts(cubin, places[".nv.info"], places[".symtab"])
    functions = first_functions(cubin, places[".symtab"])
    for section, header in enumerate(headers):
        name = name_of(header)
        if name.startswith(".text."):
            code = cubin[header[4] : header[4] + header[5] // 16 * 16]
            yield Kernel(
                arch,
                name.removeprefix(".text."),
                registers[section],
                list(struct.iter_unpack("<QQ", code)),
                functions.get(section, len(code)) // 16,
            )


def opcode_of(low: int, high: int) -> str | None:
    opcode = OPCODES.get(low & 0xFFF)
    if opcode is not None and opcode[:2] in ("LD", "ST"):
        opcode += "." + WIDTHS[high >> 9 & 7]
    return opcode


def census(code: list[tuple[int, int]]) -> Counter:
    counts: Counter = Counter()
    for instruction in code:
        opcode = opcode_of(*instruction)
        if opcode is None or opcode in ("BRA", "EXIT"):
            continue
        counts[opcode] += 1
        if "." in opcode:
            counts[opcode.split(".")[0]] += 1
    return counts


def successors(kernel: Kernel) -> list[list[int]]:
    """Of each instruction those that may run next; len(kernel.code) is the end."""
    result = []
    end = len(kernel.code)
    for at, (low, high) in enumerate(kernel.code):
        opcode = opcode_of(low, high)
        is_sure = low >> 12 & 15 == ALWAYS
        if opcode == "BRA":
            is_sure = is_sure and high >> 23 & 15 == ALWAYS
            distance = low >> 34 | (high & 0x3FFFF) << 30
            distance -= (distance >> 47) << 48
            if kernel.arch >= 90:
                distance = distance << 8 | low >> 16 & 0xFF
            next_ones = [at + 1 + distance * 4 // 16]
        elif opcode == "EXIT":
            next_ones = [end]
        else:
            next_ones, is_sure = [at + 1], True
        result.append(next_ones if is_sure else next_ones + [at + 1])
    return result


def shortest_way(kernel: Kernel, work: Work) -> int | None:
    """Instructions on the shortest way that makes all accesses of `work`."""
    next_ones = successors(kernel)
    opcodes = [opcode_of(*instruction) for instruction in kernel.code]
    wanted = tuple(work.accesses.values())
    place = {access: i for i, access in enumerate(work.accesses)}

    def search(start: int, stop: int) -> int | None:
        states = {(start, (0,) * len(wanted))}
        to_visit = deque((state, 0) for state in states)
        while to_visit:
            (at, made), steps = to_visit.popleft()
            if opcodes[at] in place:
                i = place[opcodes[at]]
                made = made[:i] + (min(made[i] + 1, wanted[i]),) + made[i + 1 :]
            for successor in next_ones[at]:
                if successor == stop and made == wanted:
                    return steps + 1
                if successor < len(opcodes) and (successor, made) not in states:
                    states.add((successor, made))
                    to_visit.append(((successor, made), steps + 1))
        return None

    if not work.is_loop:
        return search(0, len(opcodes))
    heads = {successor for at, some in enumerate(next_ones) for successor in some if successor < at}
    ways = [way for head in heads if (way := search(head, head)) is not None]
    return min(ways, default=None)


def serial_loads(kernel: Kernel, opcode: str) -> int:
    """How many instructions before the last `opcode` wait for an earlier one."""
    pending = 0
    waiting = 0
    last = max((at for at, words in enumerate(kernel.code) if opcode_of(*words) == opcode), default=0)
    for low, high in kernel.code[:last]:
        waiting += (high >> 52 & 0x3F & pending) != 0
        if opcode_of(low, high) == opcode:
            pending |= 1 << (high >> 46 & 7)
    return waiting


def name_all(found: list[Kernel]) -> None:
    symbols = "\n".join(kernel.symbol for kernel in found)
    output = subprocess.run(["c++filt"], input=symbols, capture_output=True, text=True, check=True).stdout
    for kernel, line in zip(found, output.splitlines()):
        name = re.sub(r"\(tensord::core::BinaryOperator\)(\d)", lambda match: OPERATORS[int(match[1])], line)
        name = re.sub(r"void |tensord::core::(cuda::)?|\(anonymous namespace\)::", "", name)
        kernel.name = name.split(">(")[0] + ">"


def failures_of(kernel: Kernel, expectation: Expectation) -> list[str]:
    counts = census(kernel.code[: kernel.own] if expectation.calls else kernel.code)
    found = [f"{counts[instruction]} {instruction}, wanted at least {count}"
             for instruction, count in expectation.least.items() if counts[instruction] < count]
    found += [f"{counts[spill]} {spill}: it spills, or has a local array" for spill in SPILLS if counts[spill]]
    if kernel.registers > expectation.registers:
        found.append(f"{kernel.registers} registers, wanted at most {expectation.registers}")
    work = expectation.work
    load = expectation.together or ("LDG.128" if work is not None else "")
    if load and (serial := serial_loads(kernel, load)):
        found.append(f"{serial} instructions that wait for an {load} before the last one")
    if work is not None:
        way = shortest_way(kernel, work)
        if way is None:
            found.append(f"no way that makes {work.accesses}")
        elif way > work.instructions():
            found.append(f"{way} instructions for {work.accesses}, wanted at most {work.instructions()}")
    return [f"sm_{kernel.arch} {kernel.name} has {failure}" for failure in found]


def describe(kernel: Kernel) -> str:
    counts = census(kernel.code)
    words = [f"sm_{kernel.arch} {kernel.name}", f"registers={kernel.registers}", f"instructions={len(kernel.code)}"]
    for expectation in EXPECTED:
        if expectation.work is not None and re.fullmatch(expectation.pattern, kernel.name):
            kind = "loop" if expectation.work.is_loop else "thread"
            words.append(f"{kind}={shortest_way(kernel, expectation.work)}/{expectation.work.instructions()}")
    return " ".join(words + [f"{instruction}={count}" for instruction, count in sorted(counts.items())])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("library")
    parser.add_argument("--list", metavar="REGEX")
    arguments = parser.parse_args()
    with open(arguments.library, "rb") as file:
        library = file.read()

    found = [kernel for arch, cubin in cubins(library) for kernel in kernels(arch, cubin)]
    name_all(found)
    if arguments.list is not None:
        for kernel in found:
            if re.search(arguments.list, kernel.name):
                print(describe(kernel))
        return 0

    failures = []
    checked = 0
    for expectation in EXPECTED:
        matches = [kernel for kernel in found if re.fullmatch(expectation.pattern, kernel.name)]
        if not matches:
            failures.append(f"no kernel is called {expectation.pattern}")
        checked += len(matches)
        for kernel in matches:
            failures += failures_of(kernel, expectation)
    for kernel in found:
        if not any(re.fullmatch(pattern, kernel.name) for pattern in (NOT_EXPECTED, *(e.pattern for e in EXPECTED))):
            failures.append(f"nothing is expected of sm_{kernel.arch} {kernel.name}")
    for failure in failures:
        print(failure)
    print(f"{checked} kernels checked, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

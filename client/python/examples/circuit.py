"""An amplitude of a random quantum circuit, as one Einstein sum of all its gates.

The circuit is of the kind of Google's of 2019: in every cycle a random root of a Pauli
matrix for each qubit of a grid, then fSim for every other bond of each row or column.
"""

import argparse
import contextlib
import itertools
import time
from collections.abc import Iterator
from typing import NamedTuple
import numpy as np
import tensord

X, Y = np.array([[0, 1], [1, 0]]), np.array([[0, -1j], [1j, 0]])
PAULI = {"x": X, "y": Y, "w": (X + Y) / np.sqrt(2)}
FSIM = np.diag([1, 0, 0, np.exp(-1j * np.pi / 6)])
FSIM[1, 2] = FSIM[2, 1] = -1j
TENSORS = {
    **{name: ((1 + 1j) * np.eye(2) + (1 - 1j) * p) / 2 for name, p in PAULI.items()},
    "fsim": FSIM.reshape(2, 2, 2, 2),  # (qubits behind it, qubits before it), as all
    "0": np.array([1, 0]),
    "1": np.array([0, 1]),
}


class Gate(NamedTuple):
    name: str
    qubits: tuple[int, ...]


def bonds(rows: int, columns: int, pattern: str) -> Iterator[tuple[int, int]]:
    """The neighbours that interact: in rows by A and B, in columns by C and D."""
    down, right = (0, 1) if pattern in "AB" else (1, 0)
    for row, column in itertools.product(range(rows - down), range(columns - right)):
        if (row + column) % 2 == (pattern in "BD"):
            yield row * columns + column, (row + down) * columns + column + right


def random_circuit(rows: int, columns: int, cycles: int, seed: int) -> Iterator[Gate]:
    rng = np.random.default_rng(seed)
    root = rng.integers(3, size=rows * columns)
    for cycle in range(cycles + 1):
        root = (root + rng.integers(1, 3, size=root.size)) % 3  # not the same again
        yield from (Gate("xyw"[r], (qubit,)) for qubit, r in enumerate(root))
        if cycle < cycles:
            pattern = "ABCDCDAB"[cycle % 8]
            yield from (Gate("fsim", bond) for bond in bonds(rows, columns, pattern))


def random_bits(count: int, seed: int) -> str:
    return "".join(map(str, np.random.default_rng(seed).integers(2, size=count)))


def network(gates: list[Gate], bits: str) -> tuple[str, list[str]]:
    """The subscripts of <bits| gates |0...0>, and the names of the operands."""
    labels = map(chr, itertools.count(0x4E00))  # Chinese: 20,000 letters in a row
    wires = [next(labels) for _ in bits]
    terms, names = wires.copy(), ["0"] * len(bits)
    for gate in gates:
        before = "".join(wires[qubit] for qubit in gate.qubits)
        for qubit in gate.qubits:
            wires[qubit] = next(labels)
        terms.append("".join(wires[qubit] for qubit in gate.qubits) + before)
        names.append(gate.name)
    return ",".join(terms + wires) + "->", names + list(bits)


def state_vector(gates: list[Gate], qubit_count: int) -> np.ndarray:
    state = np.zeros((2,) * qubit_count, complex)
    state[(0,) * qubit_count] = 1
    for name, qubits in gates:
        axes = range(len(qubits), 2 * len(qubits)), qubits
        state = np.tensordot(TENSORS[name], state, axes)
        state = np.moveaxis(state, range(len(qubits)), qubits)
    return state


def amplitude(s: tensord.Session, gates: list[Gate], bits: str, mib: float) -> complex:
    """<bits| gates |0...0>, with intermediate results of that size at most."""
    subscripts, names = network(gates, bits)
    tensors = {name: s.upload(t.astype("complex64")) for name, t in TENSORS.items()}
    begun = time.perf_counter()
    operands = (tensors[name] for name in names)
    result = s.einsum(subscripts, *operands, memory_limit=int(mib * 2**20))
    value = complex(np.asarray(result))
    took = time.perf_counter() - begun
    print(f"{len(bits)} qubits, {len(names)} tensors: {value:.6e} in {took:.2f} s")
    return value


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=6, help="of qubits")
    parser.add_argument("--columns", type=int, default=6)
    parser.add_argument("--cycles", type=int, default=8)
    parser.add_argument("--seed", type=int, default=2019)
    parser.add_argument("--memory-mib", type=float, default=8, help="for intermediates")
    parser.add_argument("--address", help="of a server; by default a private one is run")
    parser.add_argument("--numpy", action="store_true", help="no server: cotengra on NumPy")
    args = parser.parse_args()
    with contextlib.ExitStack() as stack:
        if args.numpy:
            import numpy_session

            s = numpy_session.Session()
        else:
            at = args.address or stack.enter_context(tensord.serve())
            s = stack.enter_context(tensord.connect(at, job="circuit", timeout=600))
        # A circuit of few qubits, of which NumPy has the whole state.
        small = list(random_circuit(4, 4, args.cycles, args.seed))
        bits = random_bits(16, args.seed + 1)
        value = amplitude(s, small, bits, args.memory_mib / 128)
        expected = state_vector(small, 16)[tuple(map(int, bits))]
        error = abs(value - expected) * 2**8  # to the root mean square of all amplitudes
        print(f"state vector: {expected:.6e}, relative difference {error:.1e}")
        # And one of which nobody has.
        large = list(random_circuit(args.rows, args.columns, args.cycles, args.seed))
        bits = random_bits(args.rows * args.columns, args.seed + 1)
        value = amplitude(s, large, bits, args.memory_mib)
        print(
            f"probability of {bits}: {abs(value) ** 2 * 2**len(bits):.3f} / 2^{len(bits)}"
        )
    # A rounding a gate.
    return 0 if error <= len(small) * np.finfo("float32").eps else 1


if __name__ == "__main__":
    raise SystemExit(main())

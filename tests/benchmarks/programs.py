"""What one request of many statements saves over many requests, and functions beside NumPy.

Prints the wall time of a program of small statements beside that of the same operations as
calls of their own, one after the other; of functions of large matrices beside NumPy's, which
run on one thread, as do the server's here; and of a gate on two sites of a chain, which an SVD
splits again, as a program, as calls, and by NumPy. Medians; nothing is asserted. Run it on a machine that does nothing else:

    tests/benchmarks/programs.py [--address ADDRESS]
"""

import argparse
import contextlib
import statistics
import time
from collections.abc import Callable

import numpy as np

import tensord

COUNT = 20  # statements


def median_ms(run: Callable[[], object], repeats: int = 200) -> float:
    """Median wall time of `run`, in milliseconds, after some that do not count."""
    for _ in range(10):
        run()
    times = []
    for _ in range(repeats):
        begun = time.perf_counter()
        run()
        times.append(time.perf_counter() - begun)
    return 1e3 * statistics.median(times)


def small_statements(session: tensord.Session, extent: int) -> None:
    """x := A*x, 20 times, three ways."""
    rng = np.random.default_rng(1)
    a = session.upload(rng.standard_normal((extent, extent)) / extent)
    x = session.upload(rng.standard_normal((extent, extent)))
    lines = [f"x{i + 1}[i,j] := A[i,k]*x{i}[k,j]" for i in range(COUNT)]
    text = "\n".join(lines)
    last = f"x{COUNT}"

    def one_by_one() -> tensord.RemoteTensor:
        y = x
        for _ in range(COUNT):
            y = session.einsum("ik,kj->ij", a, y)
        return y

    program = session.program(text, A=a, x0=x, outputs=[last])
    wanted = one_by_one().numpy()
    for got in (session.run(text, A=a, x0=x, outputs=[last]), program(A=a, x0=x)):
        assert np.allclose(got.numpy(), wanted), "the program computes something else"
    calls = median_ms(one_by_one)
    text_ms = median_ms(lambda: session.run(text, A=a, x0=x, outputs=[last]))
    prepared = median_ms(lambda: program(A=a, x0=x))
    one = median_ms(lambda: session.einsum("ik,kj->ij", a, x))
    print(
        f"{extent:5} {one:8.3f} {calls:10.3f} {text_ms:9.3f} {prepared:9.3f}"
        f" {calls / prepared:8.1f}"
    )


FUNCTIONS: dict[str, Callable[..., np.ndarray]] = {
    "exp(A[i,j])": lambda a, b, v, out: np.exp(a, out=out),
    "A[i,j]^2": lambda a, b, v, out: np.square(a, out=out),
    "A[i,j]/B[i,j]": lambda a, b, v, out: np.divide(a, b, out=out),
    "A[i,j]/v[j]": lambda a, b, v, out: np.divide(a, v, out=out),
    "max(A[i,j], 0)": lambda a, b, v, out: np.maximum(a, 0, out=out),
    "where(A[i,j] > 0, A[i,j], B[i,j])": lambda a, b, v, out: np.where(a > 0, a, b),
    "1/(1 + exp(-A[i,j]))": lambda a, b, v, out: np.divide(
        1, 1 + np.exp(-a), out=out
    ),
    "A[i,j]/sqrt(A[k,l]*A[k,l])": lambda a, b, v, out: np.divide(
        a, np.sqrt(np.vdot(a, a)), out=out
    ),
}


def functions(session: tensord.Session, dtype: str, extent: int = 2000) -> None:
    """Each of FUNCTIONS, into a matrix that there is."""
    rng = np.random.default_rng(1)
    arrays = {
        "A": rng.uniform(-1, 1, (extent, extent)).astype(dtype),
        "B": rng.uniform(0.5, 1, (extent, extent)).astype(dtype),
        "v": rng.uniform(0.5, 1, extent).astype(dtype),
    }
    out = np.empty_like(arrays["A"])
    result = session.upload(out)
    tensors = {name: session.upload(array) for name, array in arrays.items()}
    for text, function in FUNCTIONS.items():
        used = {name: x for name, x in tensors.items() if f"{name}[" in text}
        statement = f"D[i,j] = {text}"

        def run() -> object:
            return session.run(statement, used, D=result)

        wanted = function(*arrays.values(), out)
        run()
        assert np.allclose(result.numpy(), wanted, rtol=1e-5), text
        ours = median_ms(run, 30)
        numpys = median_ms(lambda: function(*arrays.values(), out), 30)
        print(f"{text:36} {dtype} {ours:8.2f} {numpys:8.2f} {ours / numpys:6.2f}")


GATE = """
    T[l,p,q,r] := G[p,q,x,y]*A[l,x,m]*B[m,y,r]
    U[l,p,k], S[k], V[k,q,r] := svd(T[l,p,q,r]; relative_cutoff=1e-12, rank={rank})
    N := sqrt(S[k]*S[k])
    L[l,p,k] := U[l,p,k]*S[k]/N
"""


def gates(session: tensord.Session, bond: int) -> None:
    """A gate on two sites, float64, four ways."""
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((2, bond, 2, bond)) / bond
    gate = rng.standard_normal((2, 2, 2, 2))
    tensors = {"A": session.upload(a), "B": session.upload(b), "G": session.upload(gate)}
    text = GATE.format(rank=bond)
    program = session.program(text, tensors, outputs=["L", "V"])

    def calls() -> tuple[tensord.RemoteTensor, tensord.RemoteTensor]:
        t = session.einsum("pqxy,lxm,myr->lpqr", tensors["G"], tensors["A"], tensors["B"])
        u, s, v = session.factorize(
            "lpqr->lpk,k,kqr", t, method="svd", relative_cutoff=1e-12, rank=bond
        )
        norm = session.run("N := sqrt(S[k]*S[k])", S=s)
        return session.run("L[l,p,k] := U[l,p,k]*S[k]/N", U=u, S=s, N=norm), v

    def numpys() -> tuple[np.ndarray, np.ndarray]:
        t = np.tensordot(np.tensordot(a, b, 1), gate, ((1, 2), (2, 3)))
        t = t.transpose(0, 2, 3, 1).reshape(2 * bond, 2 * bond)
        u, s, v = np.linalg.svd(t, full_matrices=False)
        kept = min(bond, int(np.count_nonzero(s > 1e-12 * s[0])))
        s = s[:kept] / np.linalg.norm(s[:kept])
        return (u[:, :kept] * s).reshape(bond, 2, kept), v[:kept].reshape(kept, 2, bond)

    made = program(tensors)
    products = [
        np.tensordot(np.asarray(left), np.asarray(right), 1)
        for left, right in ((made["L"], made["V"]), calls(), numpys())
    ]
    assert np.allclose(products[0], products[2]) and np.allclose(products[1], products[2])
    repeats = 200 if bond <= 32 else 20
    times = [
        median_ms(run, repeats)
        for run in (lambda: program(tensors), lambda: session.run(text, tensors), calls, numpys)
    ]
    ours, numpy_ms = times[0], times[-1]
    print(f"{bond:5} " + "".join(f"{ms:9.3f}" for ms in times) + f" {ours / numpy_ms:9.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--address", help="of a server; by default a private one is run"
    )
    args = parser.parse_args()
    with contextlib.ExitStack() as stack:
        at = args.address or stack.enter_context(tensord.serve())
        session = stack.enter_context(tensord.connect(at, job="programs"))
        print(f"{COUNT} products of square matrices, float64, ms")
        print("extent  one call   20 calls   program  prepared  20 calls to prepared")
        for extent in (8, 32, 128):
            small_statements(session, extent)
    with tensord.serve(threads=1) as at, tensord.connect(at) as session:
        print("functions of matrices of 2000 x 2000, ms")
        print("what                                 type  tensord    NumPy  ratio")
        for dtype in ("f4", "f8"):
            functions(session, dtype)
        print("a gate on two sites, float64, ms")
        print(" bond  prepared  program    calls    NumPy  prepared to NumPy")
        for bond in (16, 32, 64, 128):
            gates(session, bond)


if __name__ == "__main__":
    main()

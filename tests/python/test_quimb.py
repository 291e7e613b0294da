"""quimb, cotengra and autoray compute with tensors of a server as with NumPy's arrays."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import autoray
import cotengra
import numpy as np
import pytest
import quimb as qu
import scipy.linalg
import quimb.tensor as qtn
from quimb.tensor import decomp

import tensord
import tensord.array as xp
from conftest import REPOSITORY
from random_arrays import random_array
from tensord import RemoteTensor

EXAMPLES = REPOSITORY / "client/python/examples"


@pytest.fixture(scope="module", autouse=True)
def session(address: str) -> Iterator[tensord.DeferredSession]:
    """The session of the namespace."""
    with xp.use(address) as opened:
        yield opened
    xp.use(None)


def run(example: str, *arguments: object) -> str:
    """Runs an example, which must succeed; returns what it prints."""
    command = [sys.executable, str(EXAMPLES / example), *map(str, arguments)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def matrix(rank: int, dtype: str, shape: tuple[int, ...] = (6, 5)) -> np.ndarray:
    """A matrix with singular values that fall by 10 each."""
    rng = np.random.default_rng(rank)
    u = np.linalg.qr(random_array(rng, (shape[0], shape[0]), dtype))[0][:, :rank]
    v = np.linalg.qr(random_array(rng, (shape[1], shape[1]), dtype))[0][:rank]
    return np.asarray((u * 10.0 ** -np.arange(rank)) @ v)


def test_autoray_finds_everything():
    a = xp.asarray(np.arange(6.0).reshape(2, 3))
    assert autoray.infer_backend(a) == "tensord"
    for name in (
        "reshape",
        "transpose",
        "einsum",
        "tensordot",
        "linalg.svd",
        "linalg.qr",
    ):
        assert callable(autoray.get_lib_fn("tensord", name))
    np.testing.assert_array_equal(
        autoray.to_numpy(autoray.do("transpose", a)), a.numpy().T
    )
    assert autoray.get_dtype_name(a) == "float64" and autoray.shape(a) == (2, 3)
    assert autoray.do("astype", a, "complex64").dtype == np.complex64
    assert autoray.do("zeros", (2, 2), like=a).shape == (2, 2)
    with pytest.raises(ImportError, match="no_such_name"):
        autoray.do("no_such_name", a)


def test_autoray_makes_numbers_of_parts_and_knows_the_device():
    a = xp.asarray(np.arange(3, dtype="f4"))
    made = autoray.do("complex", a, a + 1)
    assert made.dtype == np.complex64
    np.testing.assert_array_equal(made.imag.numpy(), [1, 2, 3])
    for device in None, a.device, a.device.partition(":")[0]:
        assert autoray.to_device(a, device) is a
    with pytest.raises(ValueError, match="device is 'tpu:3'"):
        autoray.to_device(a, "tpu:3")


def test_autoray_draws_random_tensors():
    for like in xp.zeros((), "f4"), xp.zeros((), "c16"):
        drawn = [autoray.do("random.array", (2, 3), rng=5, like=like) for _ in range(2)]
        assert isinstance(drawn[0], RemoteTensor) and drawn[0].dtype == like.dtype
        assert xp.array_equal(*drawn)
    numbers = autoray.do("random.default_rng", 5, like=like).normal(size=4)
    expected = np.random.default_rng(5).normal(size=4)
    np.testing.assert_array_equal(numbers.numpy(), expected)
    autoray.do("random.seed", 1, like="tensord")
    assert autoray.do("random.uniform", size=(2,), like="tensord").shape == (2,)


def test_autoray_solves_triangles():
    a, b = np.array([[2.0, 1], [0, 4]]), np.array([3.0, 8])
    result = autoray.do("scipy.linalg.solve_triangular", xp.asarray(a), b)
    np.testing.assert_allclose(result.numpy(), [0.5, 2], rtol=1e-14)


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
def test_exponentials_of_matrices_agree(dtype: str):
    for scale in 0, 0.1, 3, 20:
        x = random_array(np.random.default_rng(1), (4, 4), dtype) * np.asarray(
            scale, dtype
        )
        expected = scipy.linalg.expm(x)
        actual = autoray.do("scipy.linalg.expm", xp.asarray(x)).numpy()
        unit = np.finfo(dtype).eps
        size = max(1, np.linalg.norm(x, 1)) * np.max(np.abs(expected))
        np.testing.assert_allclose(actual, expected, rtol=0, atol=64 * unit * size)


def test_generators_of_both_kinds_are_seeds():
    x = xp.asarray(matrix(12, "f8", (60, 50)))
    for make in np.random.default_rng, xp.random.default_rng:
        first, second = (
            decomp.svd_rand_truncated(x, max_bond=4, seed=make(3))[0].numpy()
            for _ in range(2)
        )
        np.testing.assert_array_equal(first, second)
    rng = xp.random.default_rng(3)
    drawn = [decomp.svd_rand_truncated(x, max_bond=4, seed=rng)[0] for _ in range(2)]
    np.testing.assert_array_equal(drawn[0].numpy(), first)
    assert not np.array_equal(drawn[1].numpy(), first)


@pytest.mark.parametrize("absorb", decomp._ABSORB_MAP)
def test_randomized_decompositions_agree(absorb: Any):
    rng = np.random.default_rng(4)
    x = matrix(12, "c16", (60, 50))
    options = {"max_bond": 6, "oversample": 8, "seed": rng, "absorb": absorb}
    expected = decomp.svd_rand_truncated(x, **options)
    actual = decomp.svd_rand_truncated(xp.asarray(x), **options)
    assert [each is None for each in actual] == [each is None for each in expected]
    # Factors are known but for phases: what they span, and how large they are.
    for ours, theirs in zip(actual, expected):
        if ours is None:
            continue
        ours = ours.numpy()
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(
            np.linalg.norm(ours), np.linalg.norm(theirs), rtol=1e-3
        )
    if actual[0] is not None and actual[2] is not None:
        middle = 1 if actual[1] is None else actual[1].numpy()
        product = (actual[0].numpy() * middle) @ actual[2].numpy()
        assert np.linalg.norm(product - x, 2) <= 1.1e-6


def test_rsvd_is_computed_on_the_server():
    x = matrix(12, "f8", (60, 50))
    before = xp.downloads()
    left, s, right = decomp.array_split(
        xp.asarray(x), method="rsvd", max_bond=5, cutoff=0.0, absorb=None
    )
    assert xp.downloads() == before
    product = (left.numpy() * s.numpy()) @ right.numpy()
    assert np.linalg.norm(product - x, 2) <= 1.1e-5


@pytest.mark.parametrize("mode", ["abs", "rel", "sum2", "rsum2", "sum1", "rsum1"])
@pytest.mark.parametrize("absorb", decomp._ABSORB_MAP)
def test_truncated_decompositions_agree(absorb: Any, mode: str):
    x = matrix(5, "c16")
    for cutoff, bond, renorm in (
        (0.02, -1, 0),
        (-1.0, 2, 0),
        (1e-5, 3, 2),
        (0.02, -1, 1),
    ):
        options = {"cutoff_mode": mode, "absorb": absorb, "renorm": renorm}
        options |= {"cutoff": cutoff, "max_bond": bond}
        info = {"error": None} if absorb is None else None
        left, values, right = decomp.svd_truncated(xp.asarray(x), info=info, **options)
        known = {"error": None} if absorb is None else None
        u, s, v = decomp.svd_truncated(x, info=known, **options)
        for ours, theirs in (left, u), (values, s), (right, v):
            assert (ours is None) == (theirs is None)
            if ours is not None:
                assert isinstance(ours, RemoteTensor) and ours.shape == theirs.shape
                # Vectors have phases of their own, which norms of rows do not see.
                for axis in 0, -1:
                    np.testing.assert_allclose(
                        np.linalg.norm(np.atleast_2d(ours.numpy()), axis=axis),
                        np.linalg.norm(np.atleast_2d(theirs), axis=axis),
                        atol=1e-12,
                    )
        if left is not None and right is not None and values is None:
            np.testing.assert_allclose((left @ right).numpy(), u @ v, atol=1e-12)
        if info is not None:
            np.testing.assert_allclose(info["error"], known["error"], atol=1e-12)


def hermitian(values: list[float], dtype: str) -> np.ndarray:
    """A matrix with these eigenvalues."""
    count = len(values)
    rng = np.random.default_rng(count)
    vectors = np.linalg.qr(random_array(rng, (count, count), dtype))[0]
    return np.asarray((vectors * np.asarray(values)) @ vectors.conj().T, dtype)


@pytest.mark.parametrize("cutoff, bond", [(-1.0, -1), (-1.0, 3), (0.2, -1), (0.02, 2)])
@pytest.mark.parametrize("mode", ["abs", "rel", "rsum2", "rsum1"])
def test_truncated_eigenvalues_agree(mode: str, cutoff: float, bond: int):
    options: dict[str, Any] = {"cutoff": cutoff, "cutoff_mode": mode, "max_bond": bond}
    for x, positive in (
        (hermitian([3, -2.5, 1, -0.5, 0.1], "f8"), 0),
        (hermitian([3, -2.5, 1, -0.5, 0.1], "c16"), 0),
        (hermitian([3, 2.5, 1, 0.5, 0.1], "c16"), 1),
    ):
        t = xp.asarray(x)
        for absorb in (None, "left", "right", *(["both"] if positive else [])):
            options |= {"absorb": absorb, "positive": positive}
            before = xp.downloads()
            ours = decomp.eigh_truncated(t, **options)
            assert xp.downloads() - before == (cutoff > 0)
            number = decomp._ABSORB_MAP[absorb]
            options |= {"absorb": number, "cutoff_mode": decomp._CUTOFF_MODE_MAP[mode]}
            theirs = decomp.eigh_truncated(x, **options)
            options["cutoff_mode"] = mode
            u, s, v = (None if each is None else each.numpy() for each in ours)
            if absorb is None:
                np.testing.assert_allclose(s, theirs[1], atol=1e-12)
                u, theirs = u * s, (theirs[0] * theirs[1], None, theirs[2])
            np.testing.assert_allclose(u @ v, theirs[0] @ theirs[2], atol=1e-12)


def test_batches_have_eigenvalues_in_the_order_of_magnitude():
    x = np.stack([hermitian([1, -2, 3], "c16"), hermitian([-4, 0, 2], "c16")])
    before = xp.downloads()
    u, s, v = decomp.eigh_truncated(xp.asarray(x), absorb=None, shift=True)
    assert xp.downloads() == before
    np.testing.assert_allclose(s.numpy(), [[3, -2, 1], [-4, 2, 0]], atol=1e-12)
    product = (u * s[..., None, :] @ v).numpy()
    np.testing.assert_allclose(product, x, atol=1e-12)


@pytest.mark.parametrize("absorb", [1, -1, 10, 11, -10, -11, "left", "right"])
def test_stabilized_qr_agrees(absorb: Any):
    for x in matrix(5, "f8"), matrix(5, "c16", (5, 8)):
        ours = decomp.qr_stabilized(xp.asarray(x), absorb=absorb)
        theirs = decomp.qr_stabilized(x, absorb=decomp._ABSORB_MAP[absorb])
        for actual, expected in zip(ours, theirs):
            assert (actual is None) == (expected is None)
            if actual is not None:
                np.testing.assert_allclose(actual.numpy(), expected, atol=1e-10)


def test_a_truncated_decomposition_fetches_no_elements():
    a = xp.asarray(matrix(5, "f8"))
    before = xp.downloads()
    left, _, right = decomp.svd_truncated(a, cutoff=1e-3, absorb=1)
    decomp.qr_stabilized(right)
    assert left.shape == (6, 2) and xp.downloads() == before


def test_cotengra_contracts_on_the_server():
    inputs, output, shapes, sizes = cotengra.utils.rand_equation(8, 3, 2, seed=1)
    rng = np.random.default_rng(2)
    arrays = [rng.random(shape) for shape in shapes]
    tensors = [xp.asarray(each) for each in arrays]
    tree = cotengra.array_contract_tree(inputs, output, sizes)
    before = xp.downloads()
    results = [tree.contract(tensors)]
    sliced = tree.slice(target_slices=4)
    results.append(sliced.contract(tensors))
    assert xp.downloads() == before
    expected = tree.contract(arrays)
    for result in results:
        assert isinstance(result, RemoteTensor)
        np.testing.assert_allclose(result.numpy(), expected, rtol=1e-12)


def circuit(kind: Any, convert: Any) -> Any:
    """Some gates on five qubits."""
    made = kind(5, to_backend=convert)
    for i in range(5):
        made.u3(0.3 * i + 0.1, 0.2, 0.5 - 0.1 * i, i)
    for i in range(4):
        made.cz(i, i + 1)
    for i in range(5):
        made.u3(0.2, 0.4 * i, 0.3, i)
    return made


@pytest.mark.parametrize("kind", [qtn.Circuit, qtn.CircuitMPS])
def test_circuits_have_amplitudes_and_samples(kind: Any):
    before = xp.downloads()
    ours, theirs = circuit(kind, xp.asarray), circuit(kind, None)
    assert xp.downloads() == before
    amplitude = complex(ours.amplitude("01101"))
    assert abs(amplitude - theirs.amplitude("01101")) < 1e-12
    assert list(ours.sample(3, seed=7)) == list(theirs.sample(3, seed=7))


@pytest.mark.parametrize(
    "contract",
    [
        lambda lattice: lattice.contract_compressed(
            "greedy-compressed", max_bond=6, cutoff=1e-12
        ),
        lambda lattice: lattice.contract_boundary(max_bond=6, cutoff=1e-12),
        lambda lattice: lattice.contract_hotrg(max_bond=6, cutoff=1e-12),
    ],
)
def test_lattices_are_compressed_while_they_are_contracted(contract: Any):
    lattice = qtn.TN2D_rand(4, 4, 3, seed=1, dist="uniform")
    wanted = contract(lattice.copy())
    lattice.apply_to_arrays(xp.asarray)
    before = xp.downloads()
    assert abs(float(contract(lattice)) - wanted) < 1e-10 * abs(wanted)
    assert xp.downloads() == before + 1


def test_states_are_compressed_and_canonized():
    state = qtn.MPS_rand_state(6, 8, dtype="complex128", seed=3)
    known = state.copy()
    state.apply_to_arrays(xp.asarray)
    for each in state, known:
        each.canonicalize_(2)
        each.compress(max_bond=4)
    overlap = complex(state.H @ state)
    assert abs(overlap - complex(known.H @ known)) < 1e-12
    state.apply_to_arrays(xp.to_numpy)
    assert abs(abs(complex(state.H @ known)) - abs(overlap)) < 1e-12


def test_tebd_agrees_and_stays_on_the_server(address: str):
    text = run("tebd.py", "--address", address, "--sites", 6, "--steps", 4, "--bond", 6)
    assert re.search(r"^server .* downloads 0$", text, re.MULTILINE), text


def test_simple_update_agrees_and_stays_on_the_server(address: str):
    size = ["--rows", 2, "--columns", 3, "--bond", 3, "--sweeps", 3]
    text = run("peps.py", "--address", address, *size)
    assert re.search(r"^server .* downloads 0$", text, re.MULTILINE), text


def test_dmrg_finds_the_ground_state(address: str):
    sites = 8
    energy = qu.groundenergy(qu.ham_heis(sites, sparse=True))
    arguments = [
        "--address",
        address,
        "--sites",
        sites,
        "--energy",
        repr(float(energy)),
    ]
    text = run("dmrg.py", *arguments, "--bonds", 8, 16, 16)
    assert text.splitlines()[-2] == "downloads 3"


def test_states_are_copied_and_tell_their_values():
    state = qtn.MPS_rand_state(6, 4, seed=1)
    there = state.copy(deep=True)
    there.apply_to_arrays(xp.asarray)
    again = there.copy(deep=True)
    assert all(isinstance(each, RemoteTensor) for each in again.arrays)
    np.testing.assert_allclose(
        again.schmidt_values(3).numpy(), state.schmidt_values(3)
    )

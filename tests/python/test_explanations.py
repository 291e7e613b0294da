"""Explanations say what would run, and draw it."""

from __future__ import annotations

import gc
import random
import sys
import xml.etree.ElementTree as ElementTree

import numpy as np
import opt_einsum
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opt_einsum.testing import rand_equation

import tensord
from random_products import assert_product_agrees, products
from tensord import ProgramExplanation, TensorSpec

CHAIN = "ij,jk,kl->il"
SPECS = [TensorSpec(shape, "f8") for shape in [(10, 20), (20, 5), (5, 20)]]


@pytest.fixture
def explanation(session: tensord.Session) -> ProgramExplanation:
    return session.explain.einsum(CHAIN, *SPECS)


def test_explanations_have_what_would_run(session, explanation):
    assert isinstance(explanation, ProgramExplanation)
    assert [each.operation for each in explanation.operations] == ["contract"] * 2
    assert explanation.flops == 2 * (10 * 20 * 5) + 2 * (10 * 5 * 20)
    assert explanation.peak_bytes >= 8 * 10 * 5
    assert explanation.predicted_nanoseconds > 0
    (product,) = explanation.products
    assert product.method == "optimal" and product.slice_count == 1
    assert product.flops == explanation.flops and product.largest == 200
    assert product.path == [(0, 1), (0, 1)]
    assert product.nodes[3].labels == ("i", "k") and product.nodes[3].children == (0, 1)
    assert [node.extents for node in product.nodes[:3]] == [s.shape for s in SPECS]
    report = session.einsum(CHAIN, *(np.ones(s.shape) for s in SPECS)).report
    assert report.flops == explanation.flops
    assert report.operation_count == 2 and report.peak_bytes == explanation.peak_bytes


def test_nothing_is_run_or_sent(session):
    gc.collect()  # What other tests have left.
    session.link.keeper.flush()
    before = session.describe().tensor_count, session.stats().devices
    huge = TensorSpec((10**6, 10**6), "f8")
    session.explain.einsum(CHAIN, huge, huge, huge)
    session.explain.run("D[a,b] += A[a,c]*A[c,b]", A=huge, D=huge)
    session.explain.ncon([huge, huge], [[-1, 1], [1, -2]])
    empty = session.create((3, 3), "f8")
    assert session.explain.run("D[a,b] := 2*A[a,b]", A=empty).operations
    after = session.stats().devices
    assert after[0].executed_operations == before[1][0].executed_operations
    assert session.describe().tensor_count == before[0] + 1


@given(products(hyper=False, stretched=False), st.integers(0, 100))
def test_explained_paths_can_be_given(session, product, seed):
    rng = np.random.default_rng(seed)
    arrays = [rng.random(shape) for shape in product.shapes]
    explained = session.explain.program(product.subscripts, *arrays)
    for path in [each.path for each in explained.products]:
        result = session.einsum(product.subscripts, *arrays, optimize=path)
        assert_product_agrees(result.numpy(), product.subscripts, arrays)
        again = session.explain.program(product.subscripts, *arrays, optimize=path)
        assert again.products[0].method == "given"
        assert again.products[0].path == path


def test_trees_are_drawn_as_text(explanation):
    (product,) = explanation.products
    heading, *tree = str(product).split("\n")
    assert heading.startswith("statement 0: optimal, 4000 flops")
    assert [line.partition("[")[0] for line in tree] == [
        "",
        "├── operand 2",
        "└── ",
        "    ├── operand 0",
        "    └── operand 1",
    ]
    for words in "2 operations", "contract", "4000 flops", "operand 2":
        assert words in str(explanation)


def test_trees_are_drawn_as_svg(explanation, tmp_path):
    explanation.save(tmp_path / "tree.svg")
    root = ElementTree.parse(tmp_path / "tree.svg").getroot()
    texts = [each.text for each in root.iter() if each.tag.endswith("text")]
    for label in "[i,k]", "[i,l]", "operand 0[i,j]", "operand 2[k,l]":
        assert label in texts
    assert sum(each.tag.endswith("line") for each in root.iter()) == 4
    width = float(root.get("width"))
    assert all(0 <= float(e.get("x", 0)) <= width for e in root.iter())
    assert explanation._repr_svg_() == (tmp_path / "tree.svg").read_text("utf-8")


def test_trees_are_drawn_as_png(session, tmp_path):
    many = session.explain.run(
        "D[a,b] := A[a,c]*B[c,d]*C[d,b]; E[] := A[a,b]*B[b,c]*C[c,a]",
        {name: TensorSpec((9, 9), "f8") for name in "ABC"},
    )
    assert len(many.products) == 2
    many.save(tmp_path / "trees.png")
    assert (tmp_path / "trees.png").read_bytes().startswith(b"\x89PNG")
    many.products[0].save(tmp_path / "tree.txt")
    assert "A[a,c]" in (tmp_path / "tree.txt").read_text("utf-8")


def test_png_takes_matplotlib(explanation, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.setitem(sys.modules, "matplotlib.backends.backend_agg", None)
    with pytest.raises(ImportError, match="pip install matplotlib.*svg"):
        explanation.save(tmp_path / "tree.png")
    with pytest.raises(tensord.InvalidArgument, match="ends with .svg") as failure:
        explanation.save(tmp_path / "tree.gif")
    assert failure.value.reason == "FORMAT_UNKNOWN"


def test_deep_and_wide_trees_are_drawn(session, tmp_path):
    count = 200
    subscripts = ",".join(chr(0x4E00 + i) + chr(0x4E01 + i) for i in range(count))
    specs = [TensorSpec((2, 2), "f8")] * count
    explained = session.explain.einsum(
        f"{subscripts}->{chr(0x4E00)}", *specs, optimize=False
    )
    assert len(explained.products[0].path) == count - 1
    assert str(explained.products[0]).count("\n") == 2 * count - 1
    ElementTree.fromstring(explained.svg())


def test_one_operation_is_explained_as_one(session):
    explained = session.explain.einsum("ij,jk->ik", *SPECS[:2])
    assert isinstance(explained, tensord.Explanation) and explained.candidates
    explained = session.explain.program("ij,jk->ik", *SPECS[:2])
    assert isinstance(explained, ProgramExplanation)


@pytest.mark.parametrize("suffix", [".svg", ".txt", ".png"])
def test_one_operation_is_drawn_as_many_are(session, tmp_path, suffix):
    tensor = session.upload(np.ones((20, 5)))
    many = session.explain.einsum(CHAIN, *SPECS)
    for explained in (
        session.explain.einsum("ij,jk->ik", SPECS[0], tensor),
        session.explain.einsum("ij->ji", tensor),
        session.explain.reduce(tensor, (1, -2), ()),
        session.explain.program("ij,jk->ik", *SPECS[:2]),
        session.explain.einsum("ij->", tensor, dtype="c8"),
        many,
    ):
        assert str(explained) == explained.text.rstrip()
        assert ("flops" in explained.text) and ("cpu." in explained.text)
        explained.save(tmp_path / f"tree{suffix}")
        assert (tmp_path / f"tree{suffix}").stat().st_size > 60
        texts = list(ElementTree.fromstring(explained.svg()).itertext())
        assert any("[" in each for each in texts)
    public = {name for name in dir(many) if not name.startswith("_")}
    one = session.explain.einsum("ij,jk->ik", SPECS[0], tensor)
    assert {"text", "products", "svg", "save", "flops"} <= set(dir(one)) & public
    (product,) = one.products
    assert product.path == [(0, 1)] and product.flops == one.flops == 2 * 10 * 20 * 5
    assert [node.extents for node in product.nodes] == [(10, 20), (20, 5), (10, 5)]
    assert [node.labels for node in product.nodes] == [
        tuple("ij"),
        tuple("jk"),
        tuple("ik"),
    ]
    padded = session.explain.permute(tensor, "ij", "ji", pad_width=((1, 0), (2, 3)))
    assert padded.products[0].nodes[-1].extents == (6, 25)
    assert "a[i,j] 10x20" in one.text and one._repr_svg_() == one.svg()


def test_addends_are_not_explained_with_programs(session):
    with pytest.raises(tensord.Unimplemented, match="neither explained nor prepared"):
        session.explain.einsum(CHAIN, *SPECS, alpha=2)


def ring(count: int, extent: int) -> tuple[str, list[TensorSpec]]:
    """A ring whose neighbours but one are joined, too: no order is best by far."""
    joins = [(i, (i + step) % count) for i in range(count) for step in (1, 2)]
    labels = [
        "".join(chr(0x4E00 + j) for j, join in enumerate(joins) if i in join)
        for i in range(count)
    ]
    return ",".join(labels) + "->", [TensorSpec((extent,) * 4, "f8")] * count


def test_searches_go_on_from_what_was_found(session):
    subscripts, specs = ring(14, 4)
    (poor,) = session.explain.einsum(subscripts, *specs, optimize=False).products
    (found,) = session.explain.einsum(
        subscripts, *specs, optimize=0.02, start=poor
    ).products
    assert found.flops <= poor.flops
    (same,) = session.explain.einsum(
        subscripts, *specs, optimize=0.02, start=poor.path
    ).products
    assert same.flops <= poor.flops
    limit = 8 * int(found.largest) // 16
    (sliced,) = session.explain.einsum(
        subscripts, *specs, optimize=0.02, memory_limit=limit
    ).products
    assert sliced.sliced
    (again,) = session.explain.einsum(
        subscripts, *specs, optimize=0.02, memory_limit=limit, start=sliced
    ).products
    assert again.flops <= sliced.flops


def test_searches_refuse_starts_that_are_none(session):
    subscripts, specs = ring(6, 2)
    with pytest.raises(TypeError, match="start is of type int, wanted a product"):
        session.explain.einsum(subscripts, *specs, start=5)
    path = [(0, 1)] * 5
    with pytest.raises(tensord.InvalidArgument) as caught:
        session.explain.einsum(subscripts, *specs, optimize=path, start=path)
    assert caught.value.reason == "PATH_MALFORMED"
    with pytest.raises(tensord.InvalidArgument) as caught:
        session.explain.einsum(subscripts, *specs, start=[(0, 9)])
    assert caught.value.reason == "PATH_MALFORMED"


@pytest.mark.parametrize("block", range(4))
def test_small_products_are_in_the_optimal_order(session, block):
    """No order is above opt_einsum's optimal one, by its count or by ours."""
    for seed in range(40 * block, 40 * (block + 1)):
        rng = random.Random(seed)
        subscripts, shapes = rand_equation(
            rng.randint(3, 7),
            rng.choice([2, 3, 4]),
            n_out=rng.randint(0, 3),
            d_max=rng.choice([3, 6, 9]),
            seed=seed,
            global_dim=seed % 3 == 0,
        )
        best, _ = _opt_einsums(subscripts, shapes, "optimal")
        specs = [TensorSpec(shape, "f8") for shape in shapes]
        ours = session.explain.einsum(subscripts, *specs)
        theirs = session.explain.einsum(subscripts, *specs, optimize=best)
        assert ours.flops <= theirs.flops, subscripts
        path = ours.products[0].path
        _, cost = _opt_einsums(subscripts, shapes, path)
        assert cost <= _opt_einsums(subscripts, shapes, best)[1], subscripts


def _opt_einsums(subscripts, shapes, optimize):
    """What opt_einsum makes of an order, and what that takes by its count."""
    path, info = opt_einsum.contract_path(
        subscripts, *shapes, shapes=True, optimize=optimize
    )
    return path, int(info.opt_cost)

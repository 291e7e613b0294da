"""The client finds the names in statements that the server does."""

from __future__ import annotations

import random
import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tensord
from tensord import RemoteTensor, TensorSpec
from tensord._names import words
from tensord._notation import read_statements

SPEC = TensorSpec((2,), "f8")
WRITTEN = ["D'", "D′", "D″", "D‴⁗'", "x̂", "x₂", "χ²", "_1", "å'", "量", "ⁱ"]
RANGES = [
    (0x00, 0x17F),
    (0x2FE, 0x390),
    (0x1AAE, 0x1B02),
    (0x1DBE, 0x1E02),
    (0x1FFE, 0x2102),
    (0x2BF0, 0x2C02),
]


def names_made(session: tensord.Session, text: str) -> tuple[str, ...] | None:
    """The results of a program as the server has them; None where it is refused."""
    try:
        with session.program(text, {"B": SPEC}) as program:
            return tuple(program.outputs)
    except tensord.InvalidArgument:
        return None


def code_points() -> list[int]:
    """Those where alphabets and signs meet, and some of everywhere."""
    found = {c for first, last in RANGES for c in range(first, last + 1)}
    found |= {c for c in range(0x0370, 0x3100, 7)}
    for edge in (
        0x3000,
        0x3008,
        0x3030,
        0x30FB,
        0xD7FF,
        0xF900,
        0xFE00,
        0xFE20,
        0xFE2F,
    ):
        found |= set(range(edge - 2, edge + 3))
    for edge in (
        0xFE6F,
        0xFEFF,
        0xFF0F,
        0xFF1A,
        0xFF20,
        0xFF3B,
        0xFF5B,
        0xFF65,
        0xFFE0,
    ):
        found |= set(range(edge - 2, edge + 3))
    for edge in (0x10000, 0x1F000, 0x1FAFF, 0xE0000, 0x10FFFE):
        found |= set(range(edge - 2, edge + 2))
    found |= set(random.Random(1).sample(range(0x110000), 300))
    return sorted(c for c in found if not 0xD800 <= c < 0xE000)


def is_letter(character: str) -> bool:
    return unicodedata.category(character) in {"Lu", "Ll", "Lt", "Lm", "Lo", "Nl"}


def is_part(character: str) -> bool:
    """Whether a name may have it behind a letter."""
    category = unicodedata.category(character)
    return (
        is_letter(character)
        or category in {"Mn", "Mc", "Me", "Nd"}
        or (
            category == "No"
            and unicodedata.decomposition(character).startswith(("<super>", "<sub>"))
        )
        or character in "′″‴⁗"
    )


def test_names_have_what_unicode_calls_letters_and_marks(session):
    for code_point in code_points():
        character = chr(code_point)
        # What was assigned long ago is so in every version.
        if code_point < 0x80 or unicodedata.ucd_3_2_0.category(character) == "Cn":
            continue
        for name, wanted in [
            (character, is_letter(character)),
            (f"D{character}", is_part(character)),
        ]:
            made = names_made(session, f"{name}[i] := 2*B[i]")
            assert (made == (name,)) == wanted, hex(code_point)


def test_what_the_server_takes_is_read_as_it_reads_it(session):
    taken = 0
    for code_point in code_points():
        character = chr(code_point)
        for name in character, f"D{character}", f"D'{character}":
            text = f"{name}[i] := 2*B[i]"
            made = names_made(session, text)
            if made is not None:
                assert read_statements(text).made == made, hex(code_point)
                taken += 1
    assert taken > 1000


@given(st.text("DB'′″x̂²3_ \t\n\r#;:[]=+-*2.5ejim,()\\≔", max_size=30))
def test_both_read_any_statements_alike(session, text):
    text = f"B′[i] := B[i]; {text}"
    made = names_made(session, text)
    if made is not None:
        assert read_statements(text, "B").made == made


@pytest.mark.parametrize(
    ("text", "made", "written", "tensors"),
    [
        ("D[i] := 2*D[i]", ("D",), (), {"D"}),
        ("im[a] := A[a]; D[a] := 2im*A[a]", ("im", "D"), (), {"im", "D", "A"}),
        ("T[i] := A[i,']']*B['#', '[']; s := T[i]", ("s",), (), {"T", "A", "B"}),
        ("D := x # E := y\rF′ += D", (), ("F′",), set()),
        ("D [:] = A[-1]\nE -= x*D[1]; D += 1", (), ("D", "E"), {"D", "A"}),
        ("s = A[i;i]'\nD[i] = s*B[i]'", (), ("D",), {"D", "A", "B"}),
        ("s = A[(i,);i]; s = 2 \\ s; t ≔ x", ("t",), (), {"A"}),
        ("x = A[i,i]; s += 1; t = tensorscalar(2)", ("t",), ("x", "s"), {"A"}),
        ("Q[i,k], R[k,j] := qr(A[i,j]); D[i] := Q[i,j]*x", ("R", "D"), (), set("QRAD")),
        ("Q[i,k],\nR[k,j] = qr(Q[i,j])\nB[i] += x", (), ("Q", "R", "B"), set("QRB")),
        ("U[i], S[k] := svd(U[i]; cutoff=x, absorb=left); left := 1", ("U", "S", "left"), (), {"U", "S"}),
        ("left := x; U, V := svd(max(A[i], B[i]) - left; rank=2)", ("U", "V"), (), {"A", "B"}),
        ("conj' = 1; scalar := 2; t := scalar(3)", ("conj'", "scalar", "t"), (), set()),
    ],
)
def test_names_are_made_written_and_have_brackets(text, made, written, tensors):
    statements = read_statements(text, {"x", "A", "B"})
    assert statements.made == made and statements.written == written
    assert statements.tensors == tensors


def test_words_are_those_of_statements():
    assert [
        word for word, is_label in words("D′[i,2] := 2.5e-3im*x̂ # no") if is_label
    ] == [
        "D′",
        "i",
        "x̂",
    ]


@pytest.mark.parametrize("name", WRITTEN)
def test_options_reach_results_of_any_name(session, name):
    x = np.ones(3)
    text = f"{name}[i] := 2*A[i]"
    assert isinstance(session.run(text, A=x, inline=True), np.ndarray)
    assert session.run(text, A=x, dtype="f4").dtype == np.float32
    with session.run(text, A=x, name="doubled") as named:
        assert named.name == "doubled"
    target = session.upload(x)
    session.run(f"{name}[i] += A[i]", {name: target, "A": x})
    assert target.report is not None and isinstance(target, RemoteTensor)
    np.testing.assert_array_equal(target.numpy(), 2)

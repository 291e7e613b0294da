"""What notation says, for all that the client can tell."""

from __future__ import annotations

import numpy as np
import pytest

import tensord
from tensord._notation import path_options, point_out, read_statements
from tensord._subscripts import mode_labels, read_einsum, single_operation


@pytest.mark.parametrize(
    ("subscripts", "count", "inputs", "output"),
    [
        ("ij,jk->ik", 2, ("ij", "jk"), "ik"),
        ("ij,jk", 2, ("ij", "jk"), "ik"),
        (" ij , jk -> k i ", 2, ("ij", "jk"), "ki"),
        ("ba", 1, ("ba",), "ab"),
        ("bA", 1, ("bA",), "Ab"),
        ("ij->", 1, ("ij",), ""),
        (",->", 2, ("", ""), ""),
        ("", 1, ("",), ""),
    ],
)
def test_subscripts_read_as_numpy_does(subscripts, count, inputs, output):
    shapes = [(2,) * len(labels) for labels in inputs]
    assert len(shapes) == count
    assert single_operation(subscripts, shapes) == (inputs, output)


@pytest.mark.parametrize(
    ("subscripts", "shapes"),
    [
        ("i1->i", [(2, 2)]),
        ("ij->i->j", [(2, 2)]),
        ("ij,jk->ik", [(2, 2)]),
        ("ij->ik", [(2, 2)]),
        ("ij->ii", [(2, 2)]),
        ("...i->i", [(2, 2)]),
        ("ij,jk,kl->il", [(2, 2)] * 3),
        ("ii->i", [(2, 2)]),
        ("ij,jj->i", [(2, 2)] * 2),
        ("ij,jk->ik", [(2, 1), (3, 4)]),
        ("ij,jk->ik", [(2, 3), (3, 4, 5)]),
    ],
)
def test_what_takes_several_operations_or_none_is_left_to_the_server(
    subscripts, shapes
):
    assert single_operation(subscripts, shapes) is None


def test_interleaved_labels_are_letters_in_the_same_order():
    assert read_einsum("ij", (1,)) == ("ij", (1,))
    assert read_einsum(1, ([0, 27, ...], 2, (27, 51))) == ("Ab...,bz", (1, 2))
    assert read_einsum(1, ([0], [0])) == ("A->A", (1,))
    further = read_einsum(1, ([51, 52, 53], [53])).subscripts
    assert list(further[:3]) == sorted(further[:3]) and further[:3].isalpha()
    for labels in ["ij"], [1.5], 5:
        with pytest.raises(TypeError, match="labels of operand 0 are .*list of ints"):
            read_einsum(1, (labels,))
    with pytest.raises(tensord.InvalidArgument, match="the result have -1") as failure:
        read_einsum(1, ([0], [-1]))
    assert failure.value.reason == "MODE_OUT_OF_RANGE"


@pytest.mark.parametrize(
    ("text", "made", "written"),
    [
        ("D[a] := A[a]", ["D"], []),
        ("D[a] := A[a]; E[a] := D[a] + A[a]", ["E"], []),
        ("D[a] := A[a]\nE[a] += D[a]  # F[a] := 1", [], ["E"]),
        ("D[a] = A[a]; D'[a,b] -= A[a]*A[b]; s := 2*D[a]*A[a]", ["s"], ["D", "D'"]),
        ("D[a] := A[a]; D[a] += A[a]; D[a] := 2*A[a]", ["D"], []),
        ("å[D] := A[D]; D[:] := A[-1,1]*B[1,-2]", ["å", "D"], []),
    ],
)
def test_made_and_written_names_are_known(text, made, written):
    read = read_statements(text)
    assert read.made == tuple(made) and read.written == tuple(written)
    assert read.tensors >= {*made, *written} - {"s"}


@pytest.mark.parametrize(
    ("optimize", "count", "steps"),
    [
        (False, 1, []),
        (False, 2, [(0, 1)]),
        (False, 4, [(0, 1), (0, 2), (0, 1)]),
        (["einsum_path", (0, 2), (0, 1)], 3, [(0, 2), (0, 1)]),
        ([(0, 2), (0, 1)], 3, [(0, 2), (0, 1)]),
        ([[np.int64(0), 1, 2]], 3, [(0, 1, 2)]),
        (True, 3, []),
    ],
)
def test_paths_are_those_of_numpy(optimize, count, steps):
    message = path_options(optimize, None, 0, count)
    assert [tuple(step.positions) for step in message.steps] == steps


def test_searches_are_told_how_long_and_how_much():
    assert path_options(0.25, None, 7, 3).time_budget.nanos == 250_000_000
    assert path_options("random_greedy", 5, 7, 3).memory_limit_bytes == 5
    limited = path_options(("greedy", 1000), None, 0, 3, element_bytes=4)
    assert limited.memory_limit_bytes == 4000
    assert not path_options("auto", None, 0, 3).HasField("memory_limit_bytes")


@pytest.mark.parametrize(
    ("arguments", "reason", "words"),
    [
        (("fastest", None, 0, 3), "PATH_METHOD_UNKNOWN", "'random-greedy'"),
        ((0, None, 0, 3), "OPTION_OUT_OF_RANGE", "more than 0"),
        (("auto", -1, 0, 3), "OPTION_OUT_OF_RANGE", "memory_limit is -1"),
        ((False, None, 0), "PATH_MALFORMED", "parentheses order statements"),
    ],
)
def test_wrong_path_options_are_invalid(arguments, reason, words):
    with pytest.raises(tensord.InvalidArgument, match=words) as failure:
        path_options(*arguments)
    assert failure.value.reason == reason


def test_messages_point_at_their_place():
    error = tensord.InvalidArgument("line 2, column 5: got 'x'", reason="R")
    point_out(error, "first\nsecond line")
    assert str(error) == "line 2, column 5: got 'x'\n    second line\n        ^"
    assert error.reason == "R"
    error = tensord.InvalidArgument("column 150: got 'x'")
    point_out(error, "a" * 149 + "x" + "b" * 100)
    shown, caret = str(error).split("\n")[1:]
    assert shown[caret.index("^")] == "x" and len(shown) < 120
    for message in "no place", "line 7, column 1: beyond":
        error = tensord.InvalidArgument(message)
        point_out(error, "text")
        assert str(error) == message


def test_modes_are_letters_or_numbers():
    assert mode_labels("ik") == [105, 107]
    assert mode_labels((-1, 7, np.int64(3))) == [-1, 7, 3]
    with pytest.raises(tensord.InvalidArgument, match="int32"):
        mode_labels([2**31])

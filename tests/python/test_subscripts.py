"""What einsum takes, and what it says about the rest."""

from __future__ import annotations

import numpy as np
import pytest

import tensord
from tensord.subscripts import mode_labels, parse_subscripts


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
    assert parse_subscripts(subscripts, count) == (inputs, output)


@pytest.mark.parametrize(
    ("subscripts", "count", "reason", "words"),
    [
        ("i1->i", 1, "SUBSCRIPTS_MALFORMED", "'1'"),
        ("ij->i->j", 1, "SUBSCRIPTS_MALFORMED", "'-'"),
        ("ij,jk->ik", 1, "OPERAND_COUNT_MISMATCH", "for 2 operands, got 1"),
        ("ij->ik", 1, "MODE_NOT_IN_INPUT", "'k'"),
        ("ij->ii", 1, "MODE_REPEATED", "'i' occurs 2 times in the result"),
    ],
)
def test_malformed_subscripts_are_invalid(subscripts, count, reason, words):
    with pytest.raises(tensord.InvalidArgument, match=words) as failure:
        parse_subscripts(subscripts, count)
    assert failure.value.reason == reason


@pytest.mark.parametrize(
    ("subscripts", "count", "words"),
    [
        ("...i->i", 1, "ellipsis"),
        ("ij,jk,kl->il", 3, "3 operands"),
        ("ii->i", 1, "'i' occurs 2 times in operand 'ii'"),
        ("ij,jj->i", 2, "'j' occurs 2 times in operand 'jj'"),
    ],
)
def test_what_needs_several_operations_is_refused(subscripts, count, words):
    with pytest.raises(tensord.Unimplemented, match=words) as failure:
        parse_subscripts(subscripts, count)
    assert failure.value.reason == "SUBSCRIPTS_UNSUPPORTED"
    assert "einsum takes what one operation can do" in str(failure.value)


def test_modes_are_letters_or_numbers():
    assert mode_labels("ik") == [105, 107]
    assert mode_labels((-1, 7, np.int64(3))) == [-1, 7, 3]
    with pytest.raises(tensord.InvalidArgument, match="int32"):
        mode_labels([2**31])

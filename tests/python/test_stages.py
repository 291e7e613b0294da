"""Indices, shapes and transforms become what the server takes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tensord
from tensord import _stages as stages, transforms
from tensord._indexing import coordinate_key, index_items, takes_everything
from tensord._stages import Group, matching_groups
from tensord.transforms import (
    Embed,
    Freeze,
    Index,
    Insert,
    Merge,
    Modulo,
    Offset,
    Pad,
    PassThrough,
    Slice,
    Unmerge,
    Xor,
    place,
)
from tensord.v1 import tensor_pb2, view_pb2

SHAPES = st.lists(st.integers(0, 6), max_size=5).map(tuple)


def kinds_of(key: object) -> list[str]:
    return [item.WhichOneof("item") for item in index_items(key)]


def test_every_item_of_basic_indexing_is_sent_as_it_is():
    key = (-1, slice(None), None, Ellipsis, slice(1, None, -2), np.uint8(3))
    items = index_items(key)
    assert kinds_of(key) == ["index", "all", "new_mode", "ellipsis", "slice", "index"]
    assert items[0].index == -1 and items[5].index == 3
    assert items[4].slice.start == 1 and items[4].slice.step == -2
    assert not items[4].slice.HasField("stop")
    assert kinds_of(()) == []
    assert index_items(np.array(4))[0].index == 4


def test_bounds_of_slices_may_be_as_far_away_as_they_like():
    (item,) = index_items(slice(-(10**30), 10**30, 2))
    assert item.slice.start == -(2**63) + 1 and item.slice.stop == 2**63 - 1
    with pytest.raises(tensord.InvalidIndex, match="position 1 is out of range"):
        index_items((0, 2**63))


@pytest.mark.parametrize(
    "item",
    [True, np.False_, [0, 1], (0, 1), np.array([0, 1]), np.array(True), range(3)],
    ids=str,
)
def test_advanced_indexing_is_called_by_its_name(item: object):
    with pytest.raises(
        tensord.InvalidIndex, match="item 1 .*advanced indexing"
    ) as failure:
        index_items((0, item))
    assert failure.value.reason == "INDEX_UNSUPPORTED"
    assert isinstance(failure.value, (IndexError, tensord.InvalidArgument))


@pytest.mark.parametrize("item", [1.0, "a", np.float32(1), np.array(1.0), {}, object()])
def test_what_is_no_index_is_an_index_error(item: object):
    with pytest.raises(IndexError, match="item 0 .*wanted ints, slices, None"):
        index_items(item)


def test_bounds_of_slices_are_ints():
    for bound in 1.0, "a", np.array([1, 2]):
        with pytest.raises(TypeError, match="item 0 .*wanted ints or None"):
            index_items(slice(bound, None))


def test_coordinates_of_cute_are_indices_and_none():
    assert coordinate_key((None, 1), 2) == (slice(None), 1)
    assert coordinate_key((), 0) == ()
    assert coordinate_key(((None, 1), (0, (None,))), 4) == (
        slice(None),
        1,
        0,
        slice(None),
    )
    for coordinate, words in [
        ((None, (1, None)), "has 3 items, wanted 2"),
        ((slice(None), 1), "item 0 .*wanted an int or None"),
        ((..., 1), "item 0 .*wanted an int or None"),
        ((1,), "has 1 items, wanted 2"),
    ]:
        with pytest.raises(IndexError, match=words):
            coordinate_key(coordinate, 2)


def test_keys_that_take_everything_are_known():
    for key in ..., (), slice(None), (slice(None), slice(None)), (..., slice(None)):
        assert takes_everything(key, 2)
    for key in 0, None, slice(1, None), (..., ...), (slice(None),) * 3, [0], "a":
        assert not takes_everything(key, 2)


@pytest.mark.parametrize(
    ("shape", "wanted", "groups"),
    [
        ((4, 6, 5), (2, 2, 30), [Group((4,), (2, 2)), Group((6, 5), (30,))]),
        ((2, 3), (3, 2), [Group((2, 3), (3, 2))]),
        ((4, 6), (2, 2, 6), [Group((4,), (2, 2)), Group((6,), (6,))]),
        ((1, 4), (4, 1), [Group((1,), ()), Group((4,), (4,)), Group((), (1,))]),
        ((2, 1, 3), (2, 3, 1), [Group((2,), (2,)), Group((1,), ()), Group((3,), (3,)),
                                Group((), (1,))]),
        ((2, 1, 3), (6,), [Group((2, 1, 3), (6,))]),
        ((), (1, 1), [Group((), (1,)), Group((), (1,))]),
        ((0, 3), (5, 0), [Group((0, 3), (5, 0))]),
        ((0, 3), (0, 3), [Group((0,), (0,)), Group((3,), (3,))]),
    ],
)  # fmt: skip
def test_shapes_fall_into_groups(shape, wanted, groups):
    assert matching_groups(shape, wanted) == groups


@given(SHAPES, st.data())
def test_groups_cover_both_shapes_and_cannot_be_divided(shape, data):
    divided = {4: (2, 2), 6: (2, 3)}
    factors = [factor for n in shape for factor in divided.get(n, (n,))]
    wanted = tuple(data.draw(st.permutations(factors)))
    groups = matching_groups(shape, wanted)
    assert sum((group.lower for group in groups), ()) == shape
    assert sum((group.upper for group in groups), ()) == wanted
    for lower, upper in groups:
        assert math.prod(lower) == math.prod(upper)
        if math.prod(lower) > 0:
            parts = {math.prod(lower[:i]) for i in range(1, len(lower))}
            others = {math.prod(upper[:i]) for i in range(1, len(upper))}
            assert not parts & others - {1}


def test_reshaping_takes_two_stages_at_most():
    assert stages.reshape_stages((2, 3), (2, 3)) == ()
    assert stages.reshape_stages((4, 6), (24,)) == ((place(Merge(), (0, 1), 0),),)
    assert stages.reshape_stages((4, 6), (2, 2, 6)) == (
        (place(Unmerge((2, 2)), 0, (0, 1)), place(PassThrough(), 1, 2)),
    )
    assert stages.reshape_stages((1, 4, 6), (8, 3, 1)) == (
        (place(Freeze(0), 0, ()), place(Merge(), (1, 2), 0)),
        (place(Unmerge((8, 3)), 0, (0, 1)), place(Insert(1), (), 2)),
    )


@given(SHAPES, st.lists(st.integers(-1, 12), max_size=4).map(tuple))
def test_unknown_extents_are_inferred_as_numpy_does(shape, wanted):
    try:
        expected = np.empty(shape).reshape(wanted).shape
    except ValueError:
        with pytest.raises(ValueError):
            stages.inferred_shape(shape, wanted)
    else:
        assert stages.inferred_shape(shape, wanted) == expected


@given(
    st.lists(st.sampled_from([0, 1, 1, 2, 3]), max_size=4).map(tuple),
    st.lists(st.sampled_from([0, 1, 2, 3]), max_size=4).map(tuple),
)
def test_values_are_assigned_to_what_numpy_assigns_them_to(shape, target):
    try:
        np.empty(target)[...] = np.empty(shape)
    except ValueError:
        with pytest.raises(ValueError, match="does not broadcast"):
            stages.assigned_axes(shape, target)
        return
    kept = stages.assigned_axes(shape, target)
    for axis, extent in enumerate(shape):
        opposite = axis - len(shape) + len(target)
        if axis in kept:
            assert extent == target[opposite]
        else:
            assert extent == 1


@pytest.mark.parametrize(
    "pad_width",
    [2, (1, 3), ((1, 3),), ((1, 0), (0, 2)), [[1], [2]], np.array([[1, 2], [3, 4]])],
    ids=str,
)
def test_padding_is_said_as_to_numpy(pad_width: object):
    (b0, a0), (b1, a1) = stages.pad_widths(2, pad_width)
    padded = np.pad(np.ones((2, 2)), pad_width)
    np.testing.assert_array_equal(padded, np.pad(np.ones((2, 2)), ((b0, a0), (b1, a1))))


def test_padding_of_some_modes_is_a_mapping():
    assert stages.pad_widths(3, {-1: (1, 2), 0: 3}) == [(3, 3), (0, 0), (1, 2)]


@pytest.mark.parametrize(
    ("pad_width", "error"),
    [(-1, ValueError), ((1, 2, 3), ValueError),
     (1.5, TypeError), ("a", TypeError), (None, TypeError), (True, TypeError),
     ({5: 1}, IndexError)],
)  # fmt: skip
def test_padding_is_ints_not_below_zero(pad_width, error):
    with pytest.raises(error, match="pad_width is|axis of pad_width is 5"):
        stages.pad_widths(2, pad_width)


def test_stages_travel():
    message = transforms.stage_message(
        [
            place(Unmerge([2, np.int64(3)], order="F"), lower=1, upper=(0, 2)),
            place(PassThrough(), 0, 1),
            place(Slice(4, -1, -1), np.int8(2), 3),
        ]
    )
    unmerge, passed, sliced = message.transform.transforms
    assert unmerge == view_pb2.Transform(
        lower=[1],
        upper=[0, 2],
        unmerge=view_pb2.Transform.Unmerge(
            extents=[2, 3], order=tensor_pb2.ORDER_FIRST_MODE_FASTEST
        ),
    )
    assert passed.WhichOneof("kind") == "pass_through"
    assert sliced.slice.step == -1 and sliced.lower == [2]
    index = transforms.stage_message(Index(np.s_[1, None]))
    assert [item.WhichOneof("item") for item in index.index.items] == [
        "index",
        "new_mode",
    ]


def test_every_transform_of_the_contract_is_here():
    kinds = view_pb2.Transform.DESCRIPTOR.oneofs_by_name["kind"].fields
    arguments = {"int": 1, "tuple[int, ...]": (1,), "str": "C"}
    for field in kinds:
        cls = getattr(transforms, field.message_type.name)
        values = {name: arguments[t] for name, t in cls.__annotations__.items()}
        message = transforms.stage_message([place(cls(**values), 0, 0)])
        (sent,) = message.transform.transforms
        assert sent.WhichOneof("kind") == field.name
        known = {each.name for each in field.message_type.fields}
        assert values.keys() == known, field.name


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: place("merge", 0, 0), "transform is of type str"),
        (lambda: place(Merge(), 0.5, 0), "lower is 0.5"),
        (lambda: place(Merge(), 0, None), "upper is None"),
        (lambda: Freeze("a"), "Freeze.index is 'a', wanted an int"),
        (lambda: Embed((2, 1.5), (1, 1)), "Embed.extents is"),
        (lambda: Merge(order=0), "Merge.order is of type int"),
        (lambda: transforms.stage_message([Merge()]), "is of type Merge, wanted place"),
        (lambda: transforms.stage_message(Merge()), "stage is of type Merge"),
    ],
)
def test_transforms_of_other_types_are_type_errors(call, words: str):
    with pytest.raises(TypeError, match=words):
        call()


def test_transforms_are_values():
    assert place(Modulo(2, 4), 0, 0) == place(Modulo(2, 4), (0,), [0])
    assert repr(Offset(1, 2)) == "Offset(offset=1, extent=2)"
    assert len({Xor(), Xor(), Pad(0, 1)}) == 2
    with pytest.raises(tensord.InvalidArgument, match="'C' or 'F'"):
        Merge(order="K")
    with pytest.raises(tensord.InvalidArgument, match="Freeze.*out of range"):
        transforms.stage_message([place(Freeze(2**63), 0, ())])

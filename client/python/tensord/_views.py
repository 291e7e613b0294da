"""The ways to see a tensor differently, as NumPy, CuTe and CK Tile write them."""

from __future__ import annotations

import abc
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tensord import _stages as stages
from tensord._arguments import extents_of, integers_of
from tensord._indexing import coordinate_key
from tensord._stages import IntOrInts
from tensord._tensor_handle import Factor
from tensord.transforms import Index, Stage

if TYPE_CHECKING:
    from typing_extensions import Self


class Views(abc.ABC):
    """Makes views of a tensor: names on the server, for which nothing moves.

    A view is a tensor like any other, an operand or the `out` of every operation. What
    is written through it, the viewed tensor has, and the other way round; it keeps the
    memory while it exists. It leaves the server with its last reference, unless it was
    given a name. Each takes one call, so 100 rows one by one take 100.

    Where NumPy has a method or function of the same name, it does the same, but that
    all make views, also where NumPy copies. Views without strides, or with negative
    ones, are gathered into scratch memory by every operation that reads them
    (`is_gathered`); `copy` makes a tensor of them once and for all.

    All of them raise:
        InvalidArgument: The arguments do not fit the shape.
        InvalidIndex: An index or a mode is out of range; also an `InvalidArgument`.
        NotFound: The tensor was deleted.
        Unimplemented: The view of views is beyond what kernels take
            (`VIEW_TOO_COMPLEX`); copy an earlier one and go on from there.
    """

    shape: tuple[int, ...]

    @abc.abstractmethod
    def view(
        self,
        stages: Sequence[Stage] = (),
        padding: Factor | None = None,
        name: str | None = None,
        timeout: float | None = None,
    ) -> Self:
        """Makes a view by transforms, see `tensord.transforms`.

        >>> t.view([[place(PassThrough(), 0, 1), place(Unmerge((2, 3)), 1, (0, 2))]])

        Args:
            stages: One after the other, each sees the modes that the one before it
                made. A stage is a list of `place(transform, lower, upper)`, or an
                `Index`.
            padding: Value of all padding, rounded to the dtype; None for that of this
                view, or else 0.
            name: Name of the view; None lets the server choose.
            timeout: Deadline in seconds; None for the default.

        Raises:
            AlreadyExists: The name is taken.
            InvalidArgument: A transform does not fit the modes that it is given, a mode
                has no transform or two, or this view has padding with another value
                (`PADDING_DIFFERS`).
        """

    def __getitem__(self, key: Any) -> Self:
        """Makes a view of a part: `t[1:5]`, `t[..., None, ::-1]`, `t[-1, 2]`.

        That is NumPy's basic indexing: ints, slices, None for a new mode and `...`.

        Raises:
            InvalidIndex: An index is out of range, there are more of them than modes,
                or `key` has arrays, lists or bools, which make no views
                (`INDEX_UNSUPPORTED`).
            InvalidArgument: A slice has step 0.
        """
        return self.view([Index(key)])

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a tensor without modes has no len()")
        return self.shape[0]

    def __iter__(self) -> Iterator[Self]:
        """Yields views along the first mode."""
        if not self.shape:
            raise TypeError("a tensor without modes cannot be iterated over")
        return (self[i] for i in range(self.shape[0]))

    # Python would compare objects, where NumPy compares elements.
    __contains__ = None

    def cute_slice(self, *coordinate: Any) -> Self:
        """Slices as CuTe does: `t.cute_slice(None, 1)` is what NumPy writes `t[:, 1]`.

        Modes are not nested here, but coordinates may be, as they are for a tensor
        whose modes are: `t.cute_slice((None, 1), (0, None, 1))` is `t[:, 1, 0, :, 1]`.

        Args:
            *coordinate: For each mode its index, or None for all of it; or tuples of
                these.

        Raises:
            InvalidIndex: An index is out of range, or `coordinate` has not as many
                items as there are modes.
        """
        return self[coordinate_key(coordinate, len(self.shape))]

    @property
    def T(self) -> Self:
        """A view with the modes in reverse order."""
        return self.transpose()

    def transpose(self, *axes: Any) -> Self:
        """Makes a view with the modes in another order.

        Args:
            *axes: Which mode comes first, second, ...; none reverses them.
        """
        in_reverse = not axes or axes[0] is None
        order = None if in_reverse else _one_or_many("axes", axes)
        return self.view([stages.transpose_stage(len(self.shape), order)])

    def swapaxes(self, axis1: int, axis2: int) -> Self:
        """Makes a view in which two modes have changed places."""
        return self.transpose(stages.swapped_axes(len(self.shape), axis1, axis2))

    def moveaxis(self, source: IntOrInts, destination: IntOrInts) -> Self:
        """Makes a view in which the modes `source` are at `destination`."""
        return self.transpose(stages.moved_axes(len(self.shape), source, destination))

    def reshape(self, *shape: Any) -> Self:
        """Makes a view that counts through the elements with other extents.

        The last mode is the fastest, whatever the strides. Where NumPy would copy, the
        view is gathered.

        Args:
            *shape: Extents, one of which may be -1: what is left.

        Raises:
            InvalidArgument: The elements do not fit (`EXTENT_PRODUCT_MISMATCH`).
        """
        wanted = stages.inferred_shape(self.shape, _one_or_many("shape", shape))
        return self.view(stages.reshape_stages(self.shape, wanted))

    def ravel(self) -> Self:
        """Makes a view with one mode, `reshape(-1)`."""
        return self.reshape(-1)

    def flatten(self) -> Self:
        """Makes a view with one mode; unlike NumPy's, it is no copy."""
        return self.reshape(-1)

    def squeeze(self, axis: IntOrInts | None = None) -> Self:
        """Makes a view without modes of extent 1.

        Args:
            axis: Which ones; None for all.
        """
        return self.view([stages.squeeze_stage(self.shape, _all_or_some(axis))])

    def expand_dims(self, axis: IntOrInts) -> Self:
        """Makes a view with more modes of extent 1.

        Args:
            axis: Where they are in the view.
        """
        axes = integers_of("axis", axis)
        return self.view([stages.expand_stage(len(self.shape), axes)])

    def broadcast_to(self, shape: IntOrInts) -> Self:
        """Makes a view that repeats the tensor along modes of extent 1, and along new
        ones in front.

        It cannot be written to. Permutations and element-wise operations repeat of
        their own accord, along modes that an operand lacks.
        """
        return self.view([stages.broadcast_stage(self.shape, extents_of(shape))])

    def pad(self, pad_width: Any, value: Factor = 0) -> Self:
        """Makes a view with a margin, as `numpy.pad` with `constant_values=value`.

        Writing to it writes the tensor; what is for the margin is dropped.

        Args:
            pad_width: `width`, `(before, after)`, or a pair for each mode; or a mapping
                from modes to either.
            value: What the margin reads as, rounded to the dtype.

        Raises:
            InvalidArgument: The tensor is a view with a margin of another value
                (`PADDING_DIFFERS`): copy it first.
        """
        return self.view([stages.pad_stage(len(self.shape), pad_width)], padding=value)

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Self:
        """Makes a view of the diagonal of two modes, which is the last mode then.

        It can be written to, unlike NumPy's.

        Args:
            offset: How far above the main diagonal; below for a negative number.
            axis1, axis2: The two modes.
        """
        return self.view(stages.diagonal_stages(self.shape, offset, axis1, axis2))

    def flip(self, axis: IntOrInts | None = None) -> Self:
        """Makes a view with modes turned around.

        Args:
            axis: Which ones; None for all.
        """
        return self.view([stages.flip_stage(self.shape, _all_or_some(axis))])

    def sliding_window_view(
        self, window_shape: IntOrInts, axis: IntOrInts | None = None
    ) -> Self:
        """Makes a view of all windows, as the function of `numpy.lib.stride_tricks`.

        The modes within the windows are the last ones. It cannot be written to, as
        windows overlap.

        Args:
            window_shape: Extents of the windows.
            axis: The mode that each is along; None for all modes.
        """
        return self.view([stages.window_stage(self.shape, window_shape, axis)])


def _all_or_some(axis: IntOrInts | None) -> tuple[int, ...] | None:
    """Axes as ints; None for all."""
    return None if axis is None else integers_of("axis", axis)


def _one_or_many(argument: str, values: tuple[Any, ...]) -> tuple[int, ...]:
    """Ints that were passed one by one, or as one sequence."""
    return integers_of(argument, values[0] if len(values) == 1 else values)

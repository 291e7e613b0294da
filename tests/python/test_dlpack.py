"""Tensors and those of other libraries become each other by DLPack."""

from __future__ import annotations

import numpy as np
import pytest

import tensord
from random_views import numbered


class Foreign:
    """A tensor of another library: it has DLPack and nothing else."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()

    def __dlpack__(self, **options: object) -> object:
        return self._array.__dlpack__(**options)


class Shy(Foreign):
    """One that does not become an array by itself, as those of CuPy."""

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        raise TypeError("no implicit conversion")


@pytest.mark.parametrize("cls", [Foreign, Shy])
def test_tensors_of_other_libraries_are_uploaded(session, cls: type[Foreign]):
    array = numbered((3, 4), np.float32).T
    np.testing.assert_array_equal(session.upload(cls(array)).numpy(), array)
    tensor = session.create((4, 3), np.float32)
    tensor.write(cls(array))
    tensor[1] = cls(array[0])
    np.testing.assert_array_equal(tensor.numpy(), array[[0, 0, 2, 3]])
    summed = session.einsum("ij,ij->", cls(array), cls(array))
    assert float(summed) == np.sum(array * array)


def test_tensors_are_handed_to_other_libraries(session):
    array = numbered((3, 4), np.float32)
    tensor = session.upload(array)
    assert tensor.__dlpack_device__() == np.zeros(1).__dlpack_device__()
    for view, expected in (tensor, array), (tensor.T[::-1], array.T[::-1]):
        np.testing.assert_array_equal(np.from_dlpack(view), expected)
    handed = np.from_dlpack(tensor)
    tensor[0] = 9
    np.testing.assert_array_equal(handed, array)


def test_handing_over_is_copying(session):
    tensor = session.upload(np.ones(3))
    with pytest.raises(BufferError, match="by copying only"):
        tensor.__dlpack__(copy=False)
    with pytest.raises(BufferError, match=r"dl_device is \(2, 0\)"):
        tensor.__dlpack__(dl_device=(2, 0))
    with pytest.raises((BufferError, TypeError)):  # The latter of old NumPy.
        session.upload(np.ones(3, tensord.bfloat16)).__dlpack__()

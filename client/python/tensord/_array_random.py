"""Random tensors: NumPy's numbers, drawn on this computer and sent."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import numpy.typing as npt

from tensord import _dtypes as dtypes
from tensord._array_indices import take
from tensord._array_session import CURRENT, placed
from tensord._conversions import refuse_tensors
from tensord._stages import IntOrInts
from tensord._tensor_handle import TensorHandle

Size = IntOrInts | None

# What NumPy's generators draw without a detour by float64.
_DRAWN = (np.dtype(np.float32), np.dtype(np.float64))


class Generator:
    """Draws what NumPy's generator of the same seed draws, as tensors.

    The server draws nothing: numbers are drawn here and sent, so that they are the same
    on every device. Without `size`, a tensor has one element and no modes.
    """

    def __init__(self, seed: Any = None) -> None:
        self._numbers: Any = np.random.default_rng(seed)

    @property
    def bit_generator(self) -> np.random.BitGenerator:
        """What the numbers are made of, as of NumPy's generators."""
        source: np.random.BitGenerator = self._numbers.bit_generator
        return source

    def random(
        self, size: Size = None, dtype: npt.DTypeLike = np.float64, out: None = None
    ) -> Any:
        """Draws from [0, 1)."""
        return self._drawn("random", size, dtype, out)

    def standard_normal(
        self, size: Size = None, dtype: npt.DTypeLike = np.float64, out: None = None
    ) -> Any:
        """Draws of mean 0 and deviation 1."""
        return self._drawn("standard_normal", size, dtype, out)

    def uniform(
        self,
        low: Any = 0.0,
        high: Any = 1.0,
        size: Size = None,
        dtype: npt.DTypeLike | None = None,
    ) -> Any:
        """Draws from [low, high)."""
        refuse_tensors("low or high", low, high)
        return _sent(self._numbers.uniform(low, high, size), dtype)

    def normal(
        self,
        loc: Any = 0.0,
        scale: Any = 1.0,
        size: Size = None,
        dtype: npt.DTypeLike | None = None,
    ) -> Any:
        """Draws of mean `loc` and deviation `scale`."""
        refuse_tensors("loc or scale", loc, scale)
        return _sent(self._numbers.normal(loc, scale, size), dtype)

    def integers(
        self,
        low: Any,
        high: Any = None,
        size: Size = None,
        dtype: Any = np.int64,
        endpoint: bool = False,
    ) -> Any:
        """Draws integers from [low, high), or [0, low)."""
        refuse_tensors("low or high", low, high)
        drawn = self._numbers.integers(low, high, size, dtype, endpoint)
        return _sent(drawn, dtype)

    def binomial(self, n: Any, p: Any, size: Size = None) -> Any:
        """Draws how many of `n` trials succeed."""
        refuse_tensors("n or p", n, p)
        return _sent(self._numbers.binomial(n, p, size))

    def exponential(self, scale: Any = 1.0, size: Size = None) -> Any:
        """Draws from an exponential distribution."""
        refuse_tensors("scale", scale)
        return _sent(self._numbers.exponential(scale, size))

    def gumbel(self, loc: Any = 0.0, scale: Any = 1.0, size: Size = None) -> Any:
        """Draws from Gumbel's distribution."""
        refuse_tensors("loc or scale", loc, scale)
        return _sent(self._numbers.gumbel(loc, scale, size))

    def poisson(self, lam: Any = 1.0, size: Size = None) -> Any:
        """Draws from Poisson's distribution."""
        refuse_tensors("lam", lam)
        return _sent(self._numbers.poisson(lam, size))

    def choice(
        self,
        a: Any,
        size: Size = None,
        replace: bool = True,
        p: Any = None,
        axis: int = 0,
        shuffle: bool = True,
    ) -> Any:
        """Draws parts of a tensor along a mode, or of the numbers below an int.

        Parts of a tensor are put together on the server, in a call for each.
        """
        refuse_tensors("p", p)
        if not isinstance(a, TensorHandle):
            return _sent(self._numbers.choice(a, size, replace, p, axis, shuffle))
        known: Any = a
        indices = self._numbers.choice(known.shape[axis], size, replace, p, 0, shuffle)
        drawn = take(known, np.ravel(indices), axis=axis)
        axis %= known.ndim
        shape = (*known.shape[:axis], *np.shape(indices), *known.shape[axis + 1 :])
        return drawn.reshape(shape)

    def permutation(self, x: Any, axis: int = 0) -> Any:
        """Draws an order of the parts of a tensor along a mode, or of numbers.

        Parts of a tensor are put together on the server, in a call for each.
        """
        if not isinstance(x, TensorHandle):
            return _sent(self._numbers.permutation(x, axis))
        known: Any = x
        return take(known, self._numbers.permutation(known.shape[axis]), axis=axis)

    def _drawn(self, name: str, size: Size, dtype: npt.DTypeLike, out: None) -> Any:
        if out is not None:
            raise TypeError(f"{name} has out=, wanted none: numbers are drawn here")
        wanted = dtypes.wire_dtype(dtype)
        drawn_as = wanted if wanted in _DRAWN else np.dtype(np.float64)
        return _sent(getattr(self._numbers, name)(size, drawn_as), wanted)


def default_rng(seed: Any = None) -> Generator:
    """Returns a generator.

    Args:
        seed: What `numpy.random.default_rng` takes, or a generator, which is returned.
    """
    refuse_tensors("seed", seed)
    return seed if isinstance(seed, Generator) else Generator(seed)


def seed(seed: Any = None) -> None:
    """Begins anew with what functions of this module draw."""
    _SHARED.begin(seed)


class _Shared:
    """The generator of all that say nothing of one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._generator: Generator | None = None

    def get(self) -> Generator:
        with self._lock:
            if self._generator is None:
                self._generator = Generator()
            return self._generator

    def begin(self, seed: Any) -> None:
        generator = default_rng(seed)
        with self._lock:
            self._generator = generator


_SHARED = _Shared()


def random(size: Size = None) -> Any:
    """Draws from [0, 1)."""
    return _SHARED.get().random(size)


def standard_normal(size: Size = None) -> Any:
    """Draws of mean 0 and deviation 1."""
    return _SHARED.get().standard_normal(size)


def uniform(
    low: Any = 0.0,
    high: Any = 1.0,
    size: Size = None,
    dtype: npt.DTypeLike | None = None,
) -> Any:
    """Draws from [low, high)."""
    return _SHARED.get().uniform(low, high, size, dtype)


def normal(
    loc: Any = 0.0,
    scale: Any = 1.0,
    size: Size = None,
    dtype: npt.DTypeLike | None = None,
) -> Any:
    """Draws of mean `loc` and deviation `scale`."""
    return _SHARED.get().normal(loc, scale, size, dtype)


def randint(low: Any, high: Any = None, size: Size = None, dtype: Any = int) -> Any:
    """Draws integers from [low, high), or [0, low)."""
    return _SHARED.get().integers(low, high, size, dtype)


def binomial(n: Any, p: Any, size: Size = None) -> Any:
    """Draws how many of `n` trials succeed."""
    return _SHARED.get().binomial(n, p, size)


def exponential(scale: Any = 1.0, size: Size = None) -> Any:
    """Draws from an exponential distribution."""
    return _SHARED.get().exponential(scale, size)


def gumbel(loc: Any = 0.0, scale: Any = 1.0, size: Size = None) -> Any:
    """Draws from Gumbel's distribution."""
    return _SHARED.get().gumbel(loc, scale, size)


def poisson(lam: Any = 1.0, size: Size = None) -> Any:
    """Draws from Poisson's distribution."""
    return _SHARED.get().poisson(lam, size)


def choice(a: Any, size: Size = None, replace: bool = True, p: Any = None) -> Any:
    """Draws parts of a tensor along its first mode, or of the numbers below an int."""
    return _SHARED.get().choice(a, size, replace, p)


def permutation(x: Any) -> Any:
    """Draws an order of the parts of a tensor along its first mode, or of numbers."""
    return _SHARED.get().permutation(x)


def _sent(drawn: Any, dtype: npt.DTypeLike | None = None) -> Any:
    """Returns numbers in the current session, in a dtype that the server has."""
    known = np.asarray(drawn)
    wanted = dtypes.wire_dtype(known.dtype if dtype is None else dtype)
    return placed(CURRENT.get(), known.astype(wanted, copy=False))

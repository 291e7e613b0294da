"""Random tensors, of numbers that NumPy draws on this computer."""

from tensord._array_names import missing
from tensord._array_random import (
    Generator,
    binomial,
    choice,
    default_rng,
    exponential,
    gumbel,
    normal,
    permutation,
    poisson,
    randint,
    random,
    seed,
    standard_normal,
    uniform,
)

__all__ = [
    "Generator",
    "binomial",
    "choice",
    "default_rng",
    "exponential",
    "gumbel",
    "normal",
    "permutation",
    "poisson",
    "randint",
    "random",
    "seed",
    "standard_normal",
    "uniform",
]


def __getattr__(name: str) -> object:
    raise missing("tensord.array.random", name, __all__)

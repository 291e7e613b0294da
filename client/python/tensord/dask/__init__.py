"""Dask arrays of which the chunks are tensors on servers.

    import dask.array as da
    import tensord.array as xp
    import tensord.dask

    xp.use("localhost:8470")
    x = tensord.dask.from_array(a, chunks=(1000, 1000))   # or da_array.map_blocks(xp.asarray)
    y = (x @ x.T).sum(axis=0).persist()                   # chunks stay on the server
    y.compute()                                           # an array of NumPy

Importing this makes tensors a kind of chunk to Dask, as CuPy's arrays are: its functions
compute with them on the server, as far as `tensord.array` has what they call. What it has
not raises, instead of downloading. `dask.config.set({"array.backend": "tensord"})` makes
`da.ones`, `da.arange` and their like on the server, too.

Wants `dask[array]`.
"""

from __future__ import annotations

try:
    from tensord._dask_chunks import TensordBackend, from_array
except ModuleNotFoundError as _error:
    if (_error.name or "").partition(".")[0] not in ("dask", "tlz", "toolz"):
        raise
    raise ModuleNotFoundError(
        f"tensord.dask wants Dask, which has no {_error.name}: "
        "pip install 'tensord[dask]'",
        name=_error.name,
    ) from None

__all__ = ["TensordBackend", "from_array"]

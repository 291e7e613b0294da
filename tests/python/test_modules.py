"""What the client's modules show to users."""

from __future__ import annotations

import tensord
import tensord.aio


def test_packages_show_their_public_names_only():
    for package in (tensord, tensord.aio):
        shown = {name for name in dir(package) if not name.startswith("_")}
        assert shown == set(package.__all__)
    exported: dict[str, object] = {}
    exec("from tensord import *", exported)
    assert set(tensord.__all__) <= set(exported)

"""Clients that are killed take nothing with them and leave nothing behind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dying_client
import tensord
from waiting import eventually


@pytest.mark.parametrize("state", dying_client.STATES)
def test_the_server_is_as_it_was(private_address: str, state: str) -> None:
    with tensord.connect(private_address) as observer:

        def memory() -> tuple[int, int]:
            device = observer.stats().devices[0]
            return device.memory_used_bytes, device.staging_used_bytes

        def check_that_it_answers() -> None:
            product = observer.einsum("ij,ij->", np.ones((3, 3)), np.ones((3, 3)))
            assert float(product) == 9
            del product
            observer.link.keeper.flush()

        check_that_it_answers()
        before = memory()
        client = subprocess.Popen(
            [sys.executable, Path(dying_client.__file__), private_address, state],
            stdout=subprocess.PIPE,
        )
        assert client.stdout.readline() == b"there\n"
        check_that_it_answers()
        assert observer.stats().session_count == 2
        if state != "planning":
            assert memory() > before
        client.kill()
        client.communicate()
        check_that_it_answers()
        assert eventually(lambda: observer.stats().session_count == 1)
        assert eventually(lambda: memory() == before)
        stats = observer.stats()
        assert stats.tensor_count == 0
        assert stats.devices[0].queued_operations == 0
        check_that_it_answers()

"""The documents name what the server has."""

from __future__ import annotations

import os
import re
import subprocess
import urllib.request
from pathlib import Path

import numpy as np
import pytest

import tensord
from conftest import REPOSITORY
from waiting import eventually

OPERATING = (REPOSITORY / "deploy/docs/operating.md").read_text()
REASONS = (REPOSITORY / "deploy/docs/reasons.md").read_text()
SECURITY = (REPOSITORY / "deploy/docs/security.md").read_text()


def describes(document: str, word: str) -> bool:
    """Whether the document has the whole word in code, alone or with a value."""
    return re.search(rf"`{re.escape(word)}(?![\w-])[^`]*`", document) is not None


def flags() -> list[str]:
    text = subprocess.run(
        [os.environ["TENSORD_SERVER"], "--help"], capture_output=True, text=True, check=True
    ).stdout
    found = re.findall(r"^ +(?:-\w,)?(--[a-z-]+)", text, re.MULTILINE)
    assert len(found) > 40
    return [flag for flag in found if flag not in ("--help", "--version")]


@pytest.mark.parametrize("flag", flags())
def test_every_flag_is_described(flag: str) -> None:
    assert describes(OPERATING, flag)


def test_every_metric_is_described() -> None:
    with tensord.serve(threads=1, metrics_listen="localhost:0") as address:
        log = Path(address.removeprefix("unix:")).with_name("log")
        pattern = re.compile(r"listening address=(\S+) for=metrics")
        assert eventually(lambda: pattern.search(log.read_text()) is not None)
        http = pattern.findall(log.read_text())[0]
        with tensord.connect(address) as session:
            session.einsum("ij,jk", np.eye(2), np.eye(2))
            with urllib.request.urlopen(f"http://{http}/metrics") as response:
                names = re.findall(r"^# HELP (\S+)", response.read().decode(), re.MULTILINE)
    assert len(names) > 40
    assert [name for name in names if not describes(OPERATING, name)] == []


def reasons() -> set[str]:
    """The reasons of errors as the code spells them, whole or in two parts."""
    no_reasons = {
        "AVX3_ZEN4",  # OpenBLAS's and processors' names, variables, operators
        "OPENBLAS_CORETYPE",
        "NOTIFY_SOCKET",
        "LISTEN_FDS",
        "LISTEN_PID",
        "TENSORD_",
        "TENSORD_CONFIG",
        "SOFT_PLUS",
        "SOFT_SIGN",
        "NOT_EQUAL",
        "LESS_EQUAL",
        "GREATER_EQUAL",
    }
    found = set()
    for folder in ("core", "server"):
        for file in (REPOSITORY / folder).rglob("*"):
            # status.cc has cuTENSOR's names of statuses.
            if file.suffix not in (".cc", ".h", ".cu", ".cuh") or file.stem == "status":
                continue
            code = re.sub(r"//.*", "", file.read_text())
            found |= set(re.findall(r'"([A-Z][A-Z0-9]*_[A-Z0-9_]*|_[A-Z_]+|DRAINING)"', code))
    return found - no_reasons


def test_every_reason_is_described() -> None:
    code, described = reasons(), set(re.findall(r"`([A-Z][A-Z0-9_]+)`", REASONS))
    whole = {reason for reason in code if not reason.startswith("_") and not reason.endswith("_")}
    assert len(whole) > 200
    assert sorted(whole - described) == []
    parts = code - whole  # of those that are put together
    assert parts
    kinds = ("TENSOR", "PLAN", "PROGRAM"), ("TENSORS", "PLANS", "PROGRAMS", "REQUESTS", "ANSWERS")
    made = {kind + part for part in parts if part.startswith("_") for kind in kinds[0]}
    made |= {part + kind for part in parts if part.endswith("_") for kind in kinds[1]}
    assert sorted(made - described) == []


def test_reasons_that_are_described_exist() -> None:
    code = reasons()
    for reason in re.findall(r"^\| (`[A-Z0-9_`, ]+`) \|", REASONS, re.MULTILINE):
        for word in re.findall(r"\w+", reason):
            assert word in code or any(
                part in word for part in code if part[0] == "_" or part[-1] == "_"
            ), word


def test_every_key_of_a_tenant_is_described() -> None:
    source = (REPOSITORY / "server/identity/tenants.cc").read_text()
    found = re.findall(r'key == "(\w+)"|\{"(\w+)", &TenantShares::', source)
    keys = {chosen or quota for chosen, quota in found}
    assert len(keys) == 15
    assert [key for key in keys if not re.search(rf"^{key} = ", OPERATING, re.MULTILINE)] == []


def test_tests_that_the_threats_name_exist() -> None:
    python = "".join(file.read_text() for file in Path(__file__).parent.glob("test_*.py"))
    units = "".join(
        file.read_text() for file in (REPOSITORY / "tests/unit/server").glob("*/*_test.cc")
    )
    tests = re.findall(r"`(test_[a-z0-9_]+)`", SECURITY)
    assert len(tests) > 10
    assert [test for test in tests if f"def {test}(" not in python] == []
    for suite, test in re.findall(r"`(\w+Test)\.(\w+)`", SECURITY):
        assert re.search(rf"TEST(_F)?\({suite}, {test}\)", units)


def test_security_says_what_is_fuzzed_and_what_is_not() -> None:
    (row,) = re.findall(r"^\| malformed input \|.+$", SECURITY, re.MULTILINE)
    targets = {file.stem for file in (REPOSITORY / "tests/fuzz").glob("*_fuzz.cc")}
    assert set(re.findall(r"`(\w+_fuzz)`", row)) == targets
    samples = (REPOSITORY / "tests/fuzz/service_calls.cc").read_text()
    called = set(re.findall(r'"\w+Service\.(\w+)"', samples))
    protos = (REPOSITORY / "proto/tensord/v1").glob("*.proto")
    rpcs = {rpc for file in protos for rpc in re.findall(r"^  rpc (\w+)", file.read_text(), re.M)}
    assert len(rpcs) > 50 and called <= rpcs
    assert set(re.findall(r"`([A-Z]\w+)`", row)) == rpcs - called

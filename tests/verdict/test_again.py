"""What failed runs once more, alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import again
from cases import Case
from results import Results


def test_tests_are_found_by_their_names(tmp_path: Path) -> None:
    (tmp_path / "python").mkdir()
    file = tmp_path / "python/test_a.py"
    file.touch()
    for name, node in {
        "python.test_a.test_b": "::test_b",
        "python.test_a.test_b[c.d::e[1]-f]": "::test_b[c.d::e[1]-f]",
        "python.test_a.TestC.test_b": "::TestC::test_b",
        "python.test_a": "",
    }.items():
        assert again.node_of(name, tmp_path) == str(file) + node
    assert again.node_of("python.test_gone.test_b", tmp_path) is None


def test_a_test_of_pytest_runs_alone(tmp_path: Path, monkeypatch) -> None:
    file = tmp_path / "test_a.py"
    file.write_text(
        "import os\n"
        "def test_native(): assert os.environ['TENSORD_IMPLEMENTATION'] == 'native'\n"
    )
    monkeypatch.setattr(again, "TESTS", tmp_path)
    for name, suite, passes in (
        ("test_native", "native", True),
        ("test_native", "python", False),
    ):
        case = Case(suite, f"test_a.{name}", "failed", 1.0)
        assert again.passes_alone(case) == passes


def test_only_what_failed_without_a_report_runs(tmp_path: Path, monkeypatch) -> None:
    results = Results(tmp_path)
    report = "WARNING: ThreadSanitizer: data race\nSUMMARY: ThreadSanitizer: data race"
    results.ctest("tsan", {"racing_test": "fail"}, output={"racing_test": report})
    results.google("tsan", "racing_test", {"A.Races": "wrong", "A.Runs": ""})
    results.ctest("dev", {"core_test": "fail", "gone_test": "fail", "census": "run"})
    results.google("dev", "core_test", {"A.Fails": "x", "A.Hangs": "y", "A.Runs": ""})
    results.pytest("python", {"python.test_a.test_b": ("late", "")})
    ran = []

    def passes_alone(case: Case) -> bool:
        ran.append((case.suite, case.program, case.name))
        return case.name != "A.Fails"

    monkeypatch.setattr(again, "passes_alone", passes_alone)
    again.main(tmp_path, ["dev", "tsan", "python", "missing"])
    assert ran == [
        ("dev", "core_test", "A.Fails"),
        ("dev", "core_test", "A.Hangs"),
        ("dev", "gone_test", "gone_test"),
        ("python", "", "python.test_a.test_b"),
    ]
    passed = json.loads((tmp_path / "again.json").read_text())
    assert passed == [
        ["dev", "A.Hangs"],
        ["dev", "gone_test"],
        ["python", "python.test_a.test_b"],
    ]


@pytest.mark.parametrize("limit", ["LIMIT", "PATIENCE"])
def test_not_for_ever(limit: str, tmp_path: Path, monkeypatch) -> None:
    results = Results(tmp_path)
    results.pytest("python", {f"a.test_{i}": ("late", "") for i in range(9)})
    ran = []
    monkeypatch.setattr(again, "passes_alone", lambda case: ran.append(case) is None)
    monkeypatch.setattr(again, limit, 3 if limit == "LIMIT" else -1.0)
    again.main(tmp_path, ["python"])
    assert len(ran) == (3 if limit == "LIMIT" else 0)

"""What tests/run --quick chooses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import select_tests
from select_tests import Programs


class Build(Programs):
    """A build folder that is not there."""

    def of_headers(self, changed: set[str]) -> set[str]:
        return {"tensord_base"} & (
            {"tensord_base"} if "core/base/half.h" in changed else set()
        )

    def shown(self) -> list[dict[str, object]]:
        names = ("core_test", "rpc_test_1", "rpc_test_2", "peers")
        return [{"name": name} for name in names]

    def google_tests(self) -> dict[str, list[str]]:
        return {
            "core_test": ["HalfTest.Rounds", "HalfTest.Adds", "LayoutTest.Merges"],
            "rpc_test_1": ["Rpc/CallTest.Rounds/0"],
            "rpc_test_2": ["Rpc/CallTest.Ends/0"],
        }


TIME_RULES = "tests/python/test_time_rules.py"
TARGETS = {
    "core_test": (
        "EXECUTABLE",
        "tests/unit",
        ["tests/unit/half_test.cc"],
        ["tensord_base"],
    ),
    "rpc_test": (
        "EXECUTABLE",
        "tests",
        ["tests/conformance/call_test.cc"],
        ["tensord_rpc"],
    ),
    "half_bench": ("EXECUTABLE", "tests/benchmarks", [], ["tensord_base"]),
    "tensord": ("EXECUTABLE", "server", ["server/main.cc"], ["tensord_rpc"]),
    "losable_device": ("MODULE_LIBRARY", "tests", [], []),
    "tensord_rpc": (
        "STATIC_LIBRARY",
        "server/rpc",
        ["server/rpc/call.cc"],
        ["tensord_base"],
    ),
    "tensord_base": ("STATIC_LIBRARY", "core/base", ["UNITED"], []),
}


@pytest.fixture
def programs(tmp_path: Path) -> Programs:
    replies = tmp_path / ".cmake/api/v1/reply"
    replies.mkdir(parents=True)
    entries = []
    united = tmp_path / "united/tensord_base_0.cc"
    united.parent.mkdir()
    united.write_text('#include "core/base/half.cc"\n#include "core/base/layout.cc"\n')
    for name, (kind, folder, paths, needs) in TARGETS.items():
        sources = [str(united) if path == "UNITED" else path for path in paths]
        described = {
            "type": kind,
            "paths": {"source": folder},
            "sources": [{"path": path} for path in sources],
            "dependencies": [{"id": f"{need}::@12"} for need in needs],
        }
        (replies / f"{name}.json").write_text(json.dumps(described))
        entries.append({"name": name, "jsonFile": f"{name}.json"})
    (replies / "model.json").write_text(
        json.dumps({"configurations": [{"targets": entries}]})
    )
    index = {"reply": {"codemodel-v2": {"jsonFile": "model.json"}}}
    (replies / "index-1.json").write_text(json.dumps(index))
    return Build(tmp_path)


@pytest.mark.parametrize(
    "changed, ctest, python, deploy",
    [
        (
            "server/rpc/call.cc",
            "core_test rpc_test_1 rpc_test_2",
            "tests/python",
            "tests/deploy",
        ),
        (
            "tests/conformance/call_test.cc",
            "core_test rpc_test_1 rpc_test_2",
            TIME_RULES,
            "",
        ),
        ("tests/unit/half_test.cc", "core_test", TIME_RULES, ""),
        ("tests/unit/CMakeLists.txt", "core_test", TIME_RULES, ""),
        (
            "core/base/names.cmake",
            "core_test rpc_test_1 rpc_test_2",
            "tests/python",
            "tests/deploy",
        ),
        (
            "CMakeLists.txt",
            "core_test rpc_test_1 rpc_test_2",
            "tests/python",
            "tests/deploy",
        ),
        (
            "core/base/layout.cc",
            "core_test rpc_test_1 rpc_test_2",
            "tests/python",
            "tests/deploy",
        ),
        (
            "core/base/half.h",
            "core_test rpc_test_1 rpc_test_2",
            "tests/python",
            "tests/deploy",
        ),
        ("client/python/tensord/aio.py", "", "tests/python", ""),
        ("tests/python/test_aio.py", "", f"tests/python/test_aio.py {TIME_RULES}", ""),
        ("tests/python/waiting.py", "", "tests/python", ""),
        ("tests/python/test_gone.py", "", TIME_RULES, ""),
        ("tests/stress", "", "tests/python/test_stress.py", ""),
        ("deploy/helm/values.yaml", "", "", "tests/deploy"),
        ("README.md", "", " ".join(select_tests.READS_DOCUMENTS), ""),
        ("tests/run", "", "", ""),
        ("tests/verdict/cases.py", "", TIME_RULES, ""),
        ("tests/benchmarks/report.py", "", TIME_RULES, ""),
        ("deploy/prepare.sh", "", "", "tests/deploy"),
        ("compose.yaml", "", "", ""),
    ],
)
def test_a_change_chooses(
    changed: str, ctest: str, python: str, deploy: str, programs: Programs
) -> None:
    chosen = select_tests.choose_by_change(programs, [changed])
    assert " ".join(chosen.ctest) == ctest
    assert chosen.filter == []
    assert " ".join(chosen.pytest["python"]) == python
    assert " ".join(chosen.pytest["deploy"]) == deploy
    is_ours = changed in ("tests/run", "tests/verdict/cases.py", "deploy/prepare.sh")
    assert chosen.pytest["verdict"] == (["tests/verdict"] if is_ours else [])
    assert "native" not in chosen.pytest


@pytest.mark.parametrize("changed", ["client/python/native/src/fork.cc", "client/cpp/src/call.cc"])
def test_the_native_core_is_tested_where_it_changes(changed: str, programs: Programs) -> None:
    chosen = select_tests.choose_by_change(programs, [changed])
    assert chosen.pytest["native"] == ["tests/python"]
    assert chosen.what.endswith("the native core")


def test_headers_are_known_by_ninja(monkeypatch: pytest.MonkeyPatch) -> None:
    build = select_tests.ROOT / "build/dev"
    deps = (
        "core/CMakeFiles/tensord_base.dir/united/base_0.cc.o: #deps 2, deps mtime 1 (VALID)\n"
        "    ../../core/base/half.cc\n"
        "    ../../core/base/half.h\n"
        "\n"
        "tests/CMakeFiles/core_test.dir/a.cc.o: #deps 2, deps mtime 1 (VALID)\n"
        f"    {select_tests.ROOT}/core/base/half.h\n"
        "    /usr/include/core/base/layout.h\n"
    )
    monkeypatch.setattr(select_tests, "said", lambda *_: deps)
    programs = Programs.__new__(Programs)
    programs.build = build
    assert programs.of_headers({"core/base/half.h"}) == {"tensord_base", "core_test"}
    assert programs.of_headers({"core/base/half.cc"}) == {"tensord_base"}
    assert programs.of_headers({"core/base/layout.h"}) == set()


NODES = {
    "tests/python": """\
python/test_half.py::test_it_rounds[Rounds-1]
python/test_half.py::test_it_adds

2 tests collected in 0.10s
""",
    "tests/deploy": "deploy/test_image.py::test_Rounds\n",
    "tests/verdict": "no tests collected\n",
}


@pytest.mark.parametrize(
    "pattern, ctest, chosen, python, deploy",
    [
        (
            "Rounds",
            "core_test rpc_test_1",
            "HalfTest.Rounds Rpc/CallTest.Rounds/0",
            1,
            1,
        ),
        ("HalfTest.A", "core_test", "HalfTest.Adds", 0, 0),
        ("core_t", "core_test", "HalfTest.* LayoutTest.*", 0, 0),
        ("peers", "peers", "", 0, 0),
        ("test_half", "", "", 2, 0),
    ],
)
def test_a_pattern_chooses(
    pattern: str,
    ctest: str,
    chosen: str,
    python: int,
    deploy: int,
    programs: Programs,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(select_tests, "said", lambda *words: NODES[words[-1]])
    choice = select_tests.choose_by_name(programs, pattern)
    assert " ".join(choice.ctest) == ctest
    assert " ".join(choice.filter) == chosen
    counts = {folder: len(found) for folder, found in choice.pytest.items()}
    assert counts == {"verdict": 0, "python": python, "deploy": deploy}
    for node in choice.pytest["python"]:
        assert node.startswith("tests/python/test_half.py::")


def test_programs_of_a_pattern_are_built_with_all_that_is_no_test(
    programs: Programs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(select_tests, "ROOT", tmp_path)
    for path, text in {
        "tests/unit/half_test.cc": "TEST(HalfTest, Rounds) {",
        "tests/conformance/call_test.cc": "TEST_P(CallTest,\n       EndsWhenItIsToldTo) {",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_text(text)
    assert select_tests.targets_for(programs, "HalfTest.R") == [
        "core_test",
        "losable_device",
        "tensord",
    ]
    assert "rpc_test" in select_tests.targets_for(programs, "CallTest.EndsWhen")
    assert select_tests.targets_for(programs, "nothing") == [
        "losable_device",
        "tensord",
    ]


def test_googletest_s_list_is_read() -> None:
    text = (
        "Running main() from gmock_main.cc\nHalfTest.\n  Rounds\n  Adds\n"
        "Rpc/CallTest.\n  Ends/0  # GetParam() = 4\nTyped/0.  # TypeParam = float\n  Is\n"
    )
    assert select_tests.listed(text) == [
        "HalfTest.Rounds",
        "HalfTest.Adds",
        "Rpc/CallTest.Ends/0",
        "Typed/0.Is",
    ]


def test_what_is_chosen_is_written(tmp_path: Path) -> None:
    choice = select_tests.Choice(
        ["a+b", "c"], ["A.B", "C.D"], {"python": ["x", "y"], "deploy": []}, "all of it"
    )
    select_tests.write(choice, tmp_path)
    texts = {file.name: file.read_text() for file in tmp_path.iterdir()}
    assert texts == {
        "ctest": "^(a\\+b|c)$\n",
        "filter": "A.B:C.D\n",
        "python": "x\ny\n",
        "what": "quick, all of it\n",
    }

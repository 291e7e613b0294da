#!/usr/bin/env python3
"""Tests of what tests/gpu/run does around its programs: the page, the plots, and what becomes of failures.

testdata/recorded.jsonl holds some of the rows that `smoke_test.py --record` kept; its times mean nothing.
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap
import unittest
import xml.etree.ElementTree as ElementTree
from unittest import mock

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from harness import cutensor, parts, plots, raw, report, suites  # noqa: E402

RECORDED = HERE / "testdata" / "recorded.jsonl"


def permutation(kernel: str, ns: float, chosen: bool = False, **more: object) -> dict:
    return {
        "part": "permutation",
        "suite": "ttc57",
        "id": 1,
        "rank": 2,
        "type": "float32",
        "bytes": 8000,
        "extents": "100 10",
        "perm": "1 0",
        "copy_ns": 100.0,
        "kernel": f"cuda.permute.{kernel}",
        "ns": ns,
        "predicted_ns": 2 * ns,
        "chosen": chosen,
        "differing_bytes": 0,
        **more,
    }


class RawTest(unittest.TestCase):
    def load(self, text: str) -> list[dict]:
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
            file.write(text)
            file.flush()
            return raw.load(pathlib.Path(file.name))

    def test_a_last_line_that_was_cut_off_is_left_out(self) -> None:
        self.assertEqual(self.load('{"part":"a"}\n{"part":"b'), [{"part": "a"}])

    def test_any_other_broken_line_is_an_error(self) -> None:
        with self.assertRaisesRegex(ValueError, ":1: not a row"):
            self.load('{"part"\n{"part":"b"}\n')

    def test_a_case_knows_its_chosen_and_its_best_kernel(self) -> None:
        (case,) = raw.cases([permutation("tiled", 200, chosen=True), permutation("packed", 125)], "permutation")
        self.assertEqual(case.ratio(case.chosen), 0.5)
        self.assertEqual(case.ratio(case.best), 0.8)
        self.assertEqual(case.rate(case.best), 64)

    def test_a_case_without_its_chosen_kernel_does_not_count(self) -> None:
        self.assertEqual(raw.cases([permutation("packed", 125)], "permutation"), [])

    def test_peers_join_the_case_they_ran(self) -> None:
        peer = {
            "part": "peers",
            "of_part": "permutation",
            "peer": "torch",
            "suite": "ttc57",
            "id": 1,
            "type": "float32",
            "ns": 400.0,
        }
        other = {**peer, "id": 2}
        (case,) = raw.cases([peer, other, permutation("tiled", 200, chosen=True)], "permutation")
        self.assertEqual(case.peers, {"torch": 400.0})


class ReportTest(unittest.TestCase):
    def page(self, rows: list[dict]) -> str:
        return report.page({"date": "today", "device": "none"}, [], rows, [])

    def test_every_recorded_part_has_its_section(self) -> None:
        page = self.page(raw.load(RECORDED))
        titles = re.findall("^## (.*)$", page, re.MULTILINE)
        self.assertEqual(titles, ["Model", "Permutation", "Element-wise", "Reduction", "Memory", "Transfers"])

    def test_tables_have_as_many_cells_in_every_line(self) -> None:
        blocks = re.findall(r"(?:^\|.*\n)+", self.page(raw.load(RECORDED)), re.MULTILINE)
        self.assertGreater(len(blocks), 8)
        for block in blocks:
            self.assertEqual(len({line.count("|") for line in block.splitlines()}), 1, block)

    def test_a_case_that_measuring_would_have_won_is_missed(self) -> None:
        page = self.page([permutation("tiled", 200, chosen=True), permutation("packed", 125)])
        self.assertIn("| ttc57 | float32 | 1 | 40 | 0.50 | 0.50 | 0.50 | 0.80 | 0.80 | 0.80 | 1 |", page)

    def test_a_nearly_best_choice_is_not_missed(self) -> None:
        page = self.page([permutation("tiled", 200, chosen=True), permutation("packed", 195)])
        self.assertIn("0.51 | 0.51 | 0.51 | 0 |", page)

    def test_wrong_results_head_the_page(self) -> None:
        page = self.page([permutation("tiled", 200, chosen=True, differing_bytes=12)])
        self.assertLess(page.index("WRONG RESULTS"), page.index("## Permutation"))

    def test_peers_are_compared_case_by_case(self) -> None:
        rows = [
            permutation("tiled", 200, chosen=True),
            {
                "part": "peers",
                "of_part": "permutation",
                "peer": "torch",
                "suite": "ttc57",
                "id": 1,
                "type": "float32",
                "ns": 100.0,
            },
            {"part": "peers", "peer": "cutensor", "skipped": "not there"},
            {"part": "peers", "of_part": "permutation", "peer": "cupy", "refused": "no"},
        ]
        page = self.page(rows)
        self.assertIn("| ttc57 | float32 | torch | 1 | 1.00 | 0.50 | 0.50 | 1 |", page)
        self.assertIn("cutensor: SKIPPED: not there.", page)
        self.assertIn("cupy: 1 cases without a result, the first because of: no.", page)


class PlotsTest(unittest.TestCase):
    def test_plots_are_svg_with_a_panel_a_type(self) -> None:
        cases = raw.cases(raw.load(RECORDED), "permutation")
        drawn = plots.permutation_plots(cases)
        self.assertEqual(set(drawn), {"permutation-bandwidth.svg", "permutation-by-rank.svg"})
        for text in drawn.values():
            root = ElementTree.fromstring(text)
            self.assertNotIn("nan", text)
            self.assertTrue(root.tag.endswith("svg"))
        types = {case.facts["type"] for case in cases}
        self.assertEqual(drawn["permutation-by-rank.svg"].count("<g "), len(types))
        self.assertEqual(drawn["permutation-by-rank.svg"].count("<circle "), len(cases))

    def test_one_case_can_be_drawn(self) -> None:
        (case,) = raw.cases([permutation("tiled", 200, chosen=True)], "permutation")
        for text in plots.permutation_plots([case]).values():
            ElementTree.fromstring(text)

    def test_nothing_is_drawn_of_nothing(self) -> None:
        self.assertEqual(plots.permutation_plots([]), {})

    def test_ticks_are_few_and_round(self) -> None:
        for most, wanted in (
            (1.05, [0, 0.2, 0.4, 0.6, 0.8, 1.0]),
            (4300, [0, 1000, 2000, 3000, 4000]),
            (12, [0, 2, 4, 6, 8, 10, 12]),
        ):
            self.assertEqual([round(tick, 9) for tick in plots.ticks(most)], wanted)


class PeersTest(unittest.TestCase):
    def test_a_permutation_is_the_same_whichever_mode_is_fastest(self) -> None:
        case = suites.PermutationCase("none", 1, [2, 3, 4], [2, 0, 1])
        shape, axes = case.last_mode_fastest()
        self.assertEqual((shape, axes), ([4, 3, 2], [1, 2, 0]))
        d_extents = [case.extents[p] for p in case.perm]
        self.assertEqual([shape[axis] for axis in axes], d_extents[::-1])

    def test_strides_of_the_first_mode_are_one(self) -> None:
        self.assertEqual(cutensor.packed_strides([5, 7, 2]), [1, 5, 35])

    def test_peers_that_are_not_there_are_named(self) -> None:
        done = subprocess.run(
            [sys.executable, "-S", "-E", HERE / "harness" / "peers.py", "--data=."], capture_output=True, text=True
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(
            [json.loads(line)["peer"] for line in done.stdout.splitlines() if "skipped" in line],
            ["torch", "cupy", "cutensor"],
        )


class RunTest(unittest.TestCase):
    """`run` on packs whose programs are scripts."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.pack = pathlib.Path(folder.name)
        (self.pack / "bin").mkdir()
        (self.pack / "data").mkdir()
        (self.pack / "COMMIT").write_text("0123abc\n")
        self.program(
            "gpu_bench",
            f"""
            import json, sys
            rows = [json.loads(line) for line in open({str(RECORDED)!r})]
            for row in rows:
                if row["part"] == sys.argv[1]:
                    print(json.dumps(row))
            """,
        )
        self.program(
            "gpu_conformance_test",
            """
            import sys
            if "--gtest_list_tests" in sys.argv:
                print("GpuDeviceTest.\\n  CanBeUsed\\nGpu/KernelConformance.")
                for test in ("Works", "Breaks"):
                    print(f"  {test}/Full  # GetParam()\\n  {test}/Brief  # GetParam()")
                sys.exit(0)
            print("cuda.permute.tiled: 7 runs, 2 declined, worst error 0.25 of the bound")
            broken = any("Breaks" in argument for argument in sys.argv)
            print("a.cc:1: Failure" if broken else "[  PASSED  ]")
            sys.exit(broken)
            """,
        )

    def program(self, name: str, text: str) -> None:
        path = self.pack / "bin" / name
        path.write_text(f"#!{sys.executable}\n" + textwrap.dedent(text))
        path.chmod(0o755)

    def run_it(self, *options: str) -> subprocess.CompletedProcess:
        command = [sys.executable, HERE / "run", f"--pack={self.pack}", f"--out={self.pack / 'out'}", *options]
        return subprocess.run(command, capture_output=True, text=True, timeout=120)

    def test_parts_make_one_dated_page_with_plots(self) -> None:
        done = self.run_it("--only=permutation,model")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(done.stdout.splitlines()[-1], "gpu: 2 of 2 parts passed")
        (page,) = (self.pack / "out").glob("*-gpu-simulated-gpu.md")
        text = page.read_text()
        self.assertIn("- commit: 0123abc", text)
        self.assertLess(text.index("## Model"), text.index("## Permutation"))
        files = {path.name for path in (self.pack / "out").iterdir()}
        self.assertEqual(
            files - {page.name}, {"raw.jsonl", "log.txt", "permutation-bandwidth.svg", "permutation-by-rank.svg"}
        )

    def test_without_a_device_it_skips_and_says_so(self) -> None:
        self.program(
            "gpu_bench",
            """
            import sys
            print('{"part":"device","skipped":"there is no driver"}')
            sys.exit(77)
            """,
        )
        done = self.run_it()
        self.assertEqual(done.returncode, 0)
        self.assertEqual(
            done.stdout.splitlines(),
            [
                "SKIPPED: no CUDA device: there is no driver",
                "gpu: SKIPPED: 0 of 9 parts ran, nothing was tested or measured",
            ],
        )
        self.assertFalse((self.pack / "out").exists())

    def test_a_program_that_cannot_run_is_no_skip(self) -> None:
        self.program("gpu_bench", "raise SystemExit('a library is missing')")
        done = self.run_it()
        self.assertEqual(done.returncode, 1)
        self.assertIn("a library is missing", done.stdout)

    def test_a_failing_test_fails_the_run_and_is_named(self) -> None:
        done = self.run_it("--only=conformance")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stdout.splitlines()[-1], "gpu: FAILED: conformance (1 of 3 tests)")
        (page,) = (self.pack / "out").glob("*.md")
        text = page.read_text()
        self.assertIn("FAILED: test Gpu/KernelConformance.Breaks/Full: a.cc:1: Failure", text)
        self.assertIn("| cuda.permute.tiled | 21 | 6 | 0.25 |", text)

    def test_a_test_that_does_not_end_fails(self) -> None:
        self.program(
            "gpu_conformance_test",
            """
            import sys, time
            if "--gtest_list_tests" in sys.argv:
                print("Gpu/KernelConformance.\\n  Works/Full  # GetParam()")
                sys.exit(0)
            time.sleep(60)
            """,
        )
        with (
            parts.Bench(self.pack, self.pack / "data", self.pack) as bench,
            mock.patch.object(parts, "GRACE_SECONDS", 0.5),
        ):
            outcome = parts.conformance(bench, 0.5)
        self.assertEqual(outcome, parts.Outcome("FAILED", "1 of 1 tests"))

    def test_wrong_results_fail_the_run(self) -> None:
        rows = {
            "device": next(row for row in raw.load(RECORDED) if row["part"] == "device"),
            "permutation": permutation("tiled", 200, chosen=True, differing_bytes=4),
        }
        self.program(
            "gpu_bench",
            f"""
            import json, sys
            print(json.dumps({rows!r}[sys.argv[1]]))
            """,
        )
        done = self.run_it("--only=permutation")
        self.assertEqual(done.stdout.splitlines()[-1], "gpu: FAILED: permutation (1 wrong results)")

    def test_no_test_starts_when_the_time_is_up(self) -> None:
        done = self.run_it("--only=conformance", "--minutes=0")
        self.assertEqual(done.returncode, 0)
        self.assertEqual(
            done.stdout.splitlines()[-1], "gpu: 0 of 1 parts passed, SKIPPED: conformance (no time was left)"
        )

    def test_a_part_that_does_not_exist_is_refused(self) -> None:
        done = self.run_it("--only=speed")
        self.assertEqual(done.returncode, 2)
        self.assertIn("no such part: speed", done.stderr)


if __name__ == "__main__":
    unittest.main()

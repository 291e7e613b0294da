#!/usr/bin/env python3
"""Tests of what tests/gpu/run does around its programs: the page, the plots, and what becomes of failures.

testdata/recorded.jsonl holds some of the rows that `smoke_test.py --record` kept; its times mean nothing.
"""

import importlib.util
import math
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

from harness import contraction_report, contractions, parts, plots, raw, report  # noqa: E402

RECORDED = HERE / "testdata" / "recorded.jsonl"
DATA = HERE.parent / "benchmarks" / "data"


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


def contraction(kernel: str, ns: float, chosen: bool = False, **more: object) -> dict:
    """Made up: 1000 operations in the time that a copy takes for one."""
    return {
        "part": "contraction",
        "suite": "tccg48",
        "id": 1,
        "class": "ccsd_t",
        "type": "float32",
        "modes": "ab-ac-cb",
        "extents": "a:5 b:10 c:20",
        "flops": 100000.0,
        "bytes": 1400,
        "copy_ns": 100.0,
        "kernel": f"cuda.contract.{kernel}",
        "ns": ns,
        "predicted_ns": 2 * ns,
        "chosen": chosen,
        "sums": 10,
        "wrong_sums": 0,
        "worst_error": 0.25,
        "left_out": "cuda.contract.reference",
        **more,
    }


def contraction_peer(peer: str, ns: float, **more: object) -> dict:
    facts = {"part": "peers", "of_part": "contraction", "suite": "tccg48", "id": 1, "type": "float32"}
    return {**facts, "peer": peer, "ns": ns, **more}


def operation(part: str, case: str, ns: float, **more: object) -> dict:
    run = {"kernel": f"cuda.{part}.fused", "ns": ns, "predicted_ns": ns, "chosen": True, "differing_bytes": 0}
    return {"part": part, "case": case, "type": "float32", "bytes": 8000, **run, **more}


def operation_peer(part: str, case: str, peer: str, ns: float | None = None, **more: object) -> dict:
    facts = {"part": "peers", "of_part": part, "case": case, "type": "float32", "peer": peer}
    return {**facts, **({} if ns is None else {"ns": ns}), **more}


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
        operations = ["Permutation", "Element-wise", "Reduction", "Contraction"]
        small = ["Overhead of a contraction", "Programs of small products"]
        self.assertEqual(titles, ["Model", *operations, *small, "Memory", "Transfers"])

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


class OperationTest(unittest.TestCase):
    """Element-wise operations and reductions, of which the rows of a case have its name."""

    def page(self, *rows: dict) -> str:
        return report.page({"date": "today", "device": "none"}, [], list(rows), ["elementwise-and-reduction.svg"])

    def test_each_peer_has_a_column_and_a_line(self) -> None:
        page = self.page(
            operation("elementwise", "a+c", 200, copy_ns=100),
            operation("reduction", "sum of all", 50, read_ns=40),
            operation_peer("elementwise", "a+c", "torch", 400),
            operation_peer("elementwise", "a+c", "cupy", 300),
            operation_peer("elementwise", "a+c", "cutensor", 100),
            operation_peer("reduction", "sum of all", "cutensor", 80),
        )
        self.assertIn("| best | speed over cupy | speed over cutensor | speed over torch |", page)
        self.assertIn("| a+c float32 | fused | 40 | 0.50 | fused 0.50 | 1.50 | 0.50 | 2.00 |", page)
        self.assertIn("| sum of all float32 | fused | 160 | 0.80 | fused 0.80 | 1.60 |", page)
        self.assertIn("| elementwise | float32 | cutensor | 1 | 1.00 | 0.50 | 0.50 | 1 |", page)
        self.assertIn("| reduction | float32 | cutensor | 1 | 0.50 | 1.60 | 1.60 | 0 |", page)
        self.assertIn("![elementwise-and-reduction.svg](elementwise-and-reduction.svg)", page)

    def test_cases_without_a_time_are_named_with_every_reason(self) -> None:
        rows = [operation("elementwise", name, 200, copy_ns=100) for name in ("a+c", "a+b+c", "relu(a)+c")]
        reasons = {"a+c": "no", "a+b+c": "never", "relu(a)+c": "no"}
        refused = [operation_peer("elementwise", name, "cutensor", refused=reason) for name, reason in reasons.items()]
        page = self.page(*rows, *refused)
        self.assertIn("- cutensor has no time for a+c float32, relu(a)+c float32: no.\n", page)
        self.assertIn("- cutensor has no time for a+b+c float32: never.\n", page)
        self.assertLess(page.index("never."), page.index("## Peers"))


class ContractionTest(unittest.TestCase):
    def page(self, *rows: dict) -> str:
        return report.page({"date": "today", "device": "none"}, [], list(rows), ["contraction-roof.svg"])

    def test_without_a_matrix_product_the_roof_is_the_copy(self) -> None:
        page = self.page(contraction("direct_64x64", 200, chosen=True))
        self.assertIn("| CCSD(T) | float32 | 1 | 0 | 500 | 0.50 | 0.50 | 0.50 | 0 |  |", page)
        self.assertIn("There was no cuBLAS: the roof is the copy's alone", page)
        self.assertIn("![contraction-roof.svg](contraction-roof.svg)", page)

    def test_the_roof_is_the_arithmetic_where_that_takes_longer(self) -> None:
        peak = contraction_peer("cublas", 1.0, suite="none", gflop_per_s=625.0)
        slower = contraction_peer("cublas", 200.0, gflop_per_s=500.0)
        rows = [contraction("direct_64x64", 200, chosen=True), peak, slower]
        (case,) = contraction_report.contraction_cases(rows)
        self.assertEqual(case.limit_ns, 160)
        page = self.page(*rows)
        self.assertIn("| CCSD(T) | float32 | 1 | 1 | 500 | 0.80 | 0.80 | 0.80 | 0 |  |", page)
        self.assertIn("Those speeds: float32 625 GFLOP/s.", page)
        self.assertIn("| CCSD(T) | float32 | cublas | 1 | 1.00 | 1.00 | 1.00 | 0 |", page)

    def test_peers_are_compared_by_class_and_in_the_worst_cases(self) -> None:
        second = {"id": 2, "class": "ccsd_t"}
        page = self.page(
            contraction("direct_64x64", 200, chosen=True),
            contraction("direct_256x16", 125),
            contraction("direct_64x64", 400, chosen=True, **second),
            contraction_peer("torch", 800),
            contraction_peer("torch", 200, id=2),
            contraction_peer("cutensor", 100),
            contraction_peer("cublas", 50),
        )
        self.assertIn("| CCSD(T) | float32 | torch | 2 | 2.25 | 0.50 | 1.41 | 1 |", page)
        self.assertIn("| CCSD(T) | float32 | cutensor | 1 | 0.50 | 0.50 | 0.50 | 1 |", page)
        self.assertIn("| CCSD(T) | float32 | 2 | 0 | 375 | 0.38 | 0.25 | 0.35 | 1 | 0.80 |", page)
        worst = page[page.index("Worst cases:") :]
        self.assertLess(worst.index("| tccg48 2 float32 |"), worst.index("| tccg48 1 float32 |"))
        self.assertIn("| memory | direct_64x64 | 500 | 0.50 | direct_256x16 0.80 | cutensor 0.50 |", worst)

    def test_the_page_says_what_was_left_out(self) -> None:
        page = self.page(
            contraction("direct_64x64", 200, chosen=True),
            {"part": "contraction", "forced_cases": 3, "forced_left_out": 4},
        )
        self.assertIn("Never timed, as their models predict far too long: cuda.contract.reference (1 cases).", page)
        self.assertIn("The other kernels ran in 3 cases; for 4 no time was left.", page)
        self.assertIn("Checked: 10 rows of results; the worst error is 0.25 of what is allowed.", page)

    def test_wrong_rows_head_the_page(self) -> None:
        # What is not a number has no error that could be printed.
        page = self.page(contraction("direct_64x64", 200, chosen=True, wrong_sums=3, worst_error=None))
        self.assertLess(page.index("WRONG RESULTS"), page.index("## Contraction"))
        self.assertIn("| cuda.contract.direct_64x64 | 3 of 10 rows of d |", page)

    def test_classes_come_in_the_order_of_the_suite(self) -> None:
        names = ["random", "ttm", "ccsd_t", "ccsd", "ao2mo"]
        rows = [contraction("direct_64x64", 200, chosen=True, id=i, **{"class": n}) for i, n in enumerate(names)]
        found = contraction_report.by_class(contraction_report.contraction_cases(rows))
        self.assertEqual([name for name, _, _ in found], ["TTM", "AO2MO", "CCSD", "CCSD(T)", "random"])


class OverheadTest(unittest.TestCase):
    def test_what_a_graph_saves_is_a_column(self) -> None:
        facts = {"part": "overhead", "case": "dot", "kernel": "cuda.contract.gemm", "chosen": True}
        times = {"host_ns": 1500.0, "stream_ns": 3250.0, "graph_ns": 2000.0}
        rows = [{**facts, **times}, {**facts, "chosen": False, "host_ns": 1.0, "stream_ns": 2.0}]
        page = report.page({"date": "today"}, [], rows, [])
        self.assertIn("| dot | gemm | yes | 1.50 | 3.25 | 2.00 | 1.25 |", page)
        self.assertIn("| dot | gemm |  | 0.00 | 0.00 |  |  |", page)

    def test_the_ways_of_a_program_are_one_line(self) -> None:
        facts = {"part": "program", "shape": "chain", "extent": 8, "statements": 20}
        rows = [{**facts, "way": "calls", "ns": 4e6}]
        rows += [{**facts, "way": "prepared", "ns": 5e5, "executed_ns": 8e4, "replayed": True}]
        page = report.page({"date": "today"}, [], rows, [])
        self.assertIn("| chain | 8 |  | 4000.00 |  |  | 500.00 | 80.00 | yes |", page)


class PlotsTest(unittest.TestCase):
    def test_operations_have_a_panel_a_type_and_a_curve_a_peer(self) -> None:
        rows = raw.load(RECORDED)
        for part, name in (("elementwise", "a+c"), ("reduction", "sum of all")):
            rows += [operation_peer(part, name, peer, 500.0) for peer in ("torch", "cupy", "cutensor")]
        elementwise, reduction = (raw.cases(rows, part) for part in ("elementwise", "reduction"))
        (drawn,) = plots.operation_plots(elementwise, reduction).values()
        ElementTree.fromstring(drawn)
        self.assertNotIn("nan", drawn)
        types = [{case.facts["type"] for case in cases} for cases in (elementwise, reduction)]
        self.assertEqual(drawn.count("<g "), sum(map(len, types)))
        for peer in ("torch", "cupy", "cutensor"):
            self.assertEqual(drawn.count(f">{peer}<"), 2)
        self.assertEqual(plots.operation_plots([], []), {})

    def test_contractions_have_two_panels_a_type(self) -> None:
        cases = contraction_report.contraction_cases(raw.load(RECORDED))
        (drawn,) = plots.contraction_plots(cases).values()
        ElementTree.fromstring(drawn)
        self.assertNotIn("nan", drawn)
        self.assertEqual(drawn.count("<g "), 2 * len({case.facts["type"] for case in cases}))
        self.assertEqual(drawn.count("<circle "), len(cases))
        self.assertIn("CCSD(T)", drawn)

    def test_no_contraction_is_drawn_of_none(self) -> None:
        self.assertEqual(plots.contraction_plots([]), {})

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


class SuitesTest(unittest.TestCase):
    def test_a_contraction_is_the_same_whichever_mode_is_fastest(self) -> None:
        extents = {"float32": {"a": 2, "b": 3, "c": 4, "k": 5}}
        case = contractions.ContractionCase("none", 1, "none", "acb", "kac", "bk", extents)
        self.assertEqual(case.einsum, "cak,kb->bca")
        self.assertEqual(case.shape(case.a, "float32"), [4, 2, 5])
        self.assertEqual(case.matrix("float32"), (8, 3, 5))
        self.assertEqual(case.bytes("float32"), 4 * (24 + 40 + 15))

    def test_every_contraction_is_as_its_file_says(self) -> None:
        cases = contractions.contractions(DATA)
        self.assertEqual({case.suite for case in cases}, set(contractions.FILES))
        self.assertEqual(sum(case.suite == "tccg48" for case in cases), 48)
        for case in cases:
            for type_name in contractions.COLUMNS:
                m, n, k = case.matrix(type_name)
                self.assertEqual(m * n * k, math.prod(case.extents[type_name].values()))

    def test_the_random_contractions_are_those_that_the_script_draws(self) -> None:
        spec = importlib.util.spec_from_file_location("draw", DATA / "random_contractions.py")
        draw = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(draw)
        self.assertEqual(draw.text(), (DATA / "random_contractions.csv").read_text())

    def test_random_contractions_follow_the_rules_of_their_paper(self) -> None:
        for case in contractions.read(DATA, "random"):
            with self.subTest(id=case.id):
                tensors = (case.d, case.a, case.b)
                self.assertLessEqual(max(map(len, tensors)), 8)
                for type_name, most in (("float32", 150_000_000), ("float64", 75_000_000)):
                    extents = case.extents[type_name]
                    largest = max(case.elements(labels, type_name) for labels in tensors)
                    self.assertLessEqual(largest, most)
                    self.assertGreater(largest, 0.6 * most)
                    for labels in (case.a, case.b):
                        self.assertLessEqual(max([extents[label] for label in labels[4:]], default=0), 8)


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
                "gpu: SKIPPED: 0 of 13 parts ran, nothing was tested or measured",
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

    def test_wrong_contractions_fail_the_run(self) -> None:
        rows = {
            "device": next(row for row in raw.load(RECORDED) if row["part"] == "device"),
            "contraction": contraction("direct_64x64", 200, chosen=True, wrong_sums=1),
        }
        self.program(
            "gpu_bench",
            f"""
            import json, sys
            print(json.dumps({rows!r}[sys.argv[1]]))
            """,
        )
        done = self.run_it("--only=contraction")
        self.assertEqual(done.stdout.splitlines()[-1], "gpu: FAILED: contraction (1 wrong results)")
        self.assertTrue((self.pack / "out" / "contraction-roof.svg").exists())

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

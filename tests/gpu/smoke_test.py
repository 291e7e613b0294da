#!/usr/bin/env python3
"""Runs the GPU benchmarks on the simulated node, with tiny problems: what they print there they print on a GPU.

    smoke_test.py [--bench GPU_BENCH GPU_MODEL_FIT] [--server GPU_SERVER_BENCH TENSORD] [--record FILE]

Times mean nothing here and are not looked at. --record keeps the rows, for report_test.py.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from harness import contractions, operations, parts, raw, suites  # noqa: E402

DATA = HERE.parent / "benchmarks" / "data"
PERMUTATION_KERNELS = {
    f"cuda.permute.{name}" for name in ("trivial", "tiled", "tiled_copy", "runs", "packed", "packed_split", "reference")
}
bench_programs: list[str] = []
server_programs: list[str] = []
recorded: list[dict] = []


def rows_of(*command: str) -> list[dict]:
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(command)} gave {done.returncode}: {done.stderr}")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    recorded.extend(rows)
    return rows


def bench(part: str, *options: str) -> list[dict]:
    return rows_of(bench_programs[0], part, f"--data={DATA}", "--tiny", *options)


class GpuBenchTest(unittest.TestCase):
    def check_kernels(self, part: str) -> list[dict]:
        """Each case has one chosen kernel, no wrong result and, but for a single sum, the reference kernel."""
        rows = bench(part)
        done, left_out = raw.counts(rows)
        self.assertGreater(done, 0)
        self.assertEqual(left_out, 0)
        cases = raw.cases(rows, part)
        self.assertEqual(len(cases), done)
        for case in cases:
            with self.subTest(case=raw.case_key(case.facts)):
                self.assertEqual(sum(run["chosen"] for run in case.runs.values()), 1)
                has_reference = any(name.endswith(".reference") for name in case.runs)
                self.assertEqual(has_reference, case.facts.get("case") != "sum of all")
                self.assertTrue(all(run["ns"] >= 1 for run in case.runs.values()))
        self.assertEqual(list(raw.wrong_results(rows)), [])
        return rows

    def test_permutations_agree_by_every_kernel_in_every_suite(self) -> None:
        rows = self.check_kernels("permutation")
        ran = {row["kernel"] for row in rows if "ns" in row}
        self.assertEqual(ran, PERMUTATION_KERNELS)
        cases = raw.cases(rows, "permutation")
        self.assertEqual({case.facts["suite"] for case in cases}, {case.suite for case in suites.permutations(DATA)})
        self.assertEqual({case.facts["type"] for case in cases}, set(suites.TYPES))

    def test_peers_meet_the_cases_in_the_same_order(self) -> None:
        found = list(
            dict.fromkeys(
                (case.facts["suite"], case.facts["id"]) for case in raw.cases(bench("permutation"), "permutation")
            )
        )
        order = [(case.suite, case.id) for case in suites.permutations(DATA)]
        self.assertEqual(found, [case for case in order if case in set(found)])

    def test_elementwise_kernels_agree(self) -> None:
        self.check_kernels("elementwise")

    def test_reduction_kernels_agree(self) -> None:
        self.check_kernels("reduction")

    def test_peers_meet_the_operations_in_the_same_order(self) -> None:
        for part, cases in (("elementwise", operations.ELEMENTWISE), ("reduction", operations.REDUCTION)):
            with self.subTest(part):
                found = [(case.facts["type"], case.facts["case"]) for case in raw.cases(bench(part), part)]
                order = [(type_name, case.name) for type_name in operations.TYPES for case in cases]
                self.assertEqual(found, order)

    def test_contractions_are_right_by_the_chosen_kernel_and_by_others(self) -> None:
        rows = bench("contraction")
        done, left_out = raw.counts(rows)
        self.assertEqual(left_out, 0)
        cases = raw.cases(rows, "contraction")
        self.assertEqual(len(cases), done)
        self.assertEqual({case.facts["class"] for case in cases}, {"ttm", "ao2mo", "ccsd", "ccsd_t", "random"})
        self.assertEqual({case.facts["type"] for case in cases}, {*contractions.COLUMNS, contractions.IN_PARTS})
        for case in cases:
            with self.subTest(case=raw.case_key(case.facts)):
                self.assertEqual(sum(run["chosen"] for run in case.runs.values()), 1)
                self.assertNotIn("cuda.contract.reference", case.runs)
                self.assertIn("cuda.contract.reference", case.chosen["left_out"].split())
                self.assertTrue(all(run["sums"] > 0 and run["worst_error"] <= 1 for run in case.runs.values()))
        self.assertEqual(list(raw.wrong_results(rows)), [])
        self.assertGreater(max(len(case.runs) for case in cases), 1)
        (forced,) = (row for row in rows if "forced_cases" in row)
        self.assertEqual((forced["forced_cases"], forced["forced_left_out"]), (done, 0))

    def test_peers_meet_the_contractions_in_the_same_order(self) -> None:
        found = list(dict.fromkeys((row["suite"], row["id"]) for row in bench("contraction") if "planning_ns" in row))
        order = [(case.suite, case.id) for case in contractions.contractions(DATA)]
        self.assertEqual(found, [case for case in order if case in set(found)])

    def test_model_gives_what_the_cost_models_want(self) -> None:
        rows = bench("model")
        wanted = {row["paste"] for row in rows if "paste" in row}
        self.assertEqual(
            wanted,
            {
                "GpuModel::clock_ghz",
                "GpuModel::launch_ns",
                "GpuModel::copy_bytes_per_ns()",
                "CycleParameters::base_latency",
                "CycleParameters::departure",
                "CycleParameters::shared_latency",
            },
        )

    def test_memory_compares_sources(self) -> None:
        rows = bench("memory")
        for test in ("latency", "replay"):
            self.assertEqual({row["source"] for row in rows if row.get("test") == test}, {"tensord pool", "cudaMalloc"})
        self.assertIn("skipped", next(row for row in rows if row.get("source") == "cudaMallocAsync"))

    def test_device_is_described(self) -> None:
        (row,) = bench("device")
        self.assertEqual(row["architecture"], "sm_90")

    def test_nothing_starts_when_the_time_is_up(self) -> None:
        for part in ("reduction", "contraction"):
            with self.subTest(part=part):
                rows = rows_of(bench_programs[0], part, f"--data={DATA}", "--tiny", "--seconds=0")
                self.assertEqual(raw.cases(rows, part), [])
                done, left_out = raw.counts(rows)
                self.assertEqual(done, 0)
                self.assertGreater(left_out, 0)

    def test_an_unknown_part_is_refused(self) -> None:
        self.assertEqual(subprocess.run([bench_programs[0], "nothing"], capture_output=True).returncode, 1)

    def test_a_fit_begins_with_the_planners_choices_and_loses_no_more(self) -> None:
        rows = bench("device") + bench("permutation")
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
            file.flush()
            before, after = rows_of(bench_programs[1], file.name)
        cases = raw.cases(rows, "permutation")
        self.assertEqual(before["cases"], len(cases))
        self.assertEqual(before["missed"], sum(case.chosen["ns"] > 1.05 * case.best["ns"] for case in cases))
        self.assertGreaterEqual(after["lost"], 0)
        self.assertLessEqual(after["lost"], before["lost"])
        self.assertRegex(after["paste"], r"^\{[0-9.e+]+(, [0-9.e+]+){3}\}$")

    def test_overheads_are_of_every_kernel_that_can(self) -> None:
        rows = bench("overhead")
        cases = {row["case"] for row in rows if "case" in row}
        self.assertEqual(cases, {"matrices", "transposed", "scattered", "dot"})
        for case in cases:
            kernels = [row for row in rows if row.get("case") == case]
            self.assertEqual(sum(row["chosen"] for row in kernels), 1)
            for row in kernels:
                self.assertGreater(min(row["host_ns"], row["stream_ns"]), 0)
        self.assertTrue(any("graph_ns" in row for row in rows))


class ServerBenchTest(unittest.TestCase):
    def test_example_runs_through_a_server(self) -> None:
        pack = pathlib.Path(server_programs[1]).parent.parent
        with tempfile.TemporaryDirectory() as out:
            with parts.Bench(pack, HERE.parent.parent / "client" / "data", pathlib.Path(out)) as bench:
                outcome = parts.example(bench, 60, device="cpu")
                self.assertEqual(outcome.outcome, "passed", outcome.note)
                self.assertRegex(outcome.note, r"^difference .* hartree$")
                self.assertGreater(len(raw.of_part(bench.rows, "example")), 10)

    def test_transfers_go_through_a_server(self) -> None:
        rows = rows_of(server_programs[0], "transfer", f"--server={server_programs[1]}", "--device=cpu:0", "--tiny")
        paths = {(row["direction"], row["path"]) for row in rows if "direction" in row}
        self.assertEqual(
            paths, {(way, path) for way in ("upload", "download") for path in ("server", "shared", "pinned", "pageable")}
        )

    def test_programs_compute_what_calls_do(self) -> None:
        rows = rows_of(server_programs[0], "program", f"--server={server_programs[1]}", "--device=cpu:0", "--tiny")
        ways = {(row["shape"], row["way"]) for row in rows if "way" in row}
        wanted = {"one call", "calls", "pipeline", "program", "prepared"}
        self.assertEqual(ways, {(shape, way) for shape in ("chain", "beside") for way in wanted})
        self.assertEqual({row["way"] for row in rows if "replayed" in row}, {"program", "prepared"})


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--bench", nargs=2, default=[])
    parser.add_argument("--server", nargs=2, default=[])
    parser.add_argument("--record", type=pathlib.Path)
    arguments = parser.parse_args()
    bench_programs.extend(arguments.bench)
    server_programs.extend(arguments.server)
    chosen = [case for case, given in ((GpuBenchTest, bench_programs), (ServerBenchTest, server_programs)) if given]
    tests = unittest.TestSuite(unittest.defaultTestLoader.loadTestsFromTestCase(case) for case in chosen)
    result = unittest.TextTestRunner(verbosity=1).run(tests)
    if arguments.record:
        arguments.record.write_text("".join(json.dumps(row) + "\n" for row in recorded))
    return 0 if result.testsRun and result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())

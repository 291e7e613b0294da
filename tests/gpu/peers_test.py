#!/usr/bin/env python3
"""Tests of the peers and of what drives cuTENSOR, on fakes: a GPU comes too seldom to find mistakes there."""

import contextlib
import ctypes
import dataclasses
import io
import json
import pathlib
import subprocess
import sys
import time
import unittest
from unittest import mock

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from fake_peers import ARITHMETIC, STREAM, WORKSPACE_BYTES, FakeCutensor, FakeDevice, Tensor, framework  # noqa: E402
from harness import cutensor, operation_peers, operations, suites  # noqa: E402

EXTENTS = {"i": 3, "j": 4, "k": 2}


def small(cases: list[operations.OperationCase]) -> list[operations.OperationCase]:
    return [dataclasses.replace(case, extents={label: EXTENTS[label] for label in case.extents}) for case in cases]


def arithmetic(_: cutensor.Cutensor, name: str) -> ctypes.c_void_p:
    """What in_dll() finds in a library."""
    names = {"float32": "CUTENSOR_COMPUTE_DESC_32F", "float64": "CUTENSOR_COMPUTE_DESC_64F"}
    return ctypes.c_void_p(next(number for number, kind in ARITHMETIC.items() if names[kind] == name))


class FakeCutensorTest(unittest.TestCase):
    def setUp(self) -> None:
        self.fake = FakeCutensor()
        for patch in (
            mock.patch.object(ctypes, "CDLL", return_value=self.fake.library()),
            mock.patch.object(cutensor.Cutensor, "arithmetic", arithmetic),
        ):
            patch.start()
            self.addCleanup(patch.stop)
        self.cutensor = cutensor.Cutensor("fake")


class CutensorTest(FakeCutensorTest):
    def test_strides_of_the_first_mode_are_one(self) -> None:
        self.assertEqual(cutensor.packed_strides([5, 7, 2]), [1, 5, 35])

    def test_a_version_has_three_parts(self) -> None:
        self.assertEqual(self.cutensor.version, "2.3.0")

    def test_a_plan_ends_the_one_before_it(self) -> None:
        extents = {"i": 2, "j": 3, "k": 4}
        made = []
        for _ in range(2):
            self.cutensor.permutation([2, 3], [1, 0], "float32")
            made.append(len(self.fake.alive))
            self.cutensor.elementwise(("ji", "ij", "ij"), extents, "float32", "relu")
            self.cutensor.elementwise(("ij", "ij", "ij", "ij"), extents, "float64", "tanh")
            self.cutensor.reduction(("ijk", "j"), extents, "float16", "max")
            self.cutensor.contraction(("ik", "kj", "ij"), extents, "float32")
            made.append(len(self.fake.alive))
        self.assertEqual(made[:2], made[2:])
        self.cutensor.close()
        self.assertEqual(self.fake.alive, {})

    def test_what_a_plan_would_have_been_made_of_is_destroyed(self) -> None:
        self.fake.refused = "cutensorCreatePlan"
        for _ in range(2):
            with self.assertRaisesRegex(cutensor.CutensorError, "^cutensorCreatePlan returned 15: status 15$"):
                self.cutensor.reduction(("ij", "j"), {"i": 2, "j": 3}, "float32", "sum")
        self.cutensor.close()
        self.assertEqual(self.fake.alive, {})

    def test_a_permutation_moves_each_element_to_its_place(self) -> None:
        a = Tensor([6], "float32", [1, 2, 3, 4, 5, 6])
        d = Tensor([6], "float32")
        self.cutensor.permutation([2, 3], [1, 0], "float32").run(a.data_ptr(), d.data_ptr(), STREAM)
        self.assertEqual(d.list(), [1, 3, 5, 2, 4, 6])

    def test_a_contraction_is_a_product_of_matrices(self) -> None:
        a, b, d = (Tensor([4], "float64", values) for values in ([1, 2, 3, 4], [5, 6, 7, 8], None))
        workspace = Tensor([WORKSPACE_BYTES], "uint8")
        plan = self.cutensor.contraction(("ik", "kj", "ij"), {"i": 2, "j": 2, "k": 2}, "float64")
        plan.run(a.data_ptr(), b.data_ptr(), d.data_ptr(), workspace.data_ptr(), STREAM)
        self.assertEqual(d.list(), [1 * 5 + 3 * 6, 2 * 5 + 4 * 6, 1 * 7 + 3 * 8, 2 * 7 + 4 * 8])


class OperationsTest(FakeCutensorTest):
    def run_operations(self, end: float = float("inf")) -> tuple[list[dict], int]:
        """Rows, and how many cases were left out."""
        cases = {part: small(of_part) for part, of_part in operation_peers.CASES.items()}
        text = io.StringIO()
        with contextlib.redirect_stdout(text), mock.patch.object(operation_peers, "CASES", cases):
            done, left_out = operation_peers.run_operations(FakeDevice(), framework(), self.cutensor, end)
        rows = [json.loads(line) for line in text.getvalue().splitlines()]
        self.assertEqual(done, len(rows))
        return rows, left_out

    def test_peers_agree_on_every_case(self) -> None:
        rows, left_out = self.run_operations()
        self.assertEqual(left_out, 0)
        wanted = {
            (part, case.name, type_name, peer)
            for part, cases in operation_peers.CASES.items()
            for case in cases
            for type_name in operations.TYPES
            for peer in ("torch", "cupy", "cutensor")
        }
        self.assertEqual({(row["of_part"], row["case"], row["type"], row["peer"]) for row in rows}, wanted)
        self.assertEqual([row for row in rows if "ns" not in row], [])
        self.cutensor.close()
        self.assertEqual(self.fake.alive, {})

    def test_a_result_that_is_another_one_has_no_time(self) -> None:
        for table, name, other, cases in (
            (cutensor.UNARY, "tanh", "relu", {"tanh(a)+c"}),
            (cutensor.BINARY, "max", "sum", {"max over the fastest", "max over the slowest"}),
        ):
            with self.subTest(name), mock.patch.dict(table, {name: table[other]}):
                wrong = [row for row in self.run_operations()[0] if "ns" not in row]
                self.assertEqual({row["case"] for row in wrong}, cases)
                self.assertEqual({row["peer"] for row in wrong}, {"cutensor"})
                self.assertEqual({row["refused"] for row in wrong}, {"its result is another one"})

    def test_what_a_peer_refuses_has_its_reason_and_the_others_go_on(self) -> None:
        self.fake.refused = "cutensorCreateElementwiseTrinary"
        rows, _ = self.run_operations()
        refused = [row for row in rows if "refused" in row]
        self.assertEqual({(row["peer"], row["case"]) for row in refused}, {("cutensor", "a+b+c")})
        reason = "CutensorError: cutensorCreateElementwiseTrinary returned 15: status 15"
        self.assertEqual([row["refused"] for row in refused], [reason] * len(operations.TYPES))
        self.assertEqual(len([row for row in rows if "ns" in row]) + len(refused), len(rows))

    def test_nothing_starts_when_the_time_is_up(self) -> None:
        rows, left_out = self.run_operations(time.monotonic())
        self.assertEqual(rows, [])
        self.assertEqual(left_out, 3 * 3 * len([*operations.ELEMENTWISE, *operations.REDUCTION]))

    def test_axes_count_from_the_slowest_mode(self) -> None:
        self.assertEqual(operations.ReductionCase("", "jk").axes, (2,))
        self.assertEqual(operations.ReductionCase("", "j").axes, (0, 2))
        self.assertEqual(operations.ReductionCase("", "").axes, (0, 1, 2))

    def test_a_mode_that_is_not_there_moves_nothing(self) -> None:
        extents = {"i": 10, "j": 100}
        case = operations.ElementwiseCase("", inputs=("i", "ij"), extents=extents)
        self.assertEqual(case.bytes("float16"), 2 * (10 + 1000 + 1000))
        self.assertEqual(operations.ReductionCase("", "j", ("ij",), extents).bytes("float64"), 8 * (1000 + 100))


class PeersTest(unittest.TestCase):
    def test_a_permutation_is_the_same_whichever_mode_is_fastest(self) -> None:
        case = suites.PermutationCase("none", 1, [2, 3, 4], [2, 0, 1])
        shape, axes = case.last_mode_fastest()
        self.assertEqual((shape, axes), ([4, 3, 2], [1, 2, 0]))
        d_extents = [case.extents[p] for p in case.perm]
        self.assertEqual([shape[axis] for axis in axes], d_extents[::-1])

    def test_peers_that_are_not_there_are_named(self) -> None:
        done = subprocess.run(
            [sys.executable, "-S", "-E", HERE / "harness" / "peers.py", "--data=."], capture_output=True, text=True
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(
            [json.loads(line)["peer"] for line in done.stdout.splitlines() if "skipped" in line],
            ["torch", "cupy", "cutensor"],
        )


if __name__ == "__main__":
    unittest.main()

"""What the examples call of a session, on NumPy: to compare the server with.

Programs go to opt_einsum, product by product, and Einstein sums to cotengra. Of the
notation there is what the examples write: statements with `:=`, `=`, `+=` and `-=`,
sums, products, groups, conj(), numbers and scalars as factors and divisors. NCON,
imaginary numbers and most that finds mistakes are left out.

    pip install numpy opt_einsum cotengra
"""

import functools
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
import cotengra
import numpy as np
import opt_einsum

TOKEN = re.compile(r"[^\W\d]\w*'*|\d+\.?\d*(?:[eE][+-]?\d+)?|[:+-]=|\S")
SEARCH = {"max_time": 10, "max_repeats": 16}  # seconds, trees

Tensors = dict[str, np.ndarray]
Value = Callable[[Tensors], np.ndarray]  # of an expression, given the tensors
Labels = Sequence[str]


class Session:
    """Stands in for tensord.Session."""

    def upload(self, array: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(array)

    def program(self, text: str, *, outputs: Sequence[str], **examples) -> "Program":
        return Program(text, outputs)

    def run(
        self, text: str, *, outputs: Sequence[str], **tensors
    ) -> Tensors | np.ndarray:
        results = Program(text, outputs)(**tensors)
        return results if len(outputs) > 1 else results[outputs[0]]

    def einsum(self, subscripts: str, *operands, memory_limit: int) -> np.ndarray:
        sys.setrecursionlimit(20_000)  # cotengra descends into trees that are lists.
        size = memory_limit // operands[0].itemsize // 2  # Two are alive at a time.
        begun = time.perf_counter()
        # What it finds without its optional libraries: by halves, then piece by piece.
        optimizer = cotengra.HyperOptimizer(
            methods=["labels"], reconf_opts={}, parallel=False, **SEARCH
        )
        shapes = map(np.shape, operands)
        tree = cotengra.einsum_tree(subscripts, *shapes, optimize=optimizer)
        tree.slice_and_reconfigure_(target_size=size)
        took = time.perf_counter() - begun
        cost = f"{tree.total_flops():.1e} products in {tree.nslices} slices"
        print(f"cotengra: {cost}, searched for in {took:.1f} s")
        return tree.contract(operands)


class Program:
    """A program that is read once and run often.

    Args:
        text: Statements in index notation.
        outputs: Names of the tensors that a run returns.
    """

    def __init__(self, text: str, outputs: Sequence[str]):
        text = re.sub(r"#.*", "", text)
        text = re.sub(r"([-+*/=,(\[])\s*\n", r"\1", text)  # Such a line goes on.
        lines = filter(str.strip, re.split("[;\n]", text))
        self._statements = [Statement(line) for line in lines]
        self._outputs = outputs

    def __call__(self, **tensors: np.ndarray) -> Tensors:
        for statement in self._statements:
            statement.run(tensors)
        return {name: tensors[name] for name in self._outputs}


class Statement:
    """A statement, which reads itself token by token."""

    def __init__(self, text: str):
        self._tokens = ["", *reversed(TOKEN.findall(text))]  # the next one last
        self._name, self._labels = self._next(), self._read_labels()
        self._assignment = self._next()
        self._value, _ = self._read_sum(self._labels)
        if rest := self._next():
            raise ValueError(f"{rest!r} is not expected in {text.strip()!r}")

    def run(self, tensors: Tensors) -> None:
        value = self._value(tensors)
        if self._assignment == "+=":
            value = tensors[self._name] + value
        elif self._assignment == "-=":
            value = tensors[self._name] - value
        tensors[self._name] = value

    def _next(self) -> str:
        return self._tokens.pop()

    def _next_if(self, *choices: str) -> str:
        return self._next() if self._tokens[-1] in choices else ""

    def _read_labels(self) -> Labels:
        labels = []
        if self._next_if("["):
            while (token := self._next()) != "]":
                labels += [token] if token != "," else []
        return labels

    def _read_sum(self, labels: Labels | None = None) -> tuple[Value, Labels]:
        terms, sign = [], self._next_if("+", "-") or "+"
        while sign:
            term, labels = self._read_term(sign, labels)
            terms.append(term)
            sign = self._next_if("+", "-")
        return lambda t: functools.reduce(np.add, (term(t) for term in terms)), labels

    def _read_term(self, sign: str, labels: Labels | None) -> tuple[Value, Labels]:
        """A product with these modes, or with all that are not summed."""
        scalars, factors, inputs, operator = [], [], [], "*"
        while operator:
            value, of_value = self._read_factor()
            if of_value:
                factors.append(value)
                inputs.append(of_value)
            else:
                scalars.append((operator, value))
            operator = self._next_if("*", "/")
        counts = Counter(label for of_value in inputs for label in of_value)
        if labels is None:
            labels = [x for x, n in counts.items() if n == 1 or x in self._labels]
        letters = {label: opt_einsum.get_symbol(k) for k, label in enumerate(counts)}
        *terms, output = ("".join(map(letters.get, x)) for x in (*inputs, labels))
        subscripts = f"{','.join(terms)}->{output}"

        def evaluate(tensors: Tensors) -> np.ndarray:
            scale = -1.0 if sign == "-" else 1.0
            for operator, value in scalars:
                factor = value(tensors)
                scale = scale * factor if operator == "*" else scale / factor
            if not factors:
                return np.asarray(scale)
            product = contract(subscripts, *(value(tensors) for value in factors))
            return product if scale == 1 else scale * product

        return evaluate, labels

    def _read_factor(self) -> tuple[Value, Labels]:
        token = self._next()
        is_conjugated = token == "conj" and bool(self._next_if("("))
        if is_conjugated or token == "(":
            value, labels = self._read_sum()
            if self._next() != ")":
                raise ValueError("there is no ) to a (")
            return (lambda t: value(t).conj()) if is_conjugated else value, labels
        if token[:1].isdigit():
            return lambda tensors: float(token), []
        return lambda tensors: tensors[token], self._read_labels()


def contract(subscripts: str, *operands: np.ndarray) -> np.ndarray:
    return expression(subscripts, *map(np.shape, operands))(*operands)


@functools.cache
def expression(subscripts: str, *shapes: tuple[int, ...]) -> Callable:
    """A product with its path, which is searched for once."""
    return opt_einsum.contract_expression(subscripts, *shapes)

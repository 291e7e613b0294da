"""Writes numpy_einsum.tsv: what numpy.einsum makes of subscripts, accepted and refused.

    python numpy_einsum.py > numpy_einsum.tsv

Each label, and each mode of an ellipsis, has an extent of its own, so that the shape of the
result tells which modes it has, in which order.
"""

import random

import numpy as np

LETTERS = "abcXYZ"
EXTENTS = dict(zip(LETTERS, (2, 3, 5, 7, 11, 13), strict=True))
ELLIPSIS = (17, 19, 23)
ROWS = 600

# Cases worth having by name.
CHOSEN = [
    ("...a->a", [(17, 2)]),
    ("...a->a", [(2,)]),
    ("a->...a", [(2,)]),
    ("...a...", [(17, 2)]),
    ("a->->a", [(2,)]),
    ("a- >a", [(2,)]),
    ("a - > a", [(2,)]),
    ("a -> a", [(2,)]),
    (" a , b ", [(2,), (3,)]),
    (". ..a", [(17, 2)]),
    ("..a", [(17, 2)]),
    ("....a", [(17, 2)]),
    ("... ...", [(17, 19)]),
    ("a->....", [(2,)]),
    ("a->..", [(2,)]),
    ("a->...a...", [(2,)]),
    ("", [()]),
    (" ", [()]),
    (",", [(), ()]),
    ("->", [()]),
    ("->", [(2,)]),
    ("->a", [(2,)]),
    ("a->aa", [(2,)]),
    ("a->b", [(2,)]),
    ("a->a,a", [(2,)]),
    ("a->a,", [(2,)]),
    ("a,b", [(2,)]),
    ("a", [(2,), (2,)]),
    ("ab", [(2,)]),
    ("a", [(2, 3)]),
    ("aa->a", [(2, 2)]),
    ("a,a,a->", [(2,), (2,), (2,)]),
    ("a,a,a->a", [(2,), (2,), (2,)]),
    ("bX", [(3, 7)]),
    ("Xb", [(7, 3)]),
    ("c...a,b", [(5, 17, 2), (3,)]),
    ("...a,...a", [(17, 19, 2), (19, 2)]),
    ("...aa->...a", [(17, 2, 2)]),
    ("a1", [(2, 3)]),
    ("a_", [(2, 3)]),
    ("a\\t->a", [(2,)]),
    ("a\\n", [(2,)]),
    ("a>", [(2,)]),
    ("a-", [(2,)]),
    ("a->>a", [(2,)]),
    ("a-->a", [(2,)]),
    (">-a", [(2,)]),
]


def random_row(rng):
    """Subscripts that are nearly right, and shapes of operands for them."""
    longest = rng.choice((0, 0, 1, 2, 3))
    inputs, shapes = [], []
    for _ in range(rng.randint(1, 3)):
        labels = [
            rng.choice(LETTERS[: rng.randint(1, 6)]) for _ in range(rng.randint(0, 3))
        ]
        shape = [EXTENTS[label] for label in labels]
        if longest and rng.random() < 0.7:
            count = rng.randint(0, longest)
            at = rng.randint(0, len(labels))
            labels.insert(at, "...")
            shape[at:at] = ELLIPSIS[longest - count : longest]
        if rng.random() < 0.05:
            shape = shape[:-1] if "..." not in labels else shape[:1] * (len(labels) - 2)
        inputs.append("".join(labels))
        shapes.append(tuple(shape))
    if rng.random() < 0.04:
        shapes.append(())
    subscripts = ",".join(inputs)
    if rng.random() < 0.6:
        letters = sorted(set(subscripts) & set(LETTERS))
        output = rng.sample(letters, rng.randint(0, len(letters)))
        if "..." in subscripts and rng.random() < 0.9:
            output.insert(rng.randint(0, len(output)), "...")
        if rng.random() < 0.06:
            output.append(rng.choice(LETTERS))
        subscripts += "->" + "".join(output)
    if rng.random() < 0.1:
        at = rng.randint(0, len(subscripts))
        subscripts = (
            subscripts[:at]
            + rng.choice((" ", ".", "-", "->", ",", "1"))
            + subscripts[at:]
        )
    return subscripts, shapes


def shown(shape):
    return "x".join(str(extent) for extent in shape) or "scalar"


def main():
    rng = random.Random(20240611)
    rows = {(text, tuple(shapes)): None for text, shapes in CHOSEN}
    while len(rows) < ROWS:
        text, shapes = random_row(rng)
        rows[text, tuple(shapes)] = None
    print(f"# Made by numpy_einsum.py with NumPy {np.__version__}.")
    print("# subscripts, shapes of the operands, shape of the result")
    for text, shapes in rows:
        operands = [np.ones(shape, np.int8) for shape in shapes]
        try:
            subscripts = text.replace("\\t", "\t").replace("\\n", "\n")
            result = shown(np.einsum(subscripts, *operands).shape)
        except ValueError:
            result = "refused"
        print(text, " ".join(shown(shape) for shape in shapes), result, sep="\t")


if __name__ == "__main__":
    main()

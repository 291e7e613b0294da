"""Orders of contraction by symbolic costs, as TensorOperations has them."""

from __future__ import annotations

import numpy as np
import pytest

import tensord

TEXT = "D[a,b,c] := A[a,e,f,c]*B[g,d,e]*C[g,f,b,d]"
SUBSCRIPTS = "aefc,gde,gfbd->abc"
EXPECTED = {
    "": ((1, 2), "2*χ^5"),
    "(a,b,c,e)": ((0, 1), "2*χ^3"),
    "!(a,b,c,e)": ((1, 2), "χ^3 + χ"),
    "a=>χ, b=>χ^2, c=>2*χ, e=>5": ((0, 1), "2*χ^4 + 10*χ^2"),
}


@pytest.fixture
def arrays(rng: np.random.Generator) -> dict[str, np.ndarray]:
    return {
        "A": rng.random((2, 3, 3, 2)),
        "B": rng.random((3, 3, 3)),
        "C": rng.random((3, 3, 2, 3)),
    }


@pytest.mark.parametrize("costs", EXPECTED)
def test_costs_decide_the_order(session, arrays, costs):
    expected = np.einsum(SUBSCRIPTS, *arrays.values())
    pair, cost = EXPECTED[costs]
    explanations = [
        session.explain.run(TEXT, arrays, costs=costs),
        session.explain.einsum(SUBSCRIPTS, *arrays.values(), costs=costs),
        session.program(TEXT, arrays, costs=costs).describe().explanation,
        session.program(SUBSCRIPTS, *arrays.values(), costs=costs)
        .describe()
        .explanation,
    ]
    for explanation in explanations:
        (product,) = explanation.products
        assert product.path[0] == pair
        assert product.symbolic_cost == cost
        assert f"{cost} multiplications" in explanation.text
        assert f"{cost} multiplications" in str(product)
        assert "multiplications" in explanation.svg()
    np.testing.assert_allclose(
        session.run(TEXT, arrays, costs=costs, inline=True), expected, rtol=1e-12
    )
    np.testing.assert_allclose(
        session.einsum(SUBSCRIPTS, *arrays.values(), costs=costs, inline=True),
        expected,
        rtol=1e-12,
    )


def test_orders_that_are_given_tell_their_cost(session, rng):
    a = rng.random((4, 4))
    explain = session.explain
    given = explain.einsum(
        "ij,jk,kl->il", a, a, a, optimize=[(0, 2), (0, 1)], costs="i,j,k,l"
    )
    assert given.products[0].symbolic_cost == "2*χ^4"
    labels = [[-1, 1], [1, 2], [2, -2]]
    ncon = explain.ncon([a, a, a], labels, costs="1=>n, 2=>3")
    assert ncon.products[0].symbolic_cost == "3*n + 3"


@pytest.mark.parametrize(
    "options, reason, shown",
    [
        ({"costs": "a=>χ, b=>"}, "COST_MALFORMED", "a=>χ, b=>\n             ^"),
        ({"costs": "a, zz"}, "COST_LABEL_UNKNOWN", "a, zz\n       ^"),
        ({"costs": "a", "optimize": "greedy"}, "COST_CONFLICT", "greedy"),
    ],
)
def test_wrong_costs_are_refused(session, arrays, options, reason, shown):
    for call in (
        lambda: session.run(TEXT, arrays, **options),
        lambda: session.einsum(SUBSCRIPTS, *arrays.values(), **options),
        lambda: session.program(TEXT, arrays, **options),
        lambda: session.explain.run(TEXT, arrays, **options),
    ):
        with pytest.raises(tensord.InvalidArgument) as refused:
            call()
        assert refused.value.reason == reason
        assert shown in str(refused.value)


def test_costs_are_text(session, arrays):
    with pytest.raises(TypeError, match="costs"):
        session.run(TEXT, arrays, costs={"a": "χ"})

"""How the client's modules hang together, and what they show to users."""

from __future__ import annotations

import ast
import graphlib
from collections.abc import Iterator
from pathlib import Path

import pytest

import tensord

PACKAGE = Path(tensord.__file__).parent


def sources() -> dict[str, str]:
    """Every module of the package that is not generated, by its name."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        if parts[:2] != ("tensord", "v1"):
            name = ".".join(parts).removesuffix(".__init__")
            found[name] = path.read_text("utf-8")
    return found


def imports(name: str, source: str, known: set[str]) -> Iterator[str]:
    """The modules that a module imports: on top, in functions, for types alone."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            wanted = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name} has a relative import"
            # `from a import b` is about `a.b` if that is a module.
            paths = [f"{node.module}.{alias.name}" for alias in node.names]
            wanted = [path if path in known else node.module or "" for path in paths]
        else:
            continue
        yield from (each for each in wanted if each in known and each != name)


def circle(modules: dict[str, str]) -> list[str]:
    """Modules of which each imports the one before, and the first the last; or none."""
    known = set(modules)
    graph = {name: set(imports(name, text, known)) for name, text in modules.items()}
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []


def foreign_privates(source: str) -> list[str]:
    """Uses of names with `_` of other objects, which the module does not define."""
    tree = ast.parse(source)
    nodes = list(ast.walk(tree))
    own = set()
    for node in nodes:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            own.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            own.add(node.id)
    found = []
    for node in nodes:
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            if is_self(node.value):
                own.add(node.attr)
    for node in nodes:
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            if not is_self(node.value) and node.attr not in own:
                found.append(f"line {node.lineno}: {ast.unparse(node)}")
        elif isinstance(node, ast.ImportFrom) and node.module != "tensord":
            for alias in node.names:
                if is_private(alias.name):
                    found.append(f"line {node.lineno}: {alias.name}")
    return found


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


def is_self(value: ast.expr) -> bool:
    if isinstance(value, ast.Call):
        value = value.func  # super()
    return isinstance(value, ast.Name) and value.id in ("self", "cls", "super")


def test_imports_make_no_circle():
    modules = sources()
    assert {"tensord", "tensord._session", "tensord.aio._session"} <= set(modules)
    assert circle(modules) == []


@pytest.mark.parametrize(
    "closing",
    [
        "import p.a",
        "from p import a",
        "from p.a import A as B",
        "if TYPE_CHECKING:\n    from p.a import A",
        "def f():\n    import p.a",
    ],
)
def test_circles_are_found(closing: str):
    modules = {
        "p": "",
        "p.a": "from p import b",
        "p.b": "import p.c",
        "p.c": "import p",
    }
    assert circle(modules) == []
    assert set(circle(modules | {"p.c": closing})) == {"p.a", "p.b", "p.c"}


def test_modules_leave_the_privates_of_others_alone():
    found = {name: foreign_privates(source) for name, source in sources().items()}
    assert {name: uses for name, uses in found.items() if uses} == {}


def test_uses_of_privates_are_found():
    assert foreign_privates("import a\na.b._c") == ["line 2: a.b._c"]
    assert foreign_privates("from a import _b") == ["line 1: _b"]
    assert foreign_privates("from tensord import _b as b\nb.c.__doc__") == []
    own = "class A:\n    def f(self, other):\n        self._b = other._b\n"
    assert foreign_privates(own) == []
    assert foreign_privates("class A(B):\n    def f(self):\n        super()._b()") == []


def test_packages_show_their_public_names_only():
    for package, optional in (tensord, {"dask"}), (tensord.aio, set()):
        shown = {name for name in dir(package) if not name.startswith("_")}
        assert shown == {*package.__all__, *optional}
    exported: dict[str, object] = {}
    exec("from tensord import *", exported)
    assert set(tensord.__all__) <= set(exported)

"""The habits of the code that no linter knows: sizes, names, docstrings."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOMS = (
    "costwatch", "reports", "planning", "billing", "carbon", "runs", "projects", "jobs", "audit",
    "lake", "ui", "formulae", "agent", "bench",
)  # fmt: skip
MAX_MODULE_LINES = 400
MAX_FUNCTION_LINES = 45
FORBIDDEN_MODULES = {"utils", "helpers", "common", "util", "misc"}
# Case is lost in snake_case: _mw could be milliwatt or megawatt.
AMBIGUOUS_UNIT = re.compile(r"_(mw|mwh|mj)$", re.IGNORECASE)


def modules() -> list[Path]:
    """Every module of ours but migrations."""
    found = [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]
    return [path for path in found if "migrations" not in path.parts]


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


MODULES = pytest.mark.parametrize("path", modules(), ids=named)


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (
        node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )


def names_in(tree: ast.Module) -> Iterator[str]:
    """Every name that a module gives to something."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.arg | ast.keyword) and node.arg:
            yield node.arg


@MODULES
def test_a_module_is_short_enough_to_read(path):
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= MAX_MODULE_LINES, f"{named(path)} has {lines} lines"


@MODULES
def test_a_function_fits_on_a_page(path):
    for function in functions(ast.parse(path.read_text(encoding="utf-8"))):
        docstring = ast.get_docstring(function, clean=False) or ""
        lines = (function.end_lineno or 0) - function.lineno + 1 - len(docstring.splitlines())
        assert lines <= MAX_FUNCTION_LINES, f"{named(path)}: {function.name} has {lines} lines"


@MODULES
def test_a_module_says_what_lives_in_it(path):
    text = path.read_text(encoding="utf-8")
    if text.strip() and path.name != "apps.py":
        assert ast.get_docstring(ast.parse(text)), f"{named(path)} has no docstring"


@MODULES
def test_a_module_has_a_name_that_says_something(path):
    assert path.stem not in FORBIDDEN_MODULES


@MODULES
def test_no_unit_is_ambiguous(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert [name for name in names_in(tree) if AMBIGUOUS_UNIT.search(name)] == []

"""Every formula and the methodology page carry examples that run."""

import doctest
import importlib
import inspect
import pkgutil
from pathlib import Path
from types import FunctionType, ModuleType

import pytest

import formulae

ROOT = Path(__file__).resolve().parents[2]
MODULES = [
    importlib.import_module(f"formulae.{found.name}")
    for found in pkgutil.iter_modules(formulae.__path__)
]


def own_functions(module: ModuleType) -> list[FunctionType]:
    return [
        function
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if function.__module__ == module.__name__ and not name.startswith("_")
    ]


PUBLIC = [function for module in MODULES for function in own_functions(module)]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_examples_in_docstrings_hold(module: ModuleType) -> None:
    assert doctest.testmod(module).failed == 0


def test_examples_in_the_methodology_hold() -> None:
    page = ROOT / "docs" / "methodology.md"
    result = doctest.testfile(str(page), module_relative=False)
    assert result.attempted > 20
    assert result.failed == 0


@pytest.mark.parametrize("function", PUBLIC, ids=lambda function: function.__qualname__)
def test_each_public_function_has_an_example(function: FunctionType) -> None:
    assert ">>>" in (function.__doc__ or "")


QUANTITY_MODULES = (
    "compute", "goodput", "energy", "emissions", "earned_value", "allocation",
    "storage", "transfer", "on_premises", "memory", "checkpoints", "plan_lines", "tornado",
    "beliefs", "efficiency", "estimate",
    "architecture", "flop_attention", "flop_parts", "flop_stack", "flop_vision", "flop_terms",
    "time_ledger", "loss_price", "variance",
)  # fmt: skip
FORMULAS = [f for f in PUBLIC if f.__module__.split(".")[1] in QUANTITY_MODULES]


@pytest.mark.parametrize("function", FORMULAS, ids=lambda function: function.__qualname__)
def test_each_formula_states_arguments_result_and_source(function: FunctionType) -> None:
    text = function.__doc__ or ""
    assert all(f"\n    {section}:" in text for section in ("Args", "Returns", "Source"))


@pytest.mark.parametrize("function", FORMULAS, ids=lambda function: function.__qualname__)
def test_the_methodology_names_each_formula(function: FunctionType) -> None:
    page = (ROOT / "docs" / "methodology.md").read_text(encoding="utf-8")
    assert f"{function.__name__}(" in page

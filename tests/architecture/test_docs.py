"""The documents cover every setting, every command and every formula."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
READERS = {"env_str", "env_bool", "env_int", "env_list", "env_secret"}
ROOMS = (
    "costwatch", "reports", "planning", "billing", "carbon", "runs", "projects", "jobs", "audit",
)  # fmt: skip


def variables_read() -> set[str]:
    """Every environment variable that the settings read."""
    tree = ast.parse((ROOT / "costwatch/settings.py").read_text(encoding="utf-8"))
    return {
        node.args[0].value
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in READERS
        and isinstance(node.args[0], ast.Constant)
    }


def commands() -> set[str]:
    """Every command of our own."""
    return {
        path.stem
        for room in ROOMS
        for path in (ROOT / room).glob("management/commands/*.py")
        if not path.stem.startswith("_")
    }


def public_formulae() -> set[str]:
    """Every public function and method-free class function of `formulae/`."""
    names = set()
    for path in (ROOT / "formulae").glob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                names.add(node.name)
    return names


def documented(page: str) -> set[str]:
    """Every word in backticks of a page."""
    return set(re.findall(r"`([A-Za-z_][A-Za-z0-9_]*)", (ROOT / page).read_text(encoding="utf-8")))


def test_every_setting_is_documented():
    assert variables_read() - documented("docs/configuration.md") == set()


def test_no_documented_setting_is_imaginary():
    page = (ROOT / "docs/configuration.md").read_text(encoding="utf-8")
    in_tables = set(re.findall(r"^\| `([A-Z_]+)`", page, flags=re.MULTILINE))
    elsewhere = {"PORT", "HOST", "DATA", "PYTHON3", "USE_PIP", "ARGS"}
    assert in_tables - variables_read() - elsewhere == set()


@pytest.mark.parametrize("name", sorted(commands()))
def test_every_command_is_documented(name):
    page = (ROOT / "docs/cli.md").read_text(encoding="utf-8")
    assert re.search(rf"^## `{name}`", page, flags=re.MULTILINE), f"docs/cli.md lacks {name}"


def test_no_documented_command_is_imaginary():
    page = (ROOT / "docs/cli.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^## `([a-z_]+)`", page, flags=re.MULTILINE)) - commands() == set()


def test_every_option_of_a_command_is_documented():
    page = (ROOT / "docs/cli.md").read_text(encoding="utf-8")
    for room in ROOMS:
        for path in (ROOT / room).glob("management/commands/*.py"):
            section = page.partition(f"## `{path.stem}`")[2].partition("\n## ")[0]
            options = set(re.findall(r'add_argument\(\s*"(--[a-z-]+)"', path.read_text("utf-8")))
            missing = {option for option in options if option not in section}
            assert not missing, f"docs/cli.md, {path.stem}: {missing}"


def test_every_formula_is_documented():
    assert public_formulae() - documented("docs/methodology.md") == set()


def test_every_link_of_a_page_leads_somewhere():
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    for page in pages:
        for target in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name} -> {target}"

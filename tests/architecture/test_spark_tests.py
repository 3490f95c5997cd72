"""The tests on a Spark cluster are told apart by their folder: so somebody has to see they run."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROMISES = {
    "test_generated_bills_of_three_providers",
    "test_rows_on_which_engines_differ",
    "test_a_refusal_names_the_same_cell",
    "test_a_pattern_finds_the_same",
    "test_a_machine_without_java_sums_exactly",
}


def test_the_folder_holds_tests_that_nothing_skips():
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "tests/spark").glob("test_*.py")]
    names = {
        node.name
        for text in texts
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef)
    }
    assert names >= PROMISES
    assert not [text for text in texts if re.search(r"(?<!fmt: )skip|xfail", text)]


def test_what_has_to_pass_runs_them():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    target = re.search(r"^test-spark: setup-spark\n((?:\t.*\n)+)", makefile, flags=re.MULTILINE)
    assert target is not None
    assert "pytest tests/spark" in target[1]
    ci = (ROOT / ".ci/run").read_text(encoding="utf-8")
    assert re.search(r"^make .*\btest-spark\b", ci, flags=re.MULTILINE)

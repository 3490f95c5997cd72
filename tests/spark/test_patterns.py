"""A pattern finds the same in Spark as in DuckDB: all that we write is RE2."""

import ibis
import pytest

from billing.cost_classes import RULES
from lake.engine import open_duckdb, open_engine
from runs.catalogue import accelerator_name_patterns

TEXTS = (
    "", "7", "7\n", "a\nb", "训练gpu h100", "gpu训练", "GPUſ", "K8s", "K8s", "a.b", "a\rb", "a b",
    "AmazonſS3", "a\x0bb", "[x]", "a&&b", "$5", "^", "USE1-BoxUsage:p5.48xlarge", "Requests-Tier2",
    "É", "é", "a\u2028b", "a\u0085b", "-", "]", "\\", "/", "tab\there", "p5_en",
)  # fmt: skip
PATTERNS = (
    "^-?[0-9]+$", r"\bgpu\b", "(?i)k8s", "(?i)gpus", r"(?i)\bs3\b", "a.b", r"a\sb", "[[]", "[]]",
    "[&&]", r"\$", "[$]", "[^a-z]", r"[\s]", r"[\w-]+", "[[:alpha:]]", "(?i)é", r"\Bh", "^$",
    r"\\", r"[\\]", r"\d{1,2}", "(?:a|b)$", "(?m)^b$|x", "(?m)^a$",
)  # fmt: skip


@pytest.fixture(autouse=True)
def _on_spark(on_spark) -> None:
    """The configured engine is the cluster."""
    on_spark()


def found_by(engine, patterns: list[str]) -> list[dict[str, object]]:
    """What each pattern finds in each text."""
    table = engine.small_table(
        [{"number": number, "text": text} for number, text in enumerate(TEXTS)],
        {"number": "int64", "text": "string"},
    )
    asked = {f"search_{n}": table.text.re_search(one) for n, one in enumerate(patterns)}
    asked |= {f"extract_{n}": table.text.re_extract(one, 0) for n, one in enumerate(patterns)}
    asked |= {
        f"replace_{n}": table.text.re_replace(f"({one})", r"<\1$>")
        for n, one in enumerate(patterns[:6])
    }
    return engine.rows(table.select("number", **asked).order_by("number"))


@pytest.mark.parametrize(
    "patterns",
    [
        list(PATTERNS),
        sorted({f"(?i){one}" for rule in RULES for one in rule.matches.values()}),
        sorted({f"(?i){pattern}" for pattern, _name in accelerator_name_patterns()}),
    ],
    ids=["tricky", "cost classes", "accelerators"],
)
def test_a_pattern_finds_the_same(patterns):
    with open_duckdb() as engine:
        expected = found_by(engine, patterns)
    with open_engine() as engine:
        found = found_by(engine, patterns)

    for left, right in zip(expected, found, strict=True):
        differing = {name: (left[name], right[name]) for name in left if left[name] != right[name]}
        assert differing == {}, [patterns[int(name.rpartition("_")[2])] for name in differing]


def test_expressions_come_out_the_same():
    """Single operations that engines are known to differ on."""
    with open_duckdb() as engine:
        expected = engine.rows(probe(engine))
    with open_engine() as engine:
        assert engine.rows(probe(engine)) == expected


def probe(engine) -> ibis.Table:
    rows = [
        ("2026-05-01", [("a", "x")], "1.000000000000000001", "2026-05-01 23:59:59"),
        ("", [], "-99999999999999999999", "2026-12-31 00:00:00"),
        (None, None, None, None),
        ("é中", [("a", None)], "0.000000000000000005", "1970-01-01 00:00:00"),
    ]
    names = ("number", "text", "tags", "money", "at")
    types = ("int64", "string", "map<string, string>", "string", "string")
    table = engine.small_table(
        [dict(zip(names, (n, *row), strict=True)) for n, row in enumerate(rows)],
        dict(zip(names, types, strict=True)),
    )
    money, at = table.money.cast("decimal(38, 18)"), table["at"].cast("timestamp")
    return table.select(
        "number",
        money=money,
        tag=table.tags["a"],
        coalesced=ibis.coalesce(table.tags["a"], "none"),
        month=at.strftime("%Y-%m"),
        day=at.date(),
        start=table.text.substr(0, 4),
        tried=table.text.try_cast("decimal(38, 18)"),
        padded=table.text.lpad(2, "0"),
        joined=ibis.literal(" ").join([table.text.fill_null(""), "x"]),
        is_first=table.number.isin([0, 3]),
        same=table.text.identical_to(table.tags["a"]),
        blank=table.text.nullif(""),
        sixth=(table.number.cast("float64") / 6).cast("decimal(28, 9)"),
    ).order_by("number")

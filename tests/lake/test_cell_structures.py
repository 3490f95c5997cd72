"""Structures in cells are read in every spelling that bills use, each number with its own text."""

import csv
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lake.structures import as_list, as_map
from lake.text_files import ParseRequest, read_file

MAPS = {
    '{"a": 1.10, "b": 1e-7, "c": 12345678901234567890.123456789}': [
        ("a", "1.10"),
        ("b", "1e-7"),
        ("c", "12345678901234567890.123456789"),
    ],
    '{"on": true, "off": null, "in": {"x": [1.0]}}': [
        ("on", "true"),
        ("off", None),
        ("in", '{"x":[1.0]}'),
    ],
    '[{"key": "team", "value": "ml"}]': [("team", "ml")],
    "[{'key': 'team', 'value': \"it's\"}]": [("team", "it's")],
    '"env": "prod","team": "ml"': [("env", "prod"), ("team", "ml")],
    "{'a': 'x\\'y', 'b': None, 'c': False}": [("a", "x'y"), ("b", None), ("c", "false")],
    "{}": [],
    "[]": [],
}
UNREADABLE = [
    "",
    "team:ml;env:prod",
    '"a text"',
    "[1]",
    "{bad",
    '{"a":1,"a":2}',
    '{"a":"\\u0000"}',
    '{"a":"\\ud800"}',
    "[" * 5000,
    "{'a':" * 100,
    "__import__('os').system('id')",
]


@pytest.mark.parametrize("text", MAPS)
def test_an_object_is_read_in_every_spelling(text):
    assert as_map(text) == MAPS[text]


@pytest.mark.parametrize("text", UNREADABLE)
def test_what_is_no_object_is_unreadable(text):
    assert as_map(text) is None
    assert as_list(text) is None


def test_a_list_of_objects_keeps_the_amounts_text():
    text = "[{'name': 'CUD', 'amount': -8.8490}, {'name': \"it's\", 'amount': 0.10}]"

    assert as_list(text) == [
        [("name", "CUD"), ("amount", "-8.8490")],
        [("name", "it's"), ("amount", "0.10")],
    ]


scalars = st.none() | st.booleans() | st.text(alphabet=st.characters(codec="utf-8"), max_size=20)


@given(st.dictionaries(st.text(max_size=10), scalars, max_size=5))
def test_what_python_prints_is_read_back(value):
    shown = {True: "true", False: "false", None: None}
    pairs = [
        (key, shown[one] if isinstance(one, bool | None) else one) for key, one in value.items()
    ]
    storable = all("\0" not in (text or "") for pair in pairs for text in pair)
    text = repr(value)
    if not storable or "\\x" in text or "\\u" in text or "\\U" in text:
        return  # escapes of letters are nobody's bill

    assert as_map(text) == pairs


def test_the_file_keeps_unreadable_lists_and_counts_them(tmp_path: Path):
    content = (
        "a,credits\n"
        "1,\"[{'name': 'CUD', 'amount': -1.10}]\"\n"
        '2,"[{""name"": ""x"", ""amount"": 1e-7}]"\n'
        "3,nonsense\n4,nonsense\n5,\n"
    )
    (tmp_path / "source").write_text(content)

    table = read_file(
        ParseRequest(
            source=tmp_path / "source",
            folder=tmp_path,
            compression="none",
            max_unpacked_bytes=2**20,
            list_columns=("credits",),
        )
    )

    lookup = {
        row["text"]: row["value"] for row in pq.read_table(table.lookups["credits"]).to_pylist()
    }
    assert sorted(lookup.values()) == [
        [[("name", "CUD"), ("amount", "-1.10")]],
        [[("name", "x"), ("amount", "1e-7")]],
        [[("x_unreadable", "nonsense")]],
    ]
    assert table.bad_json == {"credits": 2}
    assert table.list_columns == ("credits",)


def test_numbers_keep_their_text_wherever_they_stand_in_an_object(tmp_path: Path):
    texts = {
        '{"a": 1.10}': [("a", "1.10")],
        '{"a"\t:\n-0.50}': [("a", "-0.50")],
        '{"a:1": "x", "b":2.00}': [("a:1", "x"), ("b", "2.00")],
        '{"in": {"x": 1.0}}': [("in", '{"x":1.0}')],
        '{"in": {"x": {"y":3.0}}}': [("in", '{"x":{"y":3.0}}')],
        '{"in": [1.0]}': [("in", "[1.0]")],
        '{"in": ["x", -2.0]}': [("in", '["x",-2.0]')],
        '{"in": [{"x": 1e2}]}': [("in", '[{"x":1e2}]')],
        '{"quoted \\"": 1.0}': [('quoted "', "1.0")],
        '{"by": "user:261", "arn": "arn:aws:iam::1:role/x, 2"}': [
            ("by", "user:261"),
            ("arn", "arn:aws:iam::1:role/x, 2"),
        ],
    }
    with (tmp_path / "source").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["a", "Tags"])
        writer.writerows([number, text] for number, text in enumerate(texts))

    table = read_file(
        ParseRequest(
            source=tmp_path / "source",
            folder=tmp_path,
            compression="none",
            max_unpacked_bytes=2**20,
            json_columns=("Tags",),
        )
    )

    read = pq.read_table(table.lookups["Tags"]).to_pylist()
    assert {row["text"]: row["value"] for row in read} == texts

"""Patterns of rules mean the same in the engine and without one, and the rest is refused."""

import re
import string

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from billing.patterns import MAX_LENGTH, PatternError, read_pattern

LETTERS = "abAB01-_./ é中\n"
characters = st.sampled_from(LETTERS)
plain = characters.map(lambda sign: "\\n" if sign == "\n" else re.escape(sign))
escapes = st.sampled_from([r"\d", r"\D", r"\w", r"\W", r"\s", r"\S", ".", r"\-", r"\\", r"\t"])
members = st.lists(
    st.one_of(
        st.sampled_from(["a", "B", "0-9", "a-z", "A-Z", r"\-", r"\d", r"\S", "é", r"\]", "."]),
    ),
    min_size=1,
    max_size=3,
).map("".join)
classes = st.builds(lambda sign, inner: f"[{sign}{inner}]", st.sampled_from(["", "^"]), members)
anchors = st.sampled_from(["^", "$"])
repeats = st.sampled_from(["", "", "", "*", "+", "?", "{2}", "{1,}", "{0,3}", "{1,2}?", "*?"])
bounded = st.sampled_from(["", "?", "{2}", "{0,3}"])


def grouped(inner):
    """Sequences, alternatives and groups of smaller patterns."""
    return st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.tuples(inner, inner).map(lambda pair: f"({pair[0]}|{pair[1]})"),
        st.tuples(inner, bounded).map(lambda pair: f"(?:{pair[0]}){pair[1]}"),
    )


singles = st.builds(lambda one, times: one + times, st.one_of(plain, escapes, classes), repeats)
patterns = st.recursive(st.one_of(singles, anchors), grouped, max_leaves=8)
values = st.text(alphabet=LETTERS + "xyz9", max_size=12)


@pytest.fixture(scope="module")
def engine():
    with duckdb.connect() as connection:
        yield connection


@settings(max_examples=600, deadline=None, derandomize=True)
@given(text=patterns, some=st.lists(values, min_size=1, max_size=8))
def test_every_engine_and_no_engine_agree(engine, text, some):
    pattern = read_pattern(text)

    own = [pattern.is_in(value) for value in some]

    found = engine.execute(
        "SELECT regexp_matches(value, ?, 's') FROM (SELECT unnest(?::VARCHAR[]) AS value)",
        [pattern.engine_form, some],
    ).fetchall()
    assert [row[0] for row in found] == own, pattern.engine_form
    for_python = re.sub(
        r"\\x\{([0-9A-F]+)\}", lambda code: re.escape(chr(int(code[1], 16))), pattern.engine_form
    ).replace(r"\z", r"\Z")
    assert [bool(re.search(for_python, value)) for value in some] == own


@settings(max_examples=800, deadline=None, derandomize=True)
@given(
    text=st.text(alphabet=string.printable + "é", min_size=1, max_size=20)
    | st.text(alphabet="ab(){}[]|*+?^$.\\d0,1-:", min_size=1, max_size=14)
)
def test_a_text_is_a_pattern_of_the_engine_or_is_refused(engine, text):
    try:
        form = read_pattern(text).engine_form
    except PatternError:
        return
    engine.execute("SELECT regexp_matches('abc', ?)", [form])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "empty"),
        ("(?=a)b", "lookaround"),
        ("(?!a)b", "lookaround"),
        ("(?<=a)b", "lookaround"),
        ("(?i)a", "flags"),
        ("(?P<name>a)", "named groups"),
        (r"(a)\1", "references"),
        (r"\bteam", "not supported"),
        (r"\pL", "not supported"),
        ("a**", "repeat"),
        ("a*+", "repeat"),
        ("(a+)+", "inside another"),
        ("a{1001}", "up to 100"),
        ("((a{90}){90}){90}", "too large"),
        ("[[:alpha:]]", "bracket"),
        ("[a", "not closed"),
        ("(a", "not closed"),
        ("a)", "no group"),
        ("[z-a]", "range"),
        ("()", "empty"),
        ("a|", "empty"),
        ("*a", "nothing to repeat"),
        ("a{x}", "brace"),
        ("a" * (MAX_LENGTH + 1), "at most 300"),
        ("a\x00", "control character"),
    ],
)
def test_what_engines_understand_differently_is_refused_in_words(text, words):
    with pytest.raises(PatternError, match=words):
        read_pattern(text)


def test_a_hostile_pattern_takes_no_time():
    pattern = read_pattern("^" + "a*" * 30 + "b$")

    assert not pattern.is_in("a" * 200)

"""A few columns that tell kinds of charges apart stand for all of them."""

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from billing.expressions import telling_columns

WORD = st.sampled_from([None, "", "a", "b", "ab"])


@settings(deadline=None)
@given(st.lists(st.tuples(WORD, WORD, WORD, WORD, st.booleans()), min_size=1, unique=True))
def test_no_two_kinds_are_alike_in_the_telling_columns(rows):
    typed = zip(zip(*rows, strict=True), [pa.string()] * 4 + [pa.bool_()], strict=True)
    kinds = pa.table(
        {f"c{place}": pa.array(values, type=kind) for place, (values, kind) in enumerate(typed)}
    )

    telling = telling_columns(kinds)

    assert len(set(zip(*(kinds[name].to_pylist() for name in telling), strict=True))) == len(rows)


def test_one_column_is_enough_where_it_alone_tells():
    kinds = pa.table({"long": ["x" * 50, "y" * 50], "short": ["a", "b"], "same": ["c", "c"]})

    assert telling_columns(kinds) == ["short"]

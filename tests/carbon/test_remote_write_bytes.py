"""The fast reading of remote-write bodies agrees with one that shares no code, whatever comes."""

import random
from contextlib import suppress
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carbon.adapters import remote_write_book
from carbon.adapters.remote_write import RemoteWriteError, decode
from tests.carbon.remote_write_bodies import COUNTER, POWER, Ts, body, gpu, message, read, series
from tests.carbon.remote_write_corpus import NOW, NOW_MS, OWNER, T

LABELS = {POWER: 0, COUNTER: 1}
values = st.one_of(st.just(0.0), st.floats(0.0, 900.0), st.integers(0, 2**45).map(float))


def by_oracle(*all_series: Ts) -> dict[tuple[str, str, int], float]:
    return {
        (labels["__name__"], labels["UUID"], at): value
        for labels, samples in read(message(all_series))
        for at, value in samples
    }


def by_costwatch(*all_series: Ts) -> dict[tuple[str, str, int], float]:
    found = {}
    decoded = decode(body(*all_series), owner=OWNER, now=NOW)
    for _stream, brought in decoded.streams:
        for metric, table, column in (
            (POWER, brought.power, "power_w"),
            (COUNTER, brought.counters, "counter_millijoule"),
        ):
            rows = zip(table.device, table.at, getattr(table, column), strict=True)
            for device, at, value in rows:
                found[metric, brought.devices[device].uuid, int(at) // 1000] = float(value)
    assert decoded.written == len(found)
    return found


@given(
    st.dictionaries(
        st.tuples(
            st.sampled_from(sorted(LABELS)),
            st.integers(0, 40),
            st.integers(-80_000_000, 290_000).map(lambda offset: NOW_MS + offset),
        ),
        st.floats(0.0, 900.0).map(lambda value: float(round(value))),
        max_size=60,
    ),
    st.booleans(),
)
@settings(max_examples=150)
def test_every_sample_of_every_shape_is_read_as_the_oracle_reads_it(samples, together):
    found: dict[tuple[str, int], list[tuple[int, float]]] = {}
    for (metric, number, at), value in samples.items():
        found.setdefault((metric, number), []).append((at, value))
    sent = [
        Ts(labels=gpu(metric, number), samples=part)
        for (metric, number), whole in found.items()
        for part in ([whole] if together else [[one] for one in whole])
    ]
    assert by_costwatch(*sent) == by_oracle(*sent)


def test_the_second_time_is_read_as_the_first():
    sent = [Ts(labels=gpu(number=number), samples=[(T, 100.0 + number)]) for number in range(500)]
    sent += [Ts(labels=gpu(number=number), samples=[(T, 0.0)]) for number in range(500, 600)]
    first = by_costwatch(*sent)
    assert by_costwatch(*sent) == first == by_oracle(*sent)


@given(st.binary(max_size=200), st.integers(0, 300))
@settings(max_examples=200)
def test_damaged_bytes_are_refused_or_read_but_never_break_it(junk, place):
    whole = body(*(Ts(labels=gpu(number=one), samples=[(T, 1.0)]) for one in range(3)))
    place %= len(whole)
    for damaged in (junk, whole[:place] + junk + whole[place:], whole[:place]):
        with suppress(RemoteWriteError):
            decode(damaged, owner=OWNER, now=NOW)


def test_a_tail_that_looks_like_a_sample_is_no_sample():
    """The last label of this series ends in the very bytes of a sample."""
    known = Ts(labels=gpu(), samples=[(T, 500.0)])
    by_costwatch(known)
    raw = series(known)
    tail = raw[-18:].decode("latin-1")
    odd = Ts(labels=gpu(zone=tail), samples=[(T, 7.0)])
    assert list(by_costwatch(odd).values()) == [7.0]


def test_the_book_of_series_is_bounded(monkeypatch):
    monkeypatch.setattr(remote_write_book, "MAX_SERIES", 50)
    before = remote_write_book.book_of(OWNER)
    for start in range(0, 300, 30):
        sent = [Ts(labels=gpu(number=start + one), samples=[(T, 1.0)]) for one in range(30)]
        assert len(by_costwatch(*sent)) == 30
    now = remote_write_book.book_of(OWNER)
    assert now is not before
    assert len(now.ids) < 50 + 30


def test_shuffled_requests_bring_the_same():
    sent = [Ts(labels=gpu(number=one), samples=[(T, float(one))]) for one in range(200)]
    shuffled = random.Random(1).sample(sent, len(sent))
    assert by_costwatch(*shuffled) == by_costwatch(*sent)


def test_instants_are_kept_to_the_millisecond():
    at = NOW_MS - 12_345
    decoded = decode(body(Ts(labels=gpu(), samples=[(at, 1.0)])), owner=OWNER, now=NOW)
    (_stream, brought), *_ = decoded.streams
    assert brought.power.at.tolist() == [at * 1000]
    assert brought.power.power_w.dtype == np.float64


@pytest.mark.parametrize("late_h", [0, 1, 23])
def test_late_samples_are_taken(late_h):
    at = NOW_MS - late_h * 3_600_000
    assert decode(body(Ts(labels=gpu(), samples=[(at, 1.0)])), owner=OWNER, now=NOW).written == 1


def test_a_site_learns_nothing_from_another_sites_series():
    pod = Ts(labels=gpu(Hostname="theirs", pod="their-job"), samples=[(T, 1.0)])
    theirs = decode(body(pod), owner=UUID(int=8), now=NOW)
    theirs.remember()
    ours = decode(body(pod), owner=UUID(int=9), now=NOW)
    assert len(ours.streams[0][1].jobs) == 1
    assert remote_write_book.book_of(UUID(int=8)) is not remote_write_book.book_of(UUID(int=9))


def test_books_of_sites_are_bounded(monkeypatch):
    monkeypatch.setattr(remote_write_book, "MAX_BOOKS", 3)
    kept = remote_write_book.book_of(UUID(int=100))
    for number in range(101, 105):
        remote_write_book.book_of(UUID(int=number))
        assert remote_write_book.book_of(UUID(int=100)) is kept
    assert len(remote_write_book._shelf.books) == 3

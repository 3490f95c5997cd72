"""The spool: what was read survives damage, a full disk and a crash; what is lost is counted."""

import errno
import gzip
import json
import os

import pytest

from costwatch_agent import journal, segments
from costwatch_agent.batches import BatchBuilder, tick_documents
from costwatch_agent.framing import HEADER_BYTES, Damage, Record, scan
from costwatch_agent.records import Device, Reading, Tick
from costwatch_agent.spool import Spool, SpoolInUseError

DEVICE = Device(
    uuid="GPU-1", index=0, model="H100", power_limit_w=700.0, epoch=1, power_field="average"
)


def make_tick(counter, *, device=DEVICE, rows=1):
    readings = tuple(
        Reading(device=0, at_ms=counter * 10 + row, counter_millijoule=counter, power_w=500.0)
        for row in range(rows)
    )
    return Tick(devices=(device,), readings=readings)


def open_spool(folder, *, max_bytes=1 << 20):
    return Spool(folder, max_bytes=max_bytes, builder=BatchBuilder(name="node-7"))


def add(spool, *counters, rows=1):
    for counter in counters:
        (document,) = tick_documents(make_tick(counter, rows=rows))
        spool.add(document, rows=rows)


def batches_of(spool, counters):
    """A batch of each counter."""
    for counter in counters:
        add(spool, counter)
        spool.cut()


def drain(spool):
    """What arrives where every batch is taken: the documents."""
    documents = []
    while (waiting := spool.first()) is not None:
        documents.append(json.loads(gzip.decompress(waiting.body)))
        spool.done(waiting)
    return documents


def counters_in(documents):
    return [counter for d in documents for counter in d["readings"].get("counter_millijoule", [])]


def test_what_was_read_is_on_disk_before_the_next_tick_and_leaves_when_taken(tmp_path):
    spool = open_spool(tmp_path)
    add(spool, 1, 2, 3)
    spool.close()
    spool = open_spool(tmp_path)
    assert spool.cut() == 1
    assert counters_in(drain(spool)) == [1, 2, 3]
    spool.close()
    assert drain(open_spool(tmp_path)) == []


def test_a_batch_keeps_its_start_its_number_and_its_bytes_through_a_restart(tmp_path):
    spool = open_spool(tmp_path)
    batches_of(spool, [1, 2])
    before = [spool.boot, spool.first().body]
    spool.close()
    later = open_spool(tmp_path)
    waiting = later.first()
    assert [waiting.boot, waiting.body] == before
    assert later.boot != waiting.boot
    batches_of(later, [3])
    documents = drain(later)
    found = [(d["boot"] == later.boot, d["sequence"]) for d in documents]
    assert found == [(False, 1), (False, 2), (True, 1)]


def test_a_change_of_epoch_begins_a_batch(tmp_path):
    spool = open_spool(tmp_path)
    for epoch, counter in [(1, 10), (1, 20), (2, 5)]:
        device = Device(uuid="GPU-1", index=0, model="H100", power_limit_w=None, epoch=epoch)
        (document,) = tick_documents(make_tick(counter, device=device))
        spool.add(document, rows=1)
    assert spool.cut() == 2
    documents = drain(spool)
    assert [d["devices"][0]["epoch"] for d in documents] == [1, 2]
    assert counters_in(documents) == [10, 20, 5]


def test_two_agents_do_not_share_a_spool(tmp_path):
    first = open_spool(tmp_path)
    with pytest.raises(SpoolInUseError):
        open_spool(tmp_path)
    first.close()


def three_batches(folder):
    spool = open_spool(folder)
    batches_of(spool, [1, 2, 3])
    spool.close()
    (path,) = folder.glob("*.seg")
    return path


def flip(data, at):
    return data[:at] + bytes([data[at] ^ 0x40]) + data[at + 1 :]


def test_any_flipped_byte_damages_its_own_record_alone(tmp_path):
    data = three_batches(tmp_path).read_bytes()
    whole = [item for item in scan(data) if isinstance(item, Record)]
    for at in range(len(data)):
        found = list(scan(flip(data, at)))
        hit = next(item for item in whole if item.start <= at < item.end)
        assert [item for item in found if isinstance(item, Record)] == [
            item for item in whole if item is not hit
        ]
        (damage,) = [item for item in found if isinstance(item, Damage)]
        assert (damage.start, damage.end) == (hit.start, hit.end)
        in_header = at - hit.start < HEADER_BYTES
        assert damage.rows == (None if in_header else 1)


def test_a_damaged_batch_is_reported_counted_and_passed_over(tmp_path):
    path = three_batches(tmp_path / "made")
    data = path.read_bytes()
    size = len(data) // 3
    for at in (0, 20, 31, 40, size - 1, size + 33, size + 90, len(data) - 30, len(data) - 1):
        folder = tmp_path / f"flip-{at}"
        folder.mkdir()
        (folder / path.name).write_bytes(flip(data, at))
        damaged = open_spool(folder)
        left = counters_in(drain(damaged))
        assert len(left) == 2
        assert damaged.tally.damaged == damaged.tally.dropped == 1
        assert len(list((folder / "set-aside").iterdir())) == 1
        batches_of(damaged, [4])
        assert [d["dropped"] for d in drain(damaged)] == [1]
        damaged.close()


def test_a_torn_tail_of_the_journal_loses_the_reading_that_was_being_written(tmp_path):
    spool = open_spool(tmp_path / "made")
    add(spool, 1, 2, 3)
    spool.close()
    data = (tmp_path / "made/journal").read_bytes()
    size = len(data) // 3
    for cut in range(2 * size + 1, len(data), 61):
        folder = tmp_path / f"cut-{cut}"
        folder.mkdir()
        (folder / "journal").write_bytes(data[:cut])
        torn = open_spool(folder)
        torn.cut()
        documents = drain(torn)
        assert counters_in(documents) == [1, 2]
        assert sum(d["dropped"] for d in documents) == 1
        torn.close()


def test_a_batch_that_was_being_written_costs_nothing(tmp_path):
    spool = open_spool(tmp_path / "made")
    add(spool, 1, 2)
    journal_bytes = (tmp_path / "made/journal").read_bytes()
    spool.cut()
    spool.close()
    (path,) = (tmp_path / "made").glob("*.seg")
    data = path.read_bytes()
    for cut in (1, HEADER_BYTES - 1, HEADER_BYTES, HEADER_BYTES + 5, len(data) - 1):
        folder = tmp_path / f"cut-{cut}"
        folder.mkdir()
        (folder / "journal").write_bytes(journal_bytes)
        (folder / path.name).write_bytes(data[:cut])
        again = open_spool(folder)
        again.cut()
        documents = drain(again)
        assert counters_in(documents) == [1, 2]
        assert sum(d["dropped"] for d in documents) == again.tally.damaged == 0
        again.close()


def test_a_crash_before_the_journal_was_emptied_makes_no_second_batch(tmp_path):
    spool = open_spool(tmp_path)
    add(spool, 1, 2)
    kept = (tmp_path / "journal").read_bytes()
    spool.cut()
    spool.close()
    (tmp_path / "journal").write_bytes(kept)
    again = open_spool(tmp_path)
    again.cut()
    assert counters_in(drain(again)) == [1, 2]


def test_a_full_spool_drops_the_oldest_and_tells_how_many(tmp_path):
    spool = open_spool(tmp_path, max_bytes=32 * 1024)
    for start in range(0, 400, 4):
        add(spool, *range(start, start + 4))
        spool.cut()
        assert spool.total_bytes <= 32 * 1024
    documents = drain(spool)
    arrived = counters_in(documents)
    dropped = sum(d["dropped"] for d in documents)
    assert arrived == list(range(400 - len(arrived), 400)), "the newest stay"
    assert dropped > 0
    # What was told in a batch that was itself dropped is told again.
    assert len(arrived) + dropped + spool._dropped == 400
    assert spool.tally.dropped >= dropped


def test_what_was_dropped_is_counted_once_through_a_crash(tmp_path, monkeypatch):
    spool = open_spool(tmp_path, max_bytes=64 * 1024)
    number = 0
    while spool.total_bytes < 20 * 1024:
        batches_of(spool, [number])
        number += 1
    add(spool, number)
    kept = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}

    class KilledError(Exception):
        pass

    def die(*arguments):
        raise KilledError

    monkeypatch.setattr(segments.Segments, "remove", die)
    spool._max_bytes = 16 * 1024
    with pytest.raises(KilledError):
        spool.cut()
    monkeypatch.undo()
    spool.close()
    assert set(kept) <= {path.name for path in tmp_path.iterdir()}
    again = open_spool(tmp_path)
    again.cut()
    documents = drain(again)
    assert len(counters_in(documents)) + sum(d["dropped"] for d in documents) == number + 1


def test_a_disk_that_takes_nothing_is_waited_out_in_memory(tmp_path, monkeypatch):
    spool = open_spool(tmp_path)
    add(spool, 1)
    write = os.write

    def full(descriptor, data):
        write(descriptor, bytes(data)[:10])  # a part of it still goes on the disk
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    add(spool, 2, 3)
    assert spool.cut() == 0
    assert spool.tally.disk_errors == 3
    monkeypatch.undo()
    add(spool, 4)
    spool.cut()
    documents = drain(spool)
    assert counters_in(documents) == [1, 2, 3, 4]
    assert sum(d["dropped"] for d in documents) == spool.tally.damaged - 1 == 0


def test_memory_has_a_bound_while_the_disk_takes_nothing(tmp_path, monkeypatch):
    spool = open_spool(tmp_path)

    def refuse(*arguments, **keywords):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(journal.Journal, "append", refuse)
    monkeypatch.setattr("costwatch_agent.spool.MAX_TICKS_IN_MEMORY", 5)
    add(spool, *range(9))
    spool.cut()
    (document,) = drain(spool)
    assert counters_in([document]) == [4, 5, 6, 7, 8]
    assert document["dropped"] == 4


def test_without_its_note_everything_is_sent_again(tmp_path):
    spool = open_spool(tmp_path)
    batches_of(spool, [1, 2])
    spool.done(spool.first())
    spool.close()
    (tmp_path / "state.json").write_text("{", encoding="utf-8")
    assert counters_in(drain(open_spool(tmp_path))) == [1, 2]


def test_a_long_outage_takes_little_room_and_arrives_in_order(tmp_path):
    spool = open_spool(tmp_path, max_bytes=256 * 1024)
    for start in range(0, 600, 6):
        add(spool, *range(start, start + 6), rows=8)
        spool.cut()
    assert len(list(tmp_path.glob("*.seg"))) > 1
    assert spool.total_bytes < 600 * 8 * 20, "under 20 bytes a reading"
    assert counters_in(drain(spool))[::8] == list(range(600))
    assert len(list(tmp_path.glob("*.seg"))) == 1

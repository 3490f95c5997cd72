"""Following a file that grows: every whole line once, through rotation, truncation and restarts."""

import os
import random
from functools import partial
from pathlib import Path

import pytest

from costwatch_agent import followed_files
from costwatch_agent.followed_files import FollowedFile


def read_all(file):
    """Everything that can be read now."""
    lines = []
    while (found := file.read()) is not None:
        lines += found.lines
        if found.at_end:
            break
    return lines


def take(file, found):
    found += read_all(file)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "train.log"


def add(path, text):
    with path.open("a", encoding="utf-8") as file:
        file.write(text)


def test_a_line_counts_with_its_end(path):
    file = FollowedFile(path)
    assert file.read() is None, "there is no file yet"
    add(path, "one\ntwo\nthr")
    assert read_all(file) == ["one", "two"]
    assert read_all(file) == []
    add(path, "ee\n")
    assert read_all(file) == ["three"]


def test_what_was_there_is_told_from_what_comes(path):
    add(path, "old\n")
    file = FollowedFile(path)
    assert file.read().is_live is False
    read_all(file)
    add(path, "new\n")
    assert file.read().is_live is True


def test_a_rotated_file_is_read_to_its_end_before_the_new_one(path):
    file = FollowedFile(path)
    add(path, "one\n")
    read_all(file)
    add(path, "two\nlast without an end")
    path.rename(path.with_name("train.log.1"))
    add(path.with_name("train.log.1"), ", written late")
    assert read_all(file) == ["two"], "there may be more to come"
    add(path, "three\n")
    assert read_all(file) == ["last without an end, written late", "three"]


def test_a_file_that_was_rotated_while_the_agent_was_away_is_found_by_what_it_is(path):
    file = FollowedFile(path)
    add(path, "one\n")
    read_all(file)
    state = file.state()
    file.close()
    add(path, "two\n")
    path.rename(path.with_name("train.log.1"))
    add(path, "three\n")
    again = FollowedFile(path, state)
    assert read_all(again) == ["two", "three"]
    assert again.holds(path.with_name("train.log.1")), "so that a pattern does not read it again"
    assert not again.holds(path.parent)


def test_a_file_that_is_gone_for_good_is_said_and_the_new_one_read(path, caplog):
    file = FollowedFile(path)
    add(path, "one\n")
    read_all(file)
    state = file.state()
    file.close()
    path.unlink()
    add(path, "other\n")
    assert read_all(FollowedFile(path, state)) == ["other"]
    assert "is gone" in caplog.text


def test_a_file_that_took_the_number_of_another_is_not_mistaken_for_it(path):
    file = FollowedFile(path)
    add(path, "one\ntwo\n")
    read_all(file)
    state = file.state()
    file.close()
    path.write_text("a quite different file\nof the same inode\n", encoding="utf-8")
    assert path.stat().st_ino == state["inode"]
    assert read_all(FollowedFile(path, state)) == ["a quite different file", "of the same inode"]


def test_a_truncated_file_is_read_from_its_beginning(path):
    file = FollowedFile(path)
    add(path, "one\ntwo\n")
    read_all(file)
    os.truncate(path, 0)
    add(path, "new\n")
    assert read_all(file) == ["new"]
    os.truncate(path, 0)
    add(path, "longer than what was there before\nby far\n")
    assert read_all(file) == ["longer than what was there before", "by far"]


def test_a_line_without_end_does_not_fill_the_memory(path, monkeypatch):
    monkeypatch.setattr(followed_files, "MAX_LINE_BYTES", 100)
    monkeypatch.setattr(followed_files, "READ_BYTES", 200)
    file = FollowedFile(path)
    add(path, "x" * 1000)
    assert read_all(file) == []
    add(path, "x" * 50 + "\nnext\n")
    assert read_all(file) == ["next"]


def test_bytes_that_are_no_text_do_not_stop_it(path):
    path.write_bytes(b"\xff\xfe\x00\n\x80ok\n")
    assert [line[-2:] for line in read_all(FollowedFile(path))][1] == "ok"


class Writer:
    """Writes numbered lines to a log, in pieces, through rotations and truncations."""

    def __init__(self, path, chance):
        self.path = path
        self.chance = chance
        self.file = path.open("a", encoding="utf-8")
        self.written = []
        self.rotations = 0

    def write(self, between=lambda: None):
        text = f"line {len(self.written)} {'x' * self.chance.randrange(60)}"
        half = self.chance.randrange(len(text))
        for piece in (text[:half], text[half:] + "\n"):
            self.file.write(piece)
            self.file.flush()
            between()
        self.written.append(text)

    def rotate(self):
        self.rotations += 1
        self.path.rename(self.path.with_name(f"train.log.{self.rotations}"))
        if self.chance.random() < 0.5:
            self.write()  # still to the file that was renamed
        self.file.close()
        self.file = self.path.open("a", encoding="utf-8")

    def truncate(self):
        os.truncate(self.path, 0)


@pytest.mark.parametrize("seed", range(40))
def test_no_line_is_lost_or_doubled_whatever_comes_in_between(tmp_path, seed):
    chance = random.Random(seed)
    writer = Writer(tmp_path / "train.log", chance)
    file = FollowedFile(writer.path)
    found = []
    for _ in range(400):
        action = chance.choices(
            ["write", "torn", "read", "rotate", "truncate", "restart"], [40, 15, 25, 7, 6, 7]
        )[0]
        if action == "write":
            writer.write()
        elif action == "torn":
            writer.write(between=partial(take, file, found))
        elif action == "restart":
            state = file.state()
            file.close()
            file = FollowedFile(writer.path, state)
        else:  # the reader keeps up: two rotations, or a truncation of what is unread, lose lines
            found += read_all(file)
            getattr(writer, action, lambda: None)()
    found += read_all(file)
    assert found == writer.written
    assert writer.rotations > 5


def test_an_idle_file_costs_no_reading(path, monkeypatch):
    file = FollowedFile(path)
    add(path, "x\n" * 100_000)
    read_all(file)
    read = []
    pread = os.pread

    def counted(descriptor, length, offset):
        data = pread(descriptor, length, offset)
        read.append(len(data))
        return data

    monkeypatch.setattr(os, "pread", counted)
    assert read_all(file) == []
    assert sum(read) <= followed_files.HEAD_BYTES


def test_a_pipe_or_a_folder_does_not_hang_it(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "."):
        with pytest.raises(OSError, match=r".+"):
            FollowedFile(Path(tmp_path / name)).read()

"""Packed files and archives of strangers: read whole within bounds, or refused by what is wrong."""

import gzip
import io
import stat
import struct
import zipfile
import zlib
from pathlib import Path

import pytest
import zstandard

from lake.refusing import RefusedError
from lake.text_files import (
    ArchiveMember,
    ParseRequest,
    TextFileRefusedError,
    TextTable,
    archive_members,
    read_file,
)
from lake.unpacking import chunks_of

CONTENT = b"a,b\n1,2\n3,4\n"


def read(folder: Path, content: bytes, compression: str, **options) -> TextTable:
    source = folder / "source"
    source.write_bytes(content)
    options.setdefault("max_unpacked_bytes", 2**24)
    return read_file(ParseRequest(source=source, folder=folder, compression=compression, **options))


def refusal(folder: Path, content: bytes, compression: str, **options) -> TextFileRefusedError:
    with pytest.raises(TextFileRefusedError) as refused:
        read(folder, content, compression, **options)
    return refused.value


def members(folder: Path, content: bytes) -> list[ArchiveMember]:
    source = folder / "archive"
    source.write_bytes(content)
    return archive_members(source, folder=folder, max_unpacked_bytes=2**24)


def zipped(**files: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


def zstd(content: bytes, *, checksum: bool = True) -> bytes:
    return zstandard.ZstdCompressor(write_checksum=checksum).compress(content)


PACKINGS = {
    "plain": (CONTENT, "none"),
    "gzip": (gzip.compress(CONTENT), "gzip"),
    "two gzip members": (gzip.compress(CONTENT[:6]) + gzip.compress(CONTENT[6:]), "gzip"),
    "zstd": (zstd(CONTENT), "zstd"),
    "zstd without a checksum": (zstd(CONTENT, checksum=False), "zstd"),
    "two zstd frames": (zstd(CONTENT[:6]) + zstd(CONTENT[6:]), "zstd"),
    "zstd with a frame to be skipped": (
        b"\x50\x2a\x4d\x18" + struct.pack("<I", 3) + b"xyz" + zstd(CONTENT),
        "zstd",
    ),
    "zip": (zipped(other=b"x", bill=CONTENT), "zip:1"),
}


@pytest.mark.parametrize("packing", PACKINGS)
def test_every_packing_gives_the_same_table(tmp_path, packing):
    content, compression = PACKINGS[packing]
    plain = tmp_path / "plain"
    plain.mkdir()

    table = read(tmp_path, content, compression)

    assert table.rows == 2
    assert table.unpacked_sha256 == read(plain, CONTENT, "none").unpacked_sha256


DAMAGED = {
    "a zstd file cut short": (zstd(CONTENT * 100)[:-5], "zstd", "truncated"),
    "a zstd file cut in its head": (zstd(CONTENT)[:5], "zstd", "truncated"),
    "a wrong zstd checksum": (zstd(CONTENT)[:-1] + b"\0", "zstd", "damaged"),
    "junk behind zstd": (zstd(CONTENT) + b"junk", "zstd", "damaged"),
    "zstd in zstd": (zstd(zstd(CONTENT)), "zstd", "file_type"),
    "gzip in zstd": (zstd(gzip.compress(CONTENT)), "zstd", "file_type"),
    "nothing in zstd": (zstd(b""), "zstd", "empty"),
    "a zip cut short": (zipped(bill=CONTENT)[:-30], "zip:0", "truncated"),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_damaged_packing_is_named(tmp_path, case):
    content, compression, code = DAMAGED[case]

    assert refusal(tmp_path, content, compression).code == code


def zlib_fault(content: bytes) -> str:
    """Why Python's own zlib refuses the gzip members, or nothing."""
    try:
        while content:
            member = zlib.decompressobj(wbits=31)
            member.decompress(content)
            if not member.eof:
                return "truncated"
            content = member.unused_data
    except zlib.error:
        return "damaged"
    return ""


def unpacking_fault(source: Path) -> str:
    try:
        list(chunks_of(source, "gzip", limit_bytes=2**20))
    except RefusedError as refused:
        return refused.answer["refused"]
    return ""


def test_gzip_is_refused_wherever_zlib_refuses_it(tmp_path):
    one = gzip.compress(CONTENT * 40)
    two = one + gzip.compress(CONTENT)
    flipped = (
        two[:at] + bytes([two[at] ^ 1 << bit]) + two[at + 1 :]
        for at in (*range(12), *range(len(one) - 8, len(two)))
        for bit in range(8)
    )
    cut = (two[:size] for size in range(1, len(two)))
    followed = (one + junk for junk in (b"j", b"junk", one[:3], bytes(9), bytes(30)))
    source = tmp_path / "source"
    wrong = []
    for content in (two, *flipped, *cut, *followed):
        source.write_bytes(content)
        if unpacking_fault(source) != zlib_fault(content):
            wrong.append((content, unpacking_fault(source), zlib_fault(content)))

    assert wrong == []


def test_a_zstd_bomb_stops_at_the_limit(tmp_path):
    bomb = zstd(b"a,b\n" + b"0" * 2**28)

    found = refusal(tmp_path, bomb, "zstd", max_unpacked_bytes=2**20)

    assert found.code == "too_large"
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 2**20


def test_a_bomb_that_ends_the_parsing_early_is_not_unpacked_to_its_end(tmp_path):
    bomb = gzip.compress(b"a,b\n" + b"0" * 2**28, 9)

    assert refusal(tmp_path, bomb, "gzip", max_unpacked_bytes=2**40).code == "csv"


def test_an_archive_lists_its_files_with_their_first_bytes(tmp_path):
    archive = zipped(**{"a/part-1.csv": CONTENT, "__MACOSX/._x": b"junk", "b.csv": b"q"})

    assert [(one.name, one.head, one.compression) for one in members(tmp_path, archive)] == [
        ("a/part-1.csv", CONTENT, "zip:0"),
        ("b.csv", b"q", "zip:2"),
    ]


def linked() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        entry = zipfile.ZipInfo("bill.csv")
        entry.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(entry, "/etc/passwd")
    return out.getvalue()


def encrypted() -> bytes:
    plain = bytearray(zipped(bill=CONTENT))
    plain[6] |= 1
    plain[plain.index(b"PK\x01\x02") + 8] |= 1
    return bytes(plain)


def overlapping() -> bytes:
    """Two entries of the directory that point to one file's bytes."""
    plain = zipped(first=CONTENT, other=CONTENT)
    second = plain.index(b"PK\x01\x02", plain.index(b"PK\x01\x02") + 4)
    return plain[: second + 42] + struct.pack("<I", 0) + plain[second + 46 :]


TRICKS = {
    "a name that climbs": (zipped(**{"../../etc/cron.d/x": b"x"}), "archive"),
    "an absolute name": (zipped(**{"/etc/passwd": b"x"}), "archive"),
    "a drive": (zipped(**{"C:\\x.csv": b"x"}), "archive"),
    "a link": (linked(), "archive"),
    "a password": (encrypted(), "encrypted"),
    "files that overlap": (overlapping(), "archive"),
    "too many files": (zipped(**{f"{number}.csv": b"" for number in range(1001)}), "archive"),
    "no file": (zipped(), "empty"),
    "no archive": (b"PK\x03\x04 not an archive", "truncated"),
}


@pytest.mark.parametrize("case", TRICKS)
def test_an_archive_that_means_to_trick_is_refused(tmp_path, case):
    content, code = TRICKS[case]

    with pytest.raises(TextFileRefusedError) as refused:
        members(tmp_path, content)

    assert refused.value.code == code


def test_an_archive_that_states_more_than_allowed_is_refused_before_it_is_unpacked(tmp_path):
    with pytest.raises(TextFileRefusedError) as refused:
        members(tmp_path, zipped(bill=b"0" * (2**24 + 1)))

    assert refused.value.code == "too_large"


def test_a_member_that_is_longer_than_it_says_is_refused(tmp_path):
    archive = bytearray(zipped(bill=CONTENT))
    at = archive.index(b"PK\x01\x02") + 24
    archive[at : at + 4] = struct.pack("<I", 8)

    assert refusal(tmp_path, bytes(archive), "zip:0").code == "damaged"

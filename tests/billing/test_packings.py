"""However a bill is cut, ordered, packed and repeated: its totals are the sum of its own text."""

import csv
import io
import random
import subprocess
import sys
import zipfile
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from billing.checks import verify
from billing.models import Delivery
from tests.billing.builders import gzipped, imported, organisation, roll_up, text_sum, total

pytestmark = pytest.mark.django_db(transaction=True)
BASES = ("billed", "effective", "list", "contracted")


def generated(folder: Path, *, provider: str, version: str, rows: int, seed: int) -> bytes:
    tool = Path(sys.executable).with_name("focus-toolkit")
    command = [tool, "generate", "--provider", provider, "--focus-version", version]
    command += ["--rows", str(rows), "--seed", str(seed), "--out", folder]
    subprocess.run(command, check=True, capture_output=True)
    (path,) = folder.glob("*cost_and_usage*.csv")
    return path.read_bytes()


def zipped(content: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("part.csv", content)
    return packed.getvalue()


def as_parquet(content: bytes) -> bytes:
    """The same texts as columns of Parquet."""
    rows = list(csv.DictReader(io.StringIO(content.decode())))
    packed = pa.BufferOutputStream()
    table = pa.table({name: [row[name] for row in rows] for name in rows[0]})
    pq.write_table(table, packed)
    return packed.getvalue().to_pybytes()


PACKINGS: dict[str, Callable[[bytes], bytes]] = {
    "csv": bytes,
    "csv.gz": gzipped,
    "csv.zst": lambda content: zstandard.ZstdCompressor().compress(content),
    "zip": zipped,
    "parquet": as_parquet,
}


def parts(content: bytes, chance: random.Random) -> list[tuple[str, bytes]]:
    """The bill cut into a part for each packing, its rows and parts in any order."""
    header, *lines = content.decode().splitlines(keepends=True)
    chance.shuffle(lines)
    cuts = sorted(chance.sample(range(1, len(lines)), len(PACKINGS) - 1))
    edges = zip([0, *cuts], [*cuts, len(lines)], strict=True)
    cut = ["".join([header, *lines[first:last]]).encode() for first, last in edges]
    named = [
        (f"part-{number}.{kind}", pack(part))
        for number, (part, (kind, pack)) in enumerate(zip(cut, PACKINGS.items(), strict=True))
    ]
    chance.shuffle(named)
    return named


@pytest.mark.parametrize(
    ("provider", "version", "rows", "seed"),
    [("aws", "1.3", 700, 11), ("gcp", "1.2", 90, 12), ("azure", "1.3", 1500, 13)],
)
def test_order_parts_packing_and_repeats_change_nothing(tmp_path, provider, version, rows, seed):
    content = generated(tmp_path, provider=provider, version=version, rows=rows, seed=seed)
    chance = random.Random(seed)
    sums = {basis: text_sum(content, f"{basis.title()}Cost") for basis in BASES}
    imported(content)
    whole = roll_up()
    cut = parts(content, chance)
    repeated = parts(content, chance)
    repeated.append((f"again-{repeated[0][0]}", repeated[0][1]))

    for files in (cut, repeated, list(reversed(repeated))):
        delivery = imported(*files)

        assert delivery.state == Delivery.State.PUBLISHED, delivery.refusal
        assert delivery.rows == rows
        assert {basis: total(basis) for basis in BASES} == sums
        assert sum(Decimal(entry["billed_cost"]) for entry in delivery.totals) == sums["billed"]
        assert roll_up() == whole
    assert verify(organisation().pk) == []

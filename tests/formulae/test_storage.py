"""Storage, requests and traffic cost what the worked examples say, to the last digit."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formulae import storage, transfer
from formulae.money import CurrencyMismatchError, Money, sum_money
from formulae.storage import ShardSize
from formulae.units import QuantityError

GET = Money.of("0.0004", "USD")
PUT = Money.of("0.005", "USD")
PB = 10**15
MB = 10**6
DATASET_BYTES = 1_350 * 10**12


def usd(amount: str | int) -> Money:
    return Money.of(amount, "USD")


def test_a_million_hours_of_six_cameras_at_half_a_megabit_are_1_35_pb() -> None:
    assert storage.video_bytes(1, 6, 500_000) == 1.35e9
    assert storage.video_bytes(1_000_000, 6, 500_000) == 1.35e15
    assert storage.video_terabytes(1_000_000, 6, 500_000) == 1_350.0


@pytest.mark.parametrize(("hot_price", "total"), [("150", 63_050), ("300", 93_050)])
def test_the_three_tiers_cost_63050_to_93050_a_month(hot_price: str, total: int) -> None:
    month = Decimal(1)
    parts = (
        storage.storage_cost(Decimal(200), month, usd(hot_price)),
        storage.storage_cost(Decimal(1350), month, usd(23)),
        storage.storage_cost(Decimal(2000), month, usd(1)),
    )
    assert sum_money(parts, currency="USD") == usd(total)


def test_billions_of_requests_cost_thousands() -> None:
    assert storage.request_cost(3 * 10**9, GET) == usd(1_200)
    assert storage.request_cost(10**9, PUT) == usd(5_000)
    assert storage.request_cost(1, GET) == usd("0.0000004")


def test_shards_of_250_mb_read_the_dataset_in_5_4_million_gets_for_2_16() -> None:
    gets = storage.requests_for(DATASET_BYTES, 250 * MB)
    assert gets == 5_400_000
    assert storage.request_cost(gets, GET) == usd("2.16")


def test_a_last_object_that_is_not_full_is_still_asked_for() -> None:
    assert storage.requests_for(1_000_001, 1_000, epochs=3) == 1_001 * 3


def what_if(**fields: object) -> storage.ShardingWhatIf:
    asked = {
        "bytes_total": DATASET_BYTES,
        "object_bytes": 450_000,
        "shard_bytes": 250 * MB,
        "epochs": 1,
        "price_per_1000_get": GET,
    } | fields
    return storage.sharding_what_if(**asked)  # type: ignore[arg-type]


def test_billions_of_small_files_against_shards() -> None:
    found = what_if()
    assert (found.as_is.requests, found.as_shards.requests) == (3_000_000_000, 5_400_000)
    assert found.as_is.size is ShardSize.TOO_SMALL
    assert found.as_shards.size is ShardSize.ADVISED
    assert (found.as_is.cost, found.as_shards.cost) == (usd(1_200), usd("2.16"))
    assert found.saving == usd("1197.84")
    assert found.request_ratio == pytest.approx(555.556, rel=1e-5)
    assert found.packing_cost is None
    assert found.net_saving is None


def test_packing_is_paid_once_so_one_epoch_does_not_pay_it_back() -> None:
    once = what_if(price_per_1000_put=PUT)
    assert once.packing_cost == usd(1_200) + usd(27)
    assert once.net_saving == usd("-29.16")
    thrice = what_if(price_per_1000_put=PUT, epochs=3)
    assert thrice.packing_cost == once.packing_cost
    assert thrice.net_saving == usd("3593.52") - usd(1_227)


def test_get_and_put_in_two_currencies_are_refused() -> None:
    with pytest.raises(CurrencyMismatchError):
        what_if(price_per_1000_put=Money.of("0.005", "EUR"))


def test_a_shard_smaller_than_its_objects_is_refused() -> None:
    with pytest.raises(QuantityError, match="shard_bytes"):
        what_if(shard_bytes=1_000)


@pytest.mark.parametrize(
    ("size_bytes", "level"),
    [
        (100 * MB - 1, ShardSize.TOO_SMALL),
        (100 * MB, ShardSize.ADVISED),
        (500 * MB, ShardSize.ADVISED),
        (500 * MB + 1, ShardSize.TOO_LARGE),
    ],
)
def test_100_to_500_mb_is_advised(size_bytes: int, level: ShardSize) -> None:
    assert storage.shard_size(size_bytes) is level


@given(
    bytes_total=st.integers(min_value=1, max_value=10 * PB),
    object_bytes=st.integers(min_value=1, max_value=10**9),
    epochs=st.integers(min_value=1, max_value=100),
)
def test_every_byte_is_read_in_every_epoch(
    bytes_total: int, object_bytes: int, epochs: int
) -> None:
    requests = storage.requests_for(bytes_total, object_bytes, epochs)
    assert requests * object_bytes >= bytes_total * epochs
    assert (requests - epochs) * object_bytes < bytes_total * epochs


@given(
    first=st.decimals(min_value=0, max_value=10_000, places=6),
    second=st.decimals(min_value=0, max_value=10_000, places=6),
)
def test_storage_in_two_parts_costs_as_much_as_in_one(first: Decimal, second: Decimal) -> None:
    price, months = usd("23.55"), Decimal("7.5")
    apart = storage.storage_cost(first, months, price) + storage.storage_cost(second, months, price)
    assert apart == storage.storage_cost(first + second, months, price)


def test_a_price_per_gib_is_one_per_931_3_gib_of_a_tb() -> None:
    per_tb = storage.price_per_tb_from_price_per_gib(usd(1))
    assert per_tb.amount == Decimal("931.322574615478515625")


@pytest.mark.parametrize("terabytes", ["-1", "NaN", "Infinity"])
def test_impossible_amounts_of_data_are_refused(terabytes: str) -> None:
    with pytest.raises(QuantityError, match="terabytes"):
        storage.storage_cost(Decimal(terabytes), Decimal(1), usd(23))
    with pytest.raises(QuantityError, match="terabytes"):
        transfer.transfer_cost(Decimal(terabytes), usd("0.09"))


def test_egress_is_charged_above_what_is_free() -> None:
    price = usd("0.09")
    assert transfer.egress_cost(Decimal(1), price) == usd(90)
    assert transfer.egress_cost(Decimal(1), price, free_gb=Decimal(100)) == usd(81)
    assert transfer.egress_cost(Decimal("0.05"), price, free_gb=Decimal(100)) == usd(0)


def test_a_nat_gateway_takes_its_price_for_every_epoch_that_no_cache_holds() -> None:
    price = usd("0.045")
    assert transfer.nat_leak_cost(Decimal(1350), price, epochs=1) == usd(60_750)
    assert transfer.nat_leak_cost(Decimal(1350), price, epochs=3) == usd(182_250)
    cached = transfer.nat_leak_cost(Decimal(1350), price, epochs=3, cached_fraction=Decimal(1))
    assert cached == usd(60_750)
    assert transfer.nat_leak_cost(Decimal(1350), price, epochs=0) == usd(0)


def test_training_beside_another_region_pays_in_every_epoch() -> None:
    assert transfer.inter_region_cost(Decimal(1350), usd("0.02"), epochs=2) == usd(54_000)

"""Pages, REST doors and commands of prices and rates: who may, and what they are told."""

import io
import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.urls import reverse

from billing.models import ExchangeRate, Price
from billing.price_documents import price_template, rate_template
from billing.services import add_exchange_rate, add_price
from projects.records import OrganisationRole, Scope, TokenReach
from tests.billing.builders import operator
from tests.billing.price_builders import price_csv, price_row, price_wish, rate_wish
from tests.builders import person, project, signed_in, token, with_token

pytestmark = pytest.mark.django_db
HAND = {
    "cost_class": "accelerator",
    "accelerator_key": "h100-sxm-80gb",
    "price": "2.50",
    "currency": "USD",
    "unit": "",
    "purchase": "contract",
    "provider": "",
    "region": "",
    "instance_type": "",
    "valid_from": "2026-01-01",
    "valid_to": "",
    "source": "Contract 12",
    "source_date": "",
    "book": "Contract 12",
    "note": "",
}


@pytest.fixture
def admin():
    return signed_in(person("admin", role=OrganisationRole.ADMIN))


@pytest.fixture
def member():
    return signed_in(person("moe"))


def page(client, name: str, **query: str) -> str:
    answer = client.get(reverse(name), query)
    assert answer.status_code == 200
    return answer.content.decode()


def test_a_member_sees_prices_with_their_sources_but_no_way_to_change_them(member):
    add_price(operator(), price_wish("2.5"), book="Contract 12")

    shown = page(member, "prices")

    for words in ("Contract 12", "$2.50", "shipped", "AWS EC2 on-demand price list"):
        assert words in shown
    assert reverse("price_new") not in shown
    assert member.get(reverse("price_new")).status_code == 403
    assert member.post(reverse("price_new"), HAND).status_code == 403
    assert member.post(reverse("exchange_rate_new"), {}).status_code == 403


def test_prices_are_filtered_by_class_provider_and_day(member):
    shown = page(member, "prices", cost_class="accelerator", provider="aws", on="2024-01-01")

    assert "$12.29" in shown
    assert "$6.88" not in shown
    assert "CoreWeave GPU" not in shown
    assert "$225.00" not in shown
    assert "No price like that" in page(member, "prices", on="1999-01-01")


def test_small_prices_keep_their_decimals(member):
    shown = page(member, "prices", cost_class="request_put")
    assert "$0.005" in shown
    assert "$0.00<" not in shown


def test_a_price_is_added_by_hand(admin):
    answer = admin.post(reverse("price_new"), HAND)

    assert answer.status_code == 302
    price = Price.objects.get()
    assert (price.unit, price.book.name, price.purchase) == (
        "accelerator_h",
        "Contract 12",
        "contract",
    )


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"price": "2,5"}, "price"),
        ({"valid_from": "soon"}, "valid_from"),
        ({"currency": "DOL"}, "currency"),
        ({"unit": "gb"}, "unit"),
        ({"accelerator_key": ""}, "accelerator_key"),
        ({"book": "Shipped list"}, "book"),
    ],
)
def test_a_wrong_price_is_told_at_its_field(admin, changed, field):
    answer = admin.post(reverse("price_new"), {**HAND, **changed})

    assert answer.status_code == 200
    assert field in answer.context["form"].errors
    assert not Price.objects.exists()


def test_a_price_list_is_uploaded(admin):
    file = SimpleUploadedFile("list.csv", price_csv(price_row(), price_row(region="us-west-2")))

    answer = admin.post(reverse("price_new"), {"file": file, "into_book": "Contract"}, follow=True)

    assert "2 new rows, 0 known already" in answer.content.decode()
    assert Price.objects.count() == 2


def test_a_wrong_price_list_is_told_row_and_column(admin):
    file = SimpleUploadedFile("list.csv", price_csv(price_row(), price_row(price="free")))

    answer = admin.post(reverse("price_new"), {"file": file, "into_book": "Contract"})

    assert "list.csv, row 3, column price" in answer.context["file_form"].errors["file"][0]
    assert not Price.objects.exists()


def test_the_templates_can_be_imported_as_they_are(admin):
    assert admin.get(reverse("price_template")).content.decode() == price_template()
    prices = SimpleUploadedFile("prices.csv", price_template().encode())
    rates = SimpleUploadedFile("rates.csv", rate_template().encode())

    admin.post(reverse("price_new"), {"file": prices, "into_book": "Contract"})
    admin.post(reverse("exchange_rate_new"), {"file": rates, "file_source": ""})

    assert (Price.objects.count(), ExchangeRate.objects.count()) == (2, 1)


def test_the_history_of_a_price_withdraws_a_wrong_one(admin):
    price = add_price(operator(), price_wish("25"))
    query = {"cost_class": "accelerator", "accelerator_key": "h100-sxm-80gb"}
    shown = page(admin, "price_history", **query, purchase="on_demand")
    assert "$25.00" in shown

    address = reverse("price_withdraw", args=[price.pk])
    assert address in shown
    assert admin.post(address, {"reason": "a slip"}).status_code == 302
    assert admin.post(address, {"reason": "again"}).status_code == 404
    assert "$25.00" not in page(admin, "price_history", **query, purchase="on_demand")
    assert "$25.00" not in page(admin, "prices")


def test_a_member_cannot_withdraw(member):
    price, rate = add_price(operator(), price_wish()), add_exchange_rate(operator(), rate_wish())

    assert member.post(reverse("price_withdraw", args=[price.pk])).status_code == 403
    assert member.post(reverse("exchange_rate_withdraw", args=[rate.pk])).status_code == 403


def test_an_exchange_rate_is_added_by_hand_and_withdrawn(admin):
    sent = {"base": "USD", "quote": "CNY", "rate": "7.1", "date": "2026-01-02", "source": "Bank"}

    assert admin.post(reverse("exchange_rate_new"), sent).status_code == 302
    assert "7.10" in page(admin, "prices")
    rate = ExchangeRate.objects.get()
    assert admin.post(reverse("exchange_rate_withdraw", args=[rate.pk])).status_code == 302
    assert "7.10" not in page(admin, "prices")


def test_a_wrong_exchange_rate_is_told_at_its_field(admin):
    sent = {"base": "USD", "quote": "USD", "rate": "1", "date": "2026-01-02", "source": "Bank"}
    answer = admin.post(reverse("exchange_rate_new"), sent)
    assert "quote" in answer.context["form"].errors


def test_hostile_text_of_a_price_stays_text(member):
    hostile = "<img src=x onerror=alert(1)>"
    add_price(operator(), price_wish(source=hostile, note=hostile, instance_type=hostile))
    assert "<img src" not in page(member, "prices")


def send(client, path: str, document: dict, *, key: str | None = None):
    headers = {"Idempotency-Key": key} if key else {}
    return client.post(
        f"/api/v1/{path}", document, content_type="application/json", headers=headers
    )


def test_the_api_states_prices_and_reads_them():
    client = with_token(token(Scope.ADMIN_ORG))

    made = send(client, "prices", {"book": "Contract", "prices": [price_row()]})
    again = send(client, "prices", {"book": "Contract", "prices": [price_row()]})

    assert (made.status_code, again.status_code) == (201, 200)
    assert made.json() == {"book": "Contract", "rows": 1, "added": 1, "unchanged": 0}
    read = client.get("/api/v1/prices?on=2026-06-01&cost_class=accelerator&provider=aws").json()
    own = [one for one in read["prices"] if not one["is_shipped"]]
    assert [(one["price"], one["currency"], one["book"]) for one in own] == [
        ("2.5", "USD", "Contract")
    ]


def test_the_api_refuses_prices_with_row_and_field():
    client = with_token(token(Scope.ADMIN_ORG))

    wrong = send(client, "prices", {"prices": [price_row(), price_row(price="free")]})
    number = send(client, "prices", {"prices": [{**price_row(), "price": 2.5}]})

    assert wrong.status_code == number.status_code == 400
    assert (wrong.json()["row"], wrong.json()["field"]) == ("2", "price")
    assert "as text" in number.json()["message"]
    assert client.get("/api/v1/prices?on=yesterday").status_code == 400
    assert client.get("/api/v1/prices?cost_class=gpu").status_code == 400
    assert not Price.objects.exists()


def test_the_api_replays_an_answer_under_its_key():
    client = with_token(token(Scope.ADMIN_ORG))
    document = {"prices": [price_row()]}

    first, again = (send(client, "prices", document, key="k1") for _time in range(2))

    assert (first.status_code, again.status_code) == (201, 201)
    assert again.headers["Idempotent-Replayed"] == "true"


def test_the_api_states_exchange_rates_and_converts_pairs():
    client = with_token(token(Scope.ADMIN_ORG))
    row = {"date": "2026-01-02", "base": "USD", "quote": "CNY", "rate": "8", "source": "Bank"}

    assert send(client, "exchange_rates", {"exchange_rates": [row]}).status_code == 201
    assert send(client, "exchange_rates", {"exchange_rates": [row]}).status_code == 200
    read = client.get("/api/v1/exchange_rates?base=cny&quote=usd&on=2026-02-01").json()
    assert read["exchange_rates"][0] == {
        "rate_id": str(ExchangeRate.objects.get().pk),
        "date": "2026-01-02",
        "base": "CNY",
        "quote": "USD",
        "rate": "0.125",
        "source": "Bank",
        "derivation": "inverse",
    }
    assert len(client.get("/api/v1/exchange_rates").json()["exchange_rates"]) == 1


@pytest.mark.parametrize("path", ["prices", "exchange_rates"])
def test_tokens_read_with_a_reading_scope_and_write_with_the_administrators(path):
    reader = with_token(token(Scope.READ_COSTS))
    stranger = with_token(token(Scope.INGEST_POWER))
    project("moe")
    narrow = with_token(token(Scope.READ_COSTS, reach=TokenReach(project_slug="moe")))

    assert reader.get(f"/api/v1/{path}").status_code == 200
    assert send(reader, path, {"prices": [price_row()]}).status_code == 403
    assert stranger.get(f"/api/v1/{path}").status_code == 403
    assert narrow.get(f"/api/v1/{path}").status_code == 403


def test_the_commands_import_files(tmp_path):
    prices, rates = tmp_path / "prices.csv", tmp_path / "rates.csv"
    prices.write_bytes(price_csv(price_row()))
    rates.write_text(rate_template(), encoding="utf-8")
    said, told = io.StringIO(), io.StringIO()

    call_command("import_prices", str(prices), book="Contract", json=True, stdout=said)
    call_command("import_exchange_rates", str(rates), json=True, stdout=told)

    assert json.loads(said.getvalue()) == {
        "file": "prices.csv",
        "book": "Contract",
        "rows": 1,
        "added": 1,
        "unchanged": 0,
    }
    assert json.loads(told.getvalue())["added"] == 1


def test_the_commands_say_what_is_wrong(tmp_path):
    wrong = tmp_path / "wrong.csv"
    wrong.write_bytes(price_csv(price_row(price="free")))
    with pytest.raises(CommandError, match=r"Nothing imported.*wrong\.csv, row 2, column price"):
        call_command("import_prices", str(wrong))
    with pytest.raises(CommandError, match="lacks this column"):
        call_command("import_exchange_rates", str(wrong))
    with pytest.raises(CommandError, match="cannot be read"):
        call_command("import_prices", str(tmp_path / "absent.csv"))

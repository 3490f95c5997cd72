"""Loopback servers that speak the documented requests and answers of the providers' price lists.

AWS Price List Query API: JSON 1.1 protocol, target AWSPriceListService.GetProducts, PriceList as
JSON texts (https://docs.aws.amazon.com/awsaccountbilling/latest/aboutv2/using-price-list-query-api.html).
Cloud Billing Catalog API: GET v1/services and v1/services/ID/skus
(https://cloud.google.com/billing/docs/reference/rest/v1/services.skus/list).
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

AWS_STATUS = {
    "AccessDeniedException": 400,
    "ThrottlingException": 400,
    "InternalErrorException": 500,
}


@dataclass(slots=True)
class PriceServer:
    """What a server lists, what it was asked, and the faults that its next answers have."""

    address: str = ""
    page_rows: int = 100
    products: list[dict[str, Any]] = field(default_factory=list)
    services: list[dict[str, Any]] = field(default_factory=list)
    skus: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    asked: list[dict[str, Any]] = field(default_factory=list)
    faults: list[Any] = field(default_factory=list)  # one an answer: None, a code, or raw text
    broken_page: int | None = None  # the page of this number, from 1, is no JSON


@contextmanager
def aws_price_list(*products: dict[str, Any]) -> Iterator[PriceServer]:
    """The AWS Price List Query API on loopback."""
    state = PriceServer(products=list(products))
    with _served(state, _AwsHandler):
        yield state


@contextmanager
def gcp_catalogue(**skus: list[dict[str, Any]]) -> Iterator[PriceServer]:
    """The Cloud Billing Catalog API on loopback; `compute` and `storage` are lists of SKUs."""
    ids = {"compute": "6F81-5844-456A", "storage": "95FF-2EF5-5EA1"}
    names = {"compute": "Compute Engine", "storage": "Cloud Storage"}
    services = [
        {"name": f"services/{ids[key]}", "serviceId": ids[key], "displayName": names[key]}
        for key in ids
    ]
    other = {"name": "services/0000-0000-0000", "serviceId": "0000-0000-0000", "displayName": "X"}
    state = PriceServer(
        services=[other, *services], skus={ids[key]: skus.get(key, []) for key in ids}
    )
    with _served(state, _GcpHandler):
        yield state


@contextmanager
def _served(state: PriceServer, handler: type["_Handler"]) -> Iterator[None]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (handler,), {"state": state}))
    server.daemon_threads = True
    state.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    state: PriceServer

    def log_message(self, *args: Any) -> None:
        """Keep the tests' output quiet."""

    def answer(self, status: int, document: Any, kind: str = "application/json") -> None:
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def page(self, rows: list[Any], start: int) -> tuple[list[Any], str]:
        end = start + self.state.page_rows
        return rows[start:end], str(end) if end < len(rows) else ""


class _AwsHandler(_Handler):
    def do_POST(self) -> None:
        state = self.state
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        target = self.headers["X-Amz-Target"]
        state.asked.append({"target": target, "auth": self.headers.get("Authorization"), **asked})
        fault = state.faults.pop(0) if state.faults else None
        if fault is not None:
            document = {"__type": fault, "Message": "it says so"}
            self.answer(AWS_STATUS[fault], document, "application/x-amz-json-1.1")
            return
        wanted = {one["Field"]: one["Value"] for one in asked["Filters"]}
        found = [one for one in state.products if _fits(one, asked["ServiceCode"], wanted)]
        rows, following = self.page(found, int(asked.get("NextToken") or 0))
        texts = [one if isinstance(one, str) else json.dumps(one) for one in rows]
        document = {"FormatVersion": "aws_v1", "PriceList": texts}
        self.answer(
            200,
            document | ({"NextToken": following} if following else {}),
            "application/x-amz-json-1.1",
        )


def _fits(product: dict[str, Any], service: str, wanted: dict[str, str]) -> bool:
    attributes = {
        **product["product"]["attributes"],
        "productFamily": product["product"].get("productFamily", ""),
    }
    return product["serviceCode"] == service and all(
        attributes.get(name) == value for name, value in wanted.items()
    )


class _GcpHandler(_Handler):
    def do_GET(self) -> None:
        state = self.state
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        key = self.headers.get("x-goog-api-key")
        state.asked.append({"path": parts.path, "key": key, **query})
        fault = state.faults.pop(0) if state.faults else None
        if fault is not None:
            status = {403: "PERMISSION_DENIED", 429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE"}
            error = {"code": fault, "message": "it says so", "status": status[fault]}
            self.answer(fault, {"error": error})
            return
        start = int(query.get("pageToken") or 0)
        if parts.path == "/v1/services":
            rows, following = self.page(state.services, start)
            self.answer(200, {"services": rows, "nextPageToken": following})
            return
        service = parts.path.split("/")[3]
        rows, following = self.page(state.skus[service], start)
        if state.broken_page is not None and start // state.page_rows + 1 == state.broken_page:
            self.answer(200, b'{"skus": [{"name": "services/6F81')
            return
        self.answer(200, {"skus": rows, "nextPageToken": following})


def aws_product(
    sku: str,
    service: str,
    family: str,
    *,
    on_demand: list[dict[str, Any]] | None = None,
    reserved: list[dict[str, Any]] | None = None,
    **attributes: str,
) -> dict[str, Any]:
    """An entry of the price list; terms by `aws_term`."""
    terms: dict[str, Any] = {}
    for kind, given in (("OnDemand", on_demand), ("Reserved", reserved)):
        if given:
            terms[kind] = {f"{sku}.{n}": {"sku": sku, **one} for n, one in enumerate(given)}
    return {
        "product": {"productFamily": family, "attributes": attributes, "sku": sku},
        "serviceCode": service,
        "terms": terms,
        "version": "20260501000000",
        "publicationDate": "2026-05-01T00:00:00Z",
    }


def aws_term(
    *tiers: tuple[str, str],
    unit: str = "Hrs",
    effective: str = "2026-04-01",
    **attributes: str,
) -> dict[str, Any]:
    """A term whose tiers are (begins at, price)."""
    ends = [begin for begin, _price in tiers[1:]] + ["Inf"]
    return {
        "effectiveDate": f"{effective}T00:00:00Z",
        "offerTermCode": "JRTCKXETXF",
        "termAttributes": attributes,
        "priceDimensions": {
            f"rate-{number}": {
                "unit": unit,
                "beginRange": begin,
                "endRange": end,
                "description": "words",
                "appliesTo": [],
                "rateCode": f"rate-{number}",
                "pricePerUnit": {"USD": price},
            }
            for number, ((begin, price), end) in enumerate(zip(tiers, ends, strict=True))
        },
    }


def p5(price: str = "55.0400000000", *, effective: str = "2026-04-01", **options: Any) -> dict:
    """A p5.48xlarge in us-east-1, on demand."""
    return aws_product(
        "P5SKU",
        "AmazonEC2",
        "Compute Instance",
        on_demand=[aws_term(("0", price), effective=effective)],
        instanceType="p5.48xlarge",
        regionCode="us-east-1",
        operatingSystem="Linux",
        tenancy="Shared",
        preInstalledSw="NA",
        capacitystatus="Used",
        gpu="8",
        usagetype="BoxUsage:p5.48xlarge",
        **options,
    )


def gcp_sku(
    sku: str,
    description: str,
    *prices: str,
    usage_type: str = "OnDemand",
    unit: str = "h",
    family: str = "Compute",
    group: str = "GPU",
    regions: tuple[str, ...] = ("us-central1",),
    effective: str = "2026-05-03T07:00:00Z",
    starts: tuple[float, ...] = (),
) -> dict[str, Any]:
    """A SKU with a tier for each price; a price is written in plain digits."""
    tiers = [
        {
            "startUsageAmount": starts[number] if starts else number * 100,
            "unitPrice": {"currencyCode": "USD", **_units(price)},
        }
        for number, price in enumerate(prices)
    ]
    return {
        "name": f"services/X/skus/{sku}",
        "skuId": sku,
        "description": description,
        "category": {
            "serviceDisplayName": "Compute Engine",
            "resourceFamily": family,
            "resourceGroup": group,
            "usageType": usage_type,
        },
        "serviceRegions": list(regions),
        "pricingInfo": [
            {
                "effectiveTime": effective,
                "summary": "",
                "pricingExpression": {
                    "usageUnit": unit,
                    "displayQuantity": 1,
                    "tieredRates": tiers,
                    "usageUnitDescription": unit,
                    "baseUnit": "s",
                    "baseUnitConversionFactor": 3600,
                },
                "currencyConversionRate": 1,
            }
        ],
        "serviceProviderName": "Google",
    }


def _units(price: str) -> dict[str, Any]:
    whole, _point, rest = price.partition(".")
    return {"units": whole, "nanos": int((rest + "0" * 9)[:9])}

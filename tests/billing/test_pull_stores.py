"""Bills in Google Cloud Storage, Azure Blob and other stores, by the libraries' real transport."""

import base64
import json
from types import SimpleNamespace

import pytest

from billing.connectors import Allowed, Connection, ConnectorError, connector_for, store_systems
from tests.billing.object_servers import Objects, azure, azure_error, google, google_error
from tests.billing.pull_builders import azure_manifest

LISTED = Allowed(hosts=frozenset({"127.0.0.1"}))
ACCOUNT_KEY = base64.b64encode(b"a key of the tests").decode()


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch):
    for name in ("STORAGE_EMULATOR_HOST", "AZURE_STORAGE_CONNECTION_STRING", "http_proxy"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def objects():
    return Objects()


@pytest.fixture(params=["gcs", "azure_blob"])
def kind(request, monkeypatch):
    async def no_time(_seconds):
        """Wait for nothing."""

    monkeypatch.setattr("gcsfs.retry.asyncio", SimpleNamespace(sleep=no_time))
    monkeypatch.setattr(store_systems, "TRIES", 2)
    return request.param


@pytest.fixture
def server(kind, objects):
    running = {"gcs": google, "azure_blob": azure}[kind](objects)
    yield running
    running.close()


def connector(kind, server, *, allowed=LISTED, **settings):
    if kind == "gcs":
        return connector_for(
            Connection(
                kind="gcs",
                settings={"bucket": "bills", "endpoint_url": server.url, "anonymous": True}
                | settings,
                allowed=allowed,
            )
        )
    return connector_for(
        Connection(
            kind="azure_blob",
            settings={
                "account_name": "account",
                "container": "bills",
                "endpoint_url": f"{server.url}/account",
            }
            | settings,
            secret={"account_key": ACCOUNT_KEY},
            allowed=allowed,
        )
    )


def is_listing(asked):
    return asked.path.endswith("/o") or asked.query.get("comp") == ["list"]


def refused(kind, status, google_says, azure_code):
    return google_error(status, google_says) if kind == "gcs" else azure_error(status, azure_code)


def read_all(connector):
    units = list(connector.units({}))
    return {one.key: b"".join(connector.open(one)) for unit in units for one in unit.objects}


def test_files_below_the_prefix_are_read(kind, server, objects):
    objects.page = 2
    for number in range(5):
        objects.put(f"exports/2026-05/part-{number}.csv", f"x\n{number}\n".encode())
    objects.put("other/2026-05/x.csv", b"not ours")

    found = read_all(connector(kind, server, prefix="exports"))

    assert found == {f"exports/2026-05/part-{n}.csv": f"x\n{n}\n".encode() for n in range(5)}


def test_a_large_object_is_read_in_parts(kind, server, objects, monkeypatch):
    monkeypatch.setattr("billing.connectors.stores.CHUNK_BYTES", 1000)
    content = bytes(range(256)) * 20
    objects.put("2026-05/large.csv", content)

    assert read_all(connector(kind, server)) == {"2026-05/large.csv": content}


def test_an_azure_manifest_is_followed(kind, server, objects):
    run = "exports/daily/20260501-20260531/r1"
    objects.put(f"{run}/part_0.csv", b"x\n1\n")
    manifest = azure_manifest("r1", {f"{run}/part_0.csv": 4}, submitted="2026-05-20T06:00:00Z")
    objects.put(f"{run}/manifest.json", manifest)

    (unit,) = connector(kind, server).units({})

    assert unit.problem is None
    assert (unit.period, [one.size for one in unit.objects]) == ("2026-05", [4])
    assert unit.version_at.isoformat() == "2026-05-20T06:00:00+00:00"


@pytest.mark.parametrize("name", ["a*.csv", "a[1].csv", "a'; --.csv", "ä 中.csv", "a%2e.csv"])
def test_s07_quotes_and_globs_in_names_mean_themselves(kind, server, objects, name):
    objects.put(f"2026-05/{name}", b"x\n1\n")
    objects.put("2026-05/abc.csv", b"x\n2\n")

    assert read_all(connector(kind, server))[f"2026-05/{name}"] == b"x\n1\n"


def test_s08_an_object_that_is_replaced_after_the_listing_is_noticed(kind, server, objects):
    objects.put("2026-05/a.csv", b"x\n1\n")
    store = connector(kind, server)
    (unit,) = store.units({})
    objects.put("2026-05/a.csv", b"x\n2\n")

    with pytest.raises(ConnectorError) as changed:
        list(store.open(unit.objects[0]))

    assert changed.value.code == "changed"
    assert changed.value.is_incomplete


def test_s09_a_missing_permission_is_named(kind, server, objects):
    objects.put("2026-05/a.csv", b"x\n1\n")
    says = (
        "bills@x.iam.gserviceaccount.com does not have storage.objects.list access to the Google "
        "Cloud Storage bucket. Permission 'storage.objects.list' denied on resource."
    )
    objects.fault = lambda asked: (
        refused(kind, 403, says, "AuthorizationPermissionMismatch") if is_listing(asked) else None
    )

    report = connector(kind, server, prefix="2026-05").check()

    assert [(step.name, step.ok) for step in report.steps] == [("reach", True), ("list", False)]
    wanted = {"gcs": "storage.objects.list on gs://bills", "azure_blob": "blobs/read"}[kind]
    assert wanted in report.steps[-1].missing_permission


def test_s09_an_unknown_credential_is_permanent(kind, server, objects):
    objects.fault = lambda _asked: refused(kind, 401, "Nope", "InvalidAuthenticationInfo")

    with pytest.raises(ConnectorError) as failure:
        list(connector(kind, server).units({}))

    assert (failure.value.code, failure.value.permanent) == ("credentials", True)


def test_s10_a_store_that_asks_to_slow_down_is_asked_again_and_then_given_up(kind, server, objects):
    objects.put("2026-05/a.csv", b"x\n1\n")
    left = [1]

    def slow(asked):
        if is_listing(asked) and left[0]:
            left[0] -= 1
            return refused(kind, 429 if kind == "gcs" else 503, "slow", "ServerBusy")
        return None

    objects.fault = slow
    assert read_all(connector(kind, server))
    left[0] = 1000
    asked_before = len(server.asked)
    with pytest.raises(ConnectorError) as failure:
        list(connector(kind, server).units({}))

    assert (failure.value.code, failure.value.permanent) == ("throttled", False)
    assert len(server.asked) - asked_before < 20


def test_s15_a_listing_that_breaks_at_its_second_page_gives_nothing(kind, server, objects):
    objects.page = 1
    objects.put("2026-05/a.csv", b"x\n1\n")
    objects.put("2026-06/a.csv", b"x\n1\n")
    objects.fault = lambda asked: (
        refused(kind, 500, "broken", "InternalError")
        if {"pageToken", "marker"} & set(asked.query)
        else None
    )

    with pytest.raises(ConnectorError) as failure:
        list(connector(kind, server).units({}))

    assert not failure.value.permanent


def test_s11_another_address_than_the_provider_s_must_be_listed(kind, server):
    with pytest.raises(ConnectorError) as failure:
        list(connector(kind, server, allowed=Allowed()).units({}))

    assert failure.value.code == "endpoint"


@pytest.mark.parametrize(
    "key",
    [
        "no json",
        json.dumps({"type": "external_account", "token_url": "http://169.254.169.254/"}),
        json.dumps({"type": "service_account", "token_uri": "http://169.254.169.254/"}),
    ],
)
def test_a_google_key_that_could_lead_elsewhere_is_refused(key):
    connection = Connection(
        kind="gcs", settings={"bucket": "bills"}, secret={"service_account_json": key}
    )
    with pytest.raises(ConnectorError) as failure:
        list(connector_for(connection).units({}))

    assert failure.value.code == "credentials"


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("file:///etc", {}),
        ("memory://x", {}),
        ("simplecache::file:///etc", {}),
        ("ftp://127.0.0.1/x", {}),
        ("ftp://ftp.example.invalid/x", {}),
        ("sftp://not-listed/x", {}),
        ("ftp://8.8.8.8/x", {"fo": "/etc/passwd"}),
        ("ftp://8.8.8.8/x", {"host": "127.0.0.1"}),
        ("ftp://8.8.8.8/x", {"proxy": "http://10.0.0.1"}),
        ("/etc", {}),
    ],
)
def test_other_stores_open_only_what_the_operator_lists(url, options):
    allowed = Allowed(protocols=frozenset({"ftp", "file", "memory"}))
    connection = Connection(
        kind="fsspec", settings={"url": url, "options": options}, allowed=allowed
    )

    with pytest.raises(ConnectorError) as failure:
        list(connector_for(connection).units({}))

    assert failure.value.code in ("settings", "endpoint")

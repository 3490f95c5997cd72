"""What a connection may reach, what its test says, and how listings become units."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from billing.connectors import Allowed, Connection, ConnectorError, connector_for, s3_client
from billing.connectors.grouping import Listed, Store, units_of
from billing.connectors.manifests import guard_key, read_manifest
from billing.connectors.network import guard_url, is_public
from tests.billing.pull_builders import azure_manifest, cur_manifest, export_manifest, s3_connection
from tests.billing.stores import BUCKET, s3_error

NOW = datetime(2026, 6, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254",
        "http://localhost:9000",
        "http://127.0.0.1",
        "http://2130706433",
        "http://0x7f.1",
        "http://0177.0.0.1",
        "http://127.1",
        "http://0",
        "http://[::1]",
        "http://[::ffff:127.0.0.1]",
        "http://[64:ff9b::7f00:1]",
        "http://[2002:7f00:1::]",
        "http://[::127.0.0.1]",
        "http://100.64.0.1",
        "http://192.0.0.192",
        "http://224.0.0.1",
        "http://10.0.0.1",
        "http://[fd00::1]",
        "http://[fe80::1%25lo]",
        "file:///etc/passwd",
        "gopher://8.8.8.8",
        "http://user:word@8.8.8.8",
        "http://8.8.8.8:22",
        "http://8.8.8.8\r\nHost: x",
        "http://",
        "no address",
        "http://8.8.8.8:99999",
    ],
)
def test_s11_a_private_or_odd_address_is_refused(url):
    with pytest.raises(ConnectorError) as refused:
        guard_url(url, ())

    assert refused.value.code == "endpoint"
    assert refused.value.permanent


@pytest.mark.parametrize("listed", ["127.0.0.1", "127.0.0.0/8"])
def test_s11_what_the_operator_lists_may_be_reached(listed):
    guard_url("http://127.0.0.1:9000", (listed,))


def test_public_addresses_are_told_from_others():
    assert is_public("8.8.8.8")
    assert is_public("2606:4700::1111")
    assert is_public("64:ff9b::808:808")


def test_s11_a_name_that_answers_otherwise_when_asked_again_is_caught_at_the_socket(
    s3, monkeypatch
):
    monkeypatch.setattr("billing.connectors.s3.guard_url", lambda _url, _listed: None)
    connection = s3_connection(s3.url)
    rebound = Connection(
        kind="s3", settings=connection.settings, secret=connection.secret, allowed=Allowed()
    )

    with pytest.raises(ConnectorError, match="private address"):
        list(connector_for(rebound).units({}))


def test_the_test_of_a_connection_goes_through_every_step(s3):
    s3.put("a/2026-05/x.csv", b"x,y\n1,2\n")
    s3.put("a/2026-05/manifest.json", json.dumps({"files": ["x.csv"]}).encode())

    report = connector_for(s3_connection(s3.url, prefix="a/")).check()

    assert report.ok
    assert [step.name for step in report.steps] == ["reach", "list", "manifest", "read"]


@pytest.fixture
def poor_user(s3):
    """Makes a user with one policy, and has the server enforce it."""
    iam = s3.client("iam")

    def make(*statements):
        iam.create_user(UserName="poor")
        iam.put_user_policy(
            UserName="poor",
            PolicyName="bills",
            PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": list(statements)}),
        )
        key = iam.create_access_key(UserName="poor")["AccessKey"]
        s3.enforce_access()
        return {
            "access_key_id": key["AccessKeyId"],
            "secret_access_key": key["SecretAccessKey"],
        }

    yield make
    s3.stop_enforcing()


def test_the_test_of_a_connection_names_the_missing_permission_to_list(s3, poor_user):
    s3.put("a/x.csv", b"x\n1\n")
    keys = poor_user({"Effect": "Allow", "Action": "s3:GetObject", "Resource": "*"})

    report = check_with(s3, keys)

    assert [(step.name, step.ok) for step in report.steps] == [("reach", True), ("list", False)]
    assert report.steps[-1].missing_permission == f"s3:ListBucket on arn:aws:s3:::{BUCKET}"


def test_the_test_of_a_connection_names_the_missing_permission_to_read(s3, poor_user):
    s3.put("a/x.csv", b"x\n1\n")
    keys = poor_user({"Effect": "Allow", "Action": "s3:ListBucket", "Resource": "*"})

    report = check_with(s3, keys)

    assert report.steps[-1].name == "read"
    assert report.steps[-1].missing_permission == f"s3:GetObject on arn:aws:s3:::{BUCKET}/a/*"


def check_with(s3, keys):
    connection = s3_connection(s3.url, prefix="a/")
    return connector_for(
        Connection(kind="s3", settings=connection.settings, secret=keys, allowed=connection.allowed)
    ).check()


def test_the_test_of_a_connection_names_the_key_that_may_not_be_used(s3, proxy, monkeypatch):
    monkeypatch.setattr(s3_client, "TRIES", 1)
    s3.put("a/x.csv", b"x\n1\n")
    arn = "arn:aws:kms:us-east-1:123456789012:key/1"
    said = (
        "User: arn:aws:iam::123456789012:user/bills is not authorized to perform: kms:Decrypt "
        f"on resource: {arn} because no identity-based policy allows the kms:Decrypt action"
    )
    proxy.rules.append(
        lambda asked: s3_error(403, "AccessDenied", said) if asked.is_get_of(".csv") else None
    )

    report = connector_for(s3_connection(proxy.url, prefix="a/")).check()

    assert report.steps[-1].missing_permission == f"kms:Decrypt on {arn}"


def test_the_test_of_a_connection_without_credentials_says_so(s3):
    connection = s3_connection(s3.url)
    report = connector_for(
        Connection(kind="s3", settings=connection.settings, allowed=connection.allowed)
    ).check()

    assert [step.ok for step in report.steps] == [False]
    assert "no credential" in report.steps[0].message


@pytest.mark.parametrize(
    "given_settings",
    [
        {},
        {"bucket": "../x"},
        {"bucket": "bills", "region": "evil.example/"},
        {"bucket": "bills", "role_arn": "role"},
    ],
)
def test_settings_that_cannot_be_are_refused_before_anything_is_reached(given_settings):
    with pytest.raises(ConnectorError) as refused:
        connector_for(Connection(kind="s3", settings=given_settings))

    assert refused.value.code == "settings"


def grouped(files, *, is_copy=False, now=NOW):
    """The units of a listing; a file is given by its bytes, or by how large and old it is."""
    listing = [
        Listed(
            key=key,
            size=len(content) if isinstance(content, bytes) else 10,
            etag=str(number),
            modified_at=NOW - timedelta(days=2) + timedelta(minutes=number),
        )
        for number, (key, content) in enumerate(files.items())
    ]
    store = Store(place=BUCKET, read=lambda one: files[one.key], is_copy=is_copy, now=now)
    return {unit.key: unit for unit in units_of(listing, store)}


def keys(unit):
    return [one.key for one in unit.objects]


def test_a_plain_folder_is_grouped_by_month_folders_and_months_in_names():
    units = grouped(
        {
            "p/2026-05/a.csv": 1,
            "p/2026-05/b.parquet": 1,
            "p/202606/a.csv": 1,
            "p/2026/07/day=01/a.csv.gz": 1,
            "p/BILLING_PERIOD=2026-08/a.csv": 1,
            "p/bill-2026-09-part1.csv": 1,
            "p/bill-2026-09-part2.csv": 1,
            "p/other.csv": 1,
            "p/README.md": 1,
            "p/_SUCCESS": 1,
        }
    )

    assert {key: len(unit.objects) for key, unit in units.items()} == {
        "p/2026-05": 2,
        "p/202606": 1,
        "p/2026/07": 1,
        "p/BILLING_PERIOD=2026-08": 1,
        "p/2026-09": 2,
        "p/other.csv": 1,
    }
    assert units["p/BILLING_PERIOD=2026-08"].period == "2026-08"
    assert units["p/2026-05"].period is None, "the folder's month may be that of the export"


def test_runs_of_one_month_without_a_manifest_are_states_not_parts():
    run = "p/daily/20260501-20260531/daily_{}.csv"
    first, second = "0" * 8 + "-0000-0000-0000-" + "1" * 12, "0" * 8 + "-0000-0000-0000-" + "2" * 12
    units = grouped({run.format(first): 1, run.format(second): 1})

    (unit,) = units.values()
    assert keys(unit) == [run.format(second)]
    assert unit.origin["older_runs"] == 1


def test_where_manifests_are_files_beside_them_are_not_read_on_their_own():
    part = "r/20260501-20260601/a2/x-1.csv"
    units = grouped(
        {
            "r/20260501-20260601/a1/x-1.csv": b"old",
            part: b"new",
            "r/20260501-20260601/a1/x-Manifest.json": cur_manifest(
                "a1", ["r/20260501-20260601/a1/x-1.csv"]
            ),
            "r/20260501-20260601/a2/x-Manifest.json": cur_manifest("a2", [part]),
            "r/20260501-20260601/x-Manifest.json": cur_manifest("a2", [part]),
        }
    )

    (unit,) = units.values()
    assert (keys(unit), unit.period) == ([part], "2026-05")
    assert unit.fingerprint.startswith("a2:")


def test_the_newest_run_of_an_azure_export_is_told_by_its_own_time():
    old, new = "e/daily/20260501-20260531/r-old", "e/daily/20260501-20260531/r-new"
    units = grouped(
        {
            f"{old}/part_0.csv": b"1234567890",
            f"{new}/part_0.csv": b"1234567890",
            f"{new}/manifest.json": azure_manifest(
                "r-new", {f"{new}/part_0.csv": 10}, submitted="2026-05-20T06:49:06.5756051Z"
            ),
            f"{old}/manifest.json": azure_manifest(  # copied later
                "r-old", {f"{old}/part_0.csv": 10}, submitted="2026-05-19T06:49:06.5756051Z"
            ),
        }
    )

    (unit,) = units.values()
    assert keys(unit) == [f"{new}/part_0.csv"]
    assert unit.version_at == datetime(2026, 5, 20, 6, 49, 6, 575605, tzinfo=UTC)
    assert (unit.period, unit.origin["dataset"]) == ("2026-05", "FocusCost")


def test_a_data_export_is_read_by_its_manifest_and_partition():
    key = "x/data/BILLING_PERIOD=2026-05/x-00001.csv.gz"
    units = grouped(
        {
            key: b"1",
            "x/metadata/BILLING_PERIOD=2026-05/x-Manifest.json": export_manifest("e1", [key]),
        }
    )

    (unit,) = units.values()
    assert (keys(unit), unit.period) == ([key], "2026-05")
    assert unit.origin["kind"] == "aws_data_export"


def test_an_export_that_is_being_written_waits():
    content = cur_manifest("a1", ["r/20260501-20260601/x-1.csv"])
    files = {
        "r/20260501-20260601/x-Manifest.json": content,
        "r/20260501-20260601/x-1.csv": b"newer than its manifest",
    }
    written = NOW - timedelta(days=2)

    (unit,) = grouped(files, now=written + timedelta(minutes=5)).values()
    assert unit.problem is not None
    assert unit.problem.code == "changed"
    (later,) = grouped(files, now=written + timedelta(hours=3)).values()
    assert later.problem is None, "a copy that brought the file later than the manifest"


def test_a_part_that_came_after_its_manifest_into_the_folder_of_its_run_is_taken():
    key = "r/20260501-20260601/a1/x-1.csv"
    files = {"r/20260501-20260601/x-Manifest.json": cur_manifest("a1", [key]), key: b"late"}

    (unit,) = grouped(files, now=NOW - timedelta(days=2) + timedelta(minutes=5)).values()

    assert unit.problem is None


def test_a_broken_manifest_that_is_newer_than_a_whole_one_stops_the_month():
    key = "r/20260501-20260601/a1/x-1.csv"
    units = grouped(
        {
            key: b"1",
            "r/20260501-20260601/a1/x-Manifest.json": cur_manifest("a1", [key]),
            "r/20260501-20260601/x-Manifest.json": b'{"assemblyId": "a2", "repo',
        }
    )

    (unit,) = units.values()
    assert unit.problem is not None
    assert unit.problem.code == "manifest"


MANIFEST_WORDS = [
    *("assemblyId", "reportKeys", "billingPeriod", "start", "dataFiles", "executionId"),
    *("blobs", "runInfo", "files", "key", "size", "total", "period", "version_at"),
]
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=10) | st.floats(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(MANIFEST_WORDS), inner, max_size=5)
    ),
    max_leaves=12,
)


def outcome(content):
    """What became of a manifest: None where it was read, else the code of the refusal."""
    try:
        read_manifest("m.json", content)
    except ConnectorError as error:
        return error.code
    return None


@given(st.binary(max_size=300))
def test_whatever_a_manifest_holds_it_is_read_or_refused(content):
    assert outcome(content) == "manifest"


@given(ANYTHING)
def test_whatever_shape_a_manifest_has_it_is_read_or_refused(document):
    assert outcome(json.dumps(document).encode()) in (None, "manifest", "key")


@pytest.mark.parametrize("key", ["a/../b", "..", "a/%2e%2e/b", "a\\..\\b", "a\nb", "", "./a"])
def test_a_key_that_climbs_is_refused(key):
    with pytest.raises(ConnectorError):
        guard_key(key)

"""Boundaries, hardware, contracts and residual mixes go out as one document and come in again."""

import copy

import pytest

from carbon.checks import verify
from carbon.configuration import apply, dump
from carbon.models import EmbodiedAsset, Instrument, ResidualMix, SiteBoundary
from carbon.site_factors import FactorError
from tests.builders import organisation
from tests.carbon.book_builders import hall, summary, used
from tests.carbon.builders import operator

pytestmark = pytest.mark.django_db
DOCUMENT = {
    "sites": [
        {
            "slug": "hall-1",
            "boundary": [{"ownership": "colocation", "market_zone": "Europe"}],
            "hardware": [
                {
                    "name": "DGX H100",
                    "accelerators": 8,
                    "kgco2e": 3504.0,
                    "kgco2e_low": None,
                    "kgco2e_high": None,
                    "purchased_on": "2025-01-01",
                    "lifetime_h": 35040.0,
                    "source": "maker",
                }
            ],
        }
    ],
    "instruments": [
        {
            "kind": "certificate",
            "name": "Wind 2025",
            "market_zone": "Europe",
            "first_day": "2025-01-01",
            "last_day": "2025-12-31",
            "energy_kwh": 30.0,
            "g_per_kwh": 0.0,
            "registry": "AIB",
            "serials": "GO-1 to GO-30",
            "retired_on": "2025-12-31",
            "hours_csv": "hour,energy_kwh\n2025-10-01T00:00Z,30.0\n",
        }
    ],
    "residual_mixes": [
        {"market_zone": "Europe", "year": 2025, "g_per_kwh": 460.0, "source": "AIB"}
    ],
}


@pytest.fixture
def place(tmp_path):
    found = hall(grid_g_per_kwh=400)
    used(tmp_path, 50, 50)
    return found


def counts():
    tables = (Instrument, ResidualMix, EmbodiedAsset, SiteBoundary)
    return [table.objects.count() for table in tables]


def test_a_document_comes_true_and_again_changes_nothing(place):
    apply(operator(), DOCUMENT)
    found = summary()
    assert found.scope_2_market_kgco2e == pytest.approx(70 * 0.46)
    assert found.embodied_kgco2e == pytest.approx(2 * 0.0125)
    assert [one.scope_category for one in found.scopes] == ["scope_2_colocation"]
    before = counts()
    apply(operator(), DOCUMENT)
    assert counts() == before == [1, 1, 1, 1]
    assert verify(organisation().pk) == ()


def test_what_goes_out_comes_in_unchanged(place):
    apply(operator(), DOCUMENT)
    told = dump(organisation().pk)
    assert told["instruments"] == DOCUMENT["instruments"]
    assert told["residual_mixes"] == DOCUMENT["residual_mixes"]
    assert told["sites"][0]["hardware"] == DOCUMENT["sites"][0]["hardware"]
    apply(operator(), told)
    assert counts() == [1, 1, 1, 1]
    assert dump(organisation().pk) == told


def test_what_differs_takes_the_place_of_what_was(place):
    apply(operator(), DOCUMENT)
    other = copy.deepcopy(DOCUMENT)
    other["instruments"][0]["g_per_kwh"] = 20.0
    other["sites"][0]["hardware"][0]["kgco2e"] = 7008.0
    apply(operator(), other)
    assert summary().scope_2_market_kgco2e == pytest.approx(70 * 0.46 + 30 * 0.02)
    assert summary().embodied_kgco2e == pytest.approx(2 * 0.025)
    assert verify(organisation().pk) == ()


def test_what_cannot_be_is_refused_and_named(place):
    wrong = {"instruments": [{**DOCUMENT["instruments"][0], "kind": "promise"}]}
    with pytest.raises(FactorError, match="instruments: An instrument is"):
        apply(operator(), wrong)
    with pytest.raises(FactorError, match=r"residual_mixes\.0\.year"):
        apply(operator(), {"residual_mixes": [{**DOCUMENT["residual_mixes"][0], "year": "x"}]})

"""Places to run at: reading one from text, and the list that plans are compared over; pure."""

from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from typing import Final

from carbon.factors import CloudRegion, cloud_name, cloud_regions, shipped_grid_factors

_AMERICAS: Final = frozenset({"BRA", "CAN", "CHL", "MEX", "USA"})
_ASIA_PACIFIC: Final = frozenset(
    {"AUS", "CHN", "HKG", "IDN", "IND", "JPN", "KOR", "MYS", "NZL", "SGP", "THA", "TWN"}
)
# Regions with accelerators to rent, and the low-carbon grids of the Nordics, France and Quebec.
_COMPARED: Final = (
    "aws:us-east-1", "aws:us-east-2", "aws:us-west-2", "aws:eu-north-1", "aws:eu-west-2",
    "aws:eu-west-3", "aws:eu-central-1", "aws:ap-northeast-1", "aws:ap-south-1",
    "aws:ap-southeast-2", "aws:sa-east-1",
    "gcp:us-central1", "gcp:us-east4", "gcp:us-west1", "gcp:northamerica-northeast1",
    "gcp:europe-north1", "gcp:europe-west4", "gcp:europe-west9", "gcp:asia-southeast1",
    "azure:eastus", "azure:southcentralus", "azure:westus3", "azure:westeurope",
    "azure:swedencentral", "azure:norwayeast", "azure:francecentral", "azure:uksouth",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Somewhere to run: a cloud's region, or a country (provider and region empty)."""

    provider: str
    region: str
    location: str
    country: str

    @property
    def key(self) -> str:
        """As it is written: "aws:us-east-1" or "SWE"."""
        return f"{self.provider}:{self.region}" if self.region else self.country


def geography_of(country: str) -> str:
    """Part of the world as providers report it: americas, apac or emea; empty for no country."""
    if not country:
        return ""
    if country in _AMERICAS:
        return "americas"
    return "apac" if country in _ASIA_PACIFIC else "emea"


@cache
def _countries() -> dict[str, str]:
    """Names of the countries that have a grid factor, by ISO 3166-1 alpha-3."""
    rows = (row for row in shipped_grid_factors() if row.zone_type == "country")
    return {row.zone: row.zone_name for row in rows}


def _place(known: CloudRegion) -> Place:
    return Place(
        provider=known.provider,
        region=known.region,
        location=known.location,
        country=known.country,
    )


def comparable_places() -> tuple[Place, ...]:
    """The regions over which the same run is shown side by side."""
    regions = cloud_regions()
    keys = (key.partition(":") for key in _COMPARED)
    return tuple(_place(regions[provider, region]) for provider, _, region in keys)


def place_from_text(text: str) -> Place:
    """The place that is meant by "aws:us-east-1", or by a country as "SWE".

    Raises:
        LookupError: no such region or country; the message names near ones.
    """
    wanted = text.strip()
    if ":" not in wanted:
        return _country_place(wanted)
    provider, _, region = wanted.partition(":")
    cloud, code = cloud_name(provider), region.strip().lower()
    known = cloud_regions().get((cloud, code))
    if known:
        return _place(known)
    clouds = sorted({name for name, _ in cloud_regions()})
    if cloud not in clouds:
        raise LookupError(
            f"No provider {provider.strip()!r} in the table of regions; write one of "
            f"{', '.join(clouds)}, as in aws:us-east-1, or a country, as in SWE"
        )
    names = [name for owner, name in cloud_regions() if owner == cloud]
    near = get_close_matches(code, names, n=5, cutoff=0.5) or sorted(names)[:5]
    raise LookupError(
        f"No region {code!r} of {cloud} in the table; near ones: "
        f"{', '.join(f'{cloud}:{name}' for name in near)}"
    )


def _country_place(text: str) -> Place:
    """A country by its three letters."""
    names = _countries()
    code = text.upper()
    if code in names:
        return Place(provider="", region="", location=names[code], country=code)
    owners = [f"{owner}:{name}" for owner, name in cloud_regions() if name == text.lower()]
    by_name = {name.lower(): found for found, name in names.items()}
    near = owners + [
        f"{by_name[name]} ({name.title()})"
        for name in get_close_matches(text.lower(), by_name, n=3, cutoff=0.7)
    ]
    near = near or get_close_matches(code, names, n=5, cutoff=0.6)
    hint = f"; near: {', '.join(near)}" if near else ""
    raise LookupError(
        f"No place {text!r}: write provider:region, as in aws:us-east-1, or the three letters of "
        f"a country, as in SWE{hint}"
    )

"""What is believed of power, host, PUE, grid, embodied and water: given, else named priors."""

from carbon.embodied import EmbodiedFactor
from carbon.plan_factors import PlaceFactor, PlaceFactors
from formulae.beliefs import Belief, Certain, Triangular
from planning.prior_rows import HardwareUse, hardware_use, metered_power
from planning.priors import Prior
from planning.spec import EstimateRequest, Quantity, belief_of
from runs.records import AcceleratorSpec


class Chosen:
    """Collects the priors that stood in for what was not given."""

    def __init__(self) -> None:
        self.priors: list[Prior] = []

    def given_or(self, given: Quantity | None, prior: Prior) -> Belief:
        """What was given, else the prior, which is noted."""
        if given is not None:
            return belief_of(given)
        self.priors.append(prior)
        return prior.belief


def physical_beliefs(
    chosen: Chosen,
    request: EstimateRequest,
    accelerator: AcceleratorSpec,
    factors: PlaceFactors | None,
    embodied: EmbodiedFactor | None,
) -> dict[str, Belief | None]:
    """Power, host factor, PUE, grid, embodied and water; what nobody knows stays None."""
    found: dict[str, Belief | None] = {
        "power_w": _power(chosen, request, accelerator),
        "host_factor": chosen.given_or(
            request.host_factor, _class_prior("host_factor", accelerator)
        ),
        "market_g_per_kwh": None,
        "wue_l_per_kwh": None,
        "embodied_kg_per_accelerator_h": None,
        "g_per_kwh": None if request.grid_g_per_kwh is None else belief_of(request.grid_g_per_kwh),
    }
    pue = _class_prior("pue", accelerator)
    if factors is not None and factors.pue is not None:
        pue = _factor_prior("pue", factors.pue)
    found["pue"] = chosen.given_or(request.pue, pue)
    if factors is not None:
        for name, factor in (
            ("g_per_kwh", factors.grid),
            ("market_g_per_kwh", factors.market),
            ("wue_l_per_kwh", factors.wue_l_per_kwh),
        ):
            if factor is not None and found[name] is None:
                found[name] = chosen.given_or(None, _factor_prior(name, factor))
    if embodied is not None:
        prior = Prior(
            quantity="embodied_kg_per_accelerator_h",
            belief=Triangular(
                low=embodied.low, mode=embodied.kg_per_accelerator_h, high=embodied.high
            ),
            unit=embodied.unit,
            basis=embodied.level,
            source=embodied.source,
        )
        found["embodied_kg_per_accelerator_h"] = chosen.given_or(None, prior)
    return found


def _power(chosen: Chosen, request: EstimateRequest, accelerator: AcceleratorSpec) -> Belief | None:
    """Mean power of an accelerator: given, else a share of its TDP, else metered system power."""
    if request.power_w is not None:
        return belief_of(request.power_w)
    if accelerator.tdp_w is None:
        metered = metered_power(accelerator.key)
        return None if metered is None else chosen.given_or(None, _metered_prior(metered))
    use = hardware_use("power_fraction", accelerator.key)
    tdp = accelerator.tdp_w
    belief = Triangular(
        low=use.belief.low * tdp, mode=use.belief.mode * tdp, high=use.belief.high * tdp
    )
    prior = Prior(
        quantity="power_w",
        belief=belief,
        unit="W per accelerator",
        basis=f"{use.belief.mode:.0%} of a TDP of {tdp:g} W",
        source=use.source,
    )
    return chosen.given_or(None, prior)


def _metered_prior(use: HardwareUse) -> Prior:
    return Prior(
        quantity="power_w",
        belief=use.belief,
        unit=use.unit,
        basis="metered system power of published runs",
        source=use.source,
    )


def _class_prior(quantity: str, accelerator: AcceleratorSpec) -> Prior:
    use = hardware_use(quantity, accelerator.key)
    return Prior(
        quantity=quantity, belief=use.belief, unit=use.unit, basis="published", source=use.source
    )


def _factor_prior(quantity: str, factor: PlaceFactor) -> Prior:
    """A published factor of a place with its range; without one it is taken as certain."""
    low = factor.value if factor.low is None else factor.low
    high = factor.value if factor.high is None else factor.high
    belief: Belief = Certain(value=factor.value)
    if low < high:
        belief = Triangular(low=low, mode=factor.value, high=high)
    basis = factor.level if factor.year is None else f"{factor.level}, {factor.year}"
    return Prior(
        quantity=quantity, belief=belief, unit=factor.unit, basis=basis, source=factor.source
    )

"""An answer in words, for a person at a terminal; pages have their own templates."""

from planning.estimating import Answer

_ROWS = (
    ("accelerators", "accelerator_h", "h"),
    ("time", "days", "days"),
    ("facility", "energy_kwh", "kWh"),
    ("carbon", "emissions_kgco2e", "kgCO2e, location-based"),
    ("embodied", "embodied_kgco2e", "kgCO2e"),
    ("water", "water_l", "litres"),
)


def answer_in_words(answer: Answer) -> str:
    """Name, each quantity as P10, P50, P80 and P90, the programme, the priors, the findings."""
    document = answer.document
    lines = [
        document["name"],
        f"  compute       {document['training_flop']:.4g} FLOP",
        f"  hardware      {document['assumptions']['accelerator']}",
        f"  {'':<13} {'P10':>16} {'P50':>16} {'P80':>16} {'P90':>16}",
    ]
    for label, key, unit in _ROWS:
        found = document[key]
        if found is None:
            lines.append(f"  {label:<13} not known")
        else:
            cells = " ".join(f"{found[level]:>16,.1f}" for level in ("p10", "p50", "p80", "p90"))
            lines.append(f"  {label:<13} {cells}  {unit}")
    lines += _money(answer)
    lines += [
        f"  prior: {prior['quantity']} {prior['p10']:.3g} to {prior['p90']:.3g} ({prior['basis']})"
        for prior in document["priors"]
    ]
    lines += [f"  {item['severity']}: {item['message']}" for item in document["warnings"]]
    return "\n".join(lines)


def _money(answer: Answer) -> list[str]:
    """Main run and programme, with the odds of the band."""
    lines = []
    for label, cost in (("cost (1.0x)", answer.cost), ("programme", answer.programme_cost)):
        levels = [cost(level) for level in ("p10", "p50", "p80", "p90")]
        known = [money for money in levels if money is not None]
        if known:
            cells = " ".join(f"{money.amount:>16,.2f}" for money in known)
            lines.append(f"  {label:<13} {cells}  {known[0].currency}")
    programme = answer.document["programme"]
    if programme is not None:
        odds = ", ".join(
            f"{multiple}x {fraction:.0%}"
            for multiple, fraction in programme["probability_inside"].items()
        )
        lines.append(f"  inside        {odds}")
    return lines

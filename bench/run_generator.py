"""Synthetic training runs with known endings: how clusters behave, not how the forecaster thinks.

Throughput comes in regimes, decays until maintenance, falls at weekends for some, stops for
outages of heavy-tailed length, and falls back to a checkpoint; prices change; power follows load.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedRun:
    """A whole run by day, as it happened; progress sums to `total`."""

    total: float
    planned_per_day: float
    planned_log_sd: float
    progress: Array
    cost: Array

    @property
    def days(self) -> float:
        """How long it took; the last day counts in part."""
        return float(len(self.progress) - 1 + self.last_part)

    last_part: float = 1.0


def generate_run(seed: int) -> GeneratedRun:
    """One run of 25 to 160 planned days."""
    draw = np.random.default_rng(seed)
    planned_days = float(draw.uniform(25, 160))
    total = planned_days
    plan_sd = float(draw.choice([0.12, 0.2, 0.25]))
    # The estimate was off by what it said of itself, and a little more: heavy tails.
    level = float(np.exp(plan_sd * draw.standard_t(5)))
    progress, cost = [], []
    left, day, price = total, 0, float(draw.uniform(1.5, 4))
    style = _Style.drawn(draw)
    down = 0.0
    while left > 0 and day < 2_000:
        if draw.random() < style.regime_rate:
            level *= float(draw.choice([0.85, 0.92, 1.06, 1.12, 1.2]))
        if draw.random() < style.price_rate:
            price *= float(draw.uniform(0.85, 1.25))
        if down <= 0 and draw.random() < style.outage_rate:
            down = float(min(draw.pareto(1.8) * 0.4 + 0.1, 6))
        up = 1 - min(down, 1.0)
        down -= 1 - up if up < 1 else 0
        wear = 1 - style.decay * (day % style.maintenance_days)
        week = 1 - style.weekend if day % 7 >= 5 else 1.0
        noise = float(np.exp(draw.normal(0, style.noise)))
        made = max(level * up * wear * week * noise, 0.0)
        if draw.random() < style.rollback_rate:
            made -= float(draw.uniform(0.05, 0.8)) * level
        part = 1.0 if made < left or made <= 0 else left / made
        progress.append(made * part)
        cost.append(price * part)
        left -= made * part
        day += 1
        if part < 1:
            break
    last = 1.0 if not cost else cost[-1] / price
    return GeneratedRun(
        total=total,
        planned_per_day=1.0,
        planned_log_sd=plan_sd,
        progress=np.array(progress),
        cost=np.array(cost),
        last_part=float(last),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Style:
    """How a cluster behaves."""

    regime_rate: float
    price_rate: float
    outage_rate: float
    rollback_rate: float
    decay: float
    maintenance_days: int
    weekend: float
    noise: float

    @classmethod
    def drawn(cls, draw: np.random.Generator) -> "_Style":
        return cls(
            regime_rate=float(draw.choice([0, 1 / 60, 1 / 30])),
            price_rate=float(draw.choice([0, 0, 1 / 50])),
            outage_rate=float(draw.choice([1 / 100, 1 / 30, 1 / 12])),
            rollback_rate=float(draw.choice([0, 1 / 40, 1 / 15])),
            decay=float(draw.choice([0, 0, 0.002, 0.005])),
            maintenance_days=int(draw.integers(20, 60)),
            weekend=float(draw.choice([0, 0, 0, 0.1])),
            noise=float(draw.choice([0.01, 0.03, 0.08])),
        )

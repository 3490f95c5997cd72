"""Samples of what training code says of its run, handed on as they are, without a meaning."""

from dataclasses import dataclass

from carbon.adapters.remote_write_book import SeriesBook
from carbon.adapters.remote_write_columns import MICROSECOND_PER_MS, Kept


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSample:
    """One value of one measure of a run; of two for one instant the lower rank counts."""

    project: str
    run: str
    replica: str
    measure: str
    rank: int
    at: int
    value: float


def run_samples(book: SeriesBook, kept: Kept) -> tuple[RunSample, ...]:
    """The samples of runs, in the order in which they came."""
    found = []
    for number, at_ms, value in zip(
        kept.series.tolist(), kept.at_ms.tolist(), kept.value.tolist(), strict=True
    ):
        series = book.series[number]
        if series is None or series.run is None:
            continue
        project, run = series.run
        found.append(
            RunSample(
                project=project,
                run=run,
                replica=series.stream[1],
                measure=series.metric.measure,
                rank=series.metric.rank,
                at=at_ms * MICROSECOND_PER_MS,
                value=value,
            )
        )
    return tuple(found)

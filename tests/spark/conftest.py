"""One cluster for all tests of this folder: a process speaks to one master only."""

from collections.abc import Callable, Iterator

import pytest

from tests.spark.cluster import Cluster, running_cluster

EXECUTOR_MB = 768


@pytest.fixture(scope="session")
def cluster(tmp_path_factory) -> Iterator[Cluster]:
    with running_cluster(tmp_path_factory.mktemp("spark")) as running:
        yield running


@pytest.fixture
def on_spark(cluster, settings) -> Callable[[], None]:
    """Call it, and jobs run on the cluster from then on."""

    def switch() -> None:
        settings.LAKE_ENGINE = cluster.url
        settings.LAKE_SPARK_CONF = [
            f"spark.executor.memory={EXECUTOR_MB}m",
            "spark.sql.shuffle.partitions=4",
        ]

    return switch

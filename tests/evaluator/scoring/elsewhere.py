"""A run on a cluster in a process of its own, since Ray reads its token once for each process."""

from __future__ import annotations

import sys
from pathlib import Path

from evaluator.scoring.ray_cluster import RayCluster, RayOptions
from evaluator.scoring.ray_engine import RayEngine
from tests.evaluator.scoring.ray_clients import AccidentSource
from tests.evaluator.scoring.test_ray import run


def main(address: str, folder: Path) -> None:
    """Score slowly with two actors; the scores lie in `found.pickle` then."""
    with RayCluster(address, folder / "scratch") as cluster:
        engine = RayEngine(cluster, RayOptions(actors=2, threads=1))
        source = AccidentSource(folder / "asked", pause_s=0.5, together=2)
        column = run(source, folder / "shards", engine)
    column.overall.to_pickle(folder / "found.pickle")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))

"""A run on a cluster in a process of its own, since Ray reads its token once for each process."""

from __future__ import annotations

import sys
from pathlib import Path

from evaluator.scoring.on_ray.cluster import RayCluster
from evaluator.scoring.on_ray.engine import RayEngine
from evaluator.scoring.on_ray.slots import RayOptions
from tests.evaluator.scoring.on_ray.ray_askers import AccidentSource
from tests.evaluator.scoring.on_ray.test_ray_engine import run


def main(address: str, folder: Path) -> None:
    """Score slowly with two actors; the scores lie in `found.pickle` then."""
    with RayCluster(address, folder / "scratch") as cluster:
        engine = RayEngine(cluster, RayOptions(actors=2, threads=1))
        source = AccidentSource(folder / "asked", pause_s=0.5, together=2)
        column = run(source, folder / "shards", engine)
    column.overall.to_pickle(folder / "found.pickle")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))

"""Rows of one table of scores that were computed apart, as one."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from benchmarks.rows import Measured


def joined(parts: Iterable[Measured]) -> Measured:
    """The rows of several, one after the other; all come from one plan, before `infer`."""
    every = [part for part in parts if part.rows]
    if len(every) <= 1:
        return next(iter(every), Measured((), np.empty((0, 0))))
    starts = np.cumsum([0, *(len(part.rows) for part in every)]).tolist()
    tables = [
        part.clusters.assign(row=part.clusters["row"] + start)
        for part, start in zip(every, starts, strict=False)
        if len(part.clusters)
    ]
    return Measured(
        rows=tuple(row for part in every for row in part.rows),
        resamples=np.vstack([part.resamples for part in every]),
        clusters=pd.concat(tables or [every[0].clusters], ignore_index=True),
        members=tuple(m for part in every for m in part.members or (None,) * len(part.rows)),
        pools={
            start + row: pool
            for part, start in zip(every, starts, strict=False)
            for row, pool in part.pools.items()
        },
    )

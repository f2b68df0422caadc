"""Report of a selection of prompts: figures for programs, and a page with a chart for people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from evaluator.prompts.pool import Pool
from evaluator.prompts.selection import Selection
from evaluator.standalone_page import render_page


@dataclass(frozen=True)
class SelectionReport:
    """What was chosen of a pool, and how it was."""

    source: str  # name of the file
    seed: int
    pool: Pool
    selection: Selection

    @cached_property
    def figures(self) -> dict[str, Any]:
        """Everything, as JSON has it: `dimensions[name][category]` holds targets and counts."""
        chosen = self.selection
        return {
            "source": self.source,
            "seed": self.seed,
            "rows": self.pool.rows,
            "empty": self.pool.empty,
            "repeated": self.pool.repeated,
            "prompts": len(self.pool.texts),
            "chosen": len(chosen.chosen),
            "l1": chosen.balance.l1,
            "largest": chosen.balance.largest,
            "bound": chosen.bound,
            "optimal": chosen.optimal,
            "stopped": chosen.stopped,
            "shortfall": chosen.shortfall,
            "greedy": asdict(chosen.greedy),
            "random": asdict(chosen.random),
            "dimensions": {one.name: self._categories(one.name) for one in self.pool.dimensions},
        }

    @property
    def html(self) -> str:
        """The page; it needs nothing from elsewhere."""
        return render_page("evaluator.prompts", "selection.html", report=self.figures)

    def _categories(self, name: str) -> Mapping[str, Mapping[str, float]]:
        categories = next(one for one in self.pool.dimensions if one.name == name).categories
        prompts, n = len(self.pool.texts), len(self.selection.chosen)
        found = zip(
            categories,
            self.selection.pool[name].tolist(),
            self.selection.targets[name].tolist(),
            self.selection.counts[name].tolist(),
            strict=True,
        )
        return {
            category: {
                "pool": pool,
                "pool_share": pool / prompts,
                "target": target,
                "chosen": count,
                "chosen_share": count / n,
            }
            for category, pool, target, count in found
        }

"""Query of the model page: to and from a link."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, get_args

from leaderboard.pages.models.query import ModelsQuery
from leaderboard.pages.shown.addresses import with_state

Order = Literal["worst", "best", "set"]
ORDERS: tuple[Order, ...] = get_args(Order)
PER_PAGE = 12
_LONGEST = 100


@dataclass(frozen=True)
class ModelQuery:
    """The state of the page of a model.

    Attributes:
        submission_id: whose images; may not exist.
        of: which of its prompts, and the metric whose scores are shown.
        order: of the prompts: by score, or as the set has them.
        page: of the prompts, from 1.
    """

    submission_id: str
    of: ModelsQuery
    order: Order = "worst"
    page: int = 1

    @classmethod
    def from_params(cls, params: Mapping[str, str]) -> ModelQuery:
        """Read an address; unknown parameters are left alone."""
        page, order = str(params.get("page", "1")), str(params.get("order", ""))
        usable = page.isascii() and page.isdecimal() and len(page) < 7
        return cls(
            str(params.get("id", "")).strip()[:_LONGEST],
            ModelsQuery.from_params(params),
            next((one for one in ORDERS if one == order), ORDERS[0]),
            max(1, int(page)) if usable else 1,
        )

    def to_link(self, *, page: int = 1, **changes: str) -> str:
        """The address of this view, or of one that differs from it; not escaped for HTML yet."""
        of = replace(self.of, prompt_set="", models=(), **changes)
        order = "" if self.order == ORDERS[0] else self.order
        shown = str(page) if page > 1 else ""
        link = with_state("./model", id=self.submission_id)
        return with_state(link, **of.to_params(), order=order, page=shown)

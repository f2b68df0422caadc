"""Editions of results: which revision of a benchmark each was made with."""

from __future__ import annotations

import hashlib
import re

from pydantic import BaseModel, ConfigDict

from benchmarks.schema import Card
from leaderboard.records import RunResult

FIRST_CONTRACT = 2
"""The contract of results that are older than its being stored."""
CONTRACT = 2
"""The contract now, as `evaluator.scoring.plan.PLAN_VERSION` has it: what a scorer is given."""
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class Edition(BaseModel):
    """What a result was made with, or a board is made for."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    revision: str
    protocol: int = 1
    contract: int | None = FIRST_CONTRACT
    """None where no code was run: such a result fits any contract."""

    @classmethod
    def of_card(cls, card: Card) -> Edition:
        """The edition a benchmark has here and now."""
        return cls(revision=card.revision, protocol=card.protocol, contract=CONTRACT)

    @classmethod
    def of_result(cls, result: RunResult) -> Edition:
        """The edition a result was made with."""
        contract = result.contract
        if contract is None and result.cost is not None:
            contract = FIRST_CONTRACT
        return cls(revision=result.revision, protocol=result.protocol, contract=contract)

    @property
    def tag(self) -> str:
        """Its name in paths and links: the revision as a rule."""
        name = self.revision
        if not _PLAIN.fullmatch(name):
            digest = hashlib.sha256(name.encode()).hexdigest()[:12]
            name = f"{re.sub(r'[^A-Za-z0-9._-]', '-', name)[:40].strip('.-')}~{digest}"
        if self.protocol != 1:
            name += f"~p{self.protocol}"
        if self.contract not in (None, FIRST_CONTRACT):
            name += f"~c{self.contract}"
        return name

    @property
    def words(self) -> str:
        """As people are told: `revision r2, protocol 3`."""
        found = [f"revision {self.revision}"]
        if self.protocol != 1:
            found.append(f"protocol {self.protocol}")
        if self.contract not in (None, FIRST_CONTRACT):
            found.append(f"scoring contract {self.contract}")
        return ", ".join(found)

    def fits(self, board: Edition) -> bool:
        """Whether a result of this edition may stand on a board of that one."""
        return (self.revision, self.protocol) == (board.revision, board.protocol) and (
            self.contract in (None, board.contract)
        )


def is_current(result: RunResult, card: Card) -> bool:
    """Whether a result may stand on the board of a benchmark as it is here and now."""
    return Edition.of_result(result).fits(Edition.of_card(card))


def scores_stand(made: Edition, card: Card) -> bool:
    """Whether the scores behind a result of an edition answer what a benchmark asks now.

    Then its measures can be computed from them again, and no code need run.
    """
    same = made.revision == card.revision or made.revision in card.same_questions_as
    return same and made.contract in (None, CONTRACT)


NEW_REVISION = "new_revision"
NEW_SCORER = "new_scorer"
NEW_PROTOCOL = "new_protocol"
OTHER_REVISION = "other_revision"
"""Code of a scores file that no new result can be made of."""

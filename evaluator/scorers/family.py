"""Family: the contract of a file in `families/`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Generic, TypeVar

from evaluator.scorers.row import Frozen, ScorerRow
from evaluator.scorers.runtime import Runtime
from evaluator.scoring.contract import Scorer

Options = TypeVar("Options", bound=Frozen)


class Family(ABC, Generic[Options]):
    """One way to compute a score; a file in `families/` names an instance `FAMILY`."""

    title: ClassVar[str]
    """For people: `dual encoder`."""
    options: ClassVar[type[Frozen]]
    """What a row's `options` may hold."""

    def check(self, row: ScorerRow) -> Options:
        """The options of a row.

        Raises:
            pydantic.ValidationError: a key that the family does not know, or a value it cannot use.
        """
        checked: Any = self.options.model_validate(row.options)
        return checked  # type: ignore[no-any-return]

    @abstractmethod
    def load(self, row: ScorerRow, options: Options, runtime: Runtime) -> Loaded:
        """Load the checkpoints and make the scorer.

        Raises:
            SubmitterError: `checkpoint_missing`, `checkpoint_wrong_class`, `checkpoint_unsafe`,
                `questions_missing`, ...
        """


class Loaded:
    """A scorer with what has to be said of it.

    Attributes:
        scorer: any object that follows `evaluator.scoring.contract`.
        environment: device, precision, image processor, and each checkpoint with its commit.
        preprocessing: what tells two ways of preparing an image apart; part of the key under which
            embeddings are kept.
    """

    def __init__(
        self, scorer: Scorer, environment: dict[str, str], preprocessing: str = ""
    ) -> None:
        self.scorer = scorer
        self.environment = environment
        self.preprocessing = preprocessing

"""Reader of the model track for pages and programs: once per change of the store."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Generic, TypeVar

from benchmarks.errors import SubmitterError, TransientError
from benchmarks.prompt_sets.prompt_set import PromptSet, SetPrompt
from leaderboard.ledger.judge_pins import PATH as PINS_PATH
from leaderboard.ledger.judge_pins import Pins
from leaderboard.models.board_memory import BoardMemory
from leaderboard.models.scores import ScoresReader
from leaderboard.publication.model_entries import PATH, ModelTrack, parse_track
from leaderboard.store.interface import NotFoundError, Repository, Store

Value = TypeVar("Value")


class KeptFile(Generic[Value]):
    """A file of the store, parsed again only when it has changed.

    While the store does not answer, what was read last stays.
    """

    def __init__(
        self, public: Repository, path: str, parse: Callable[[bytes], Value], absent: Value
    ) -> None:
        self._public, self._path, self._parse = public, path, parse
        self._absent = self._value = absent
        self._content: bytes | None = None
        self._lock = threading.Lock()

    def now(self) -> Value:
        """The value of the file as it is."""
        content = b""
        try:
            with contextlib.suppress(NotFoundError):
                content = self._public.read(self._path)
        except TransientError:
            if self._content is None:
                raise
            return self._value
        with self._lock:
            if content != self._content:
                self._value = self._parse(content) if content else self._absent
                self._content = content
            return self._value


class ModelReader:
    """The models on the boards, their prompts and their scores. Several threads may share one."""

    def __init__(
        self, store: Store, prompt_sets: Mapping[str, PromptSet], data: Path | None
    ) -> None:
        self.prompt_sets = prompt_sets
        self.scores = ScoresReader(store.public)
        self.public = store.public
        self.data = data
        self.memory = BoardMemory()
        self._track = KeptFile(store.public, PATH, parse_track, ModelTrack())
        self._pins = KeptFile(store.public, PINS_PATH, Pins.model_validate_json, Pins())

    def track(self) -> ModelTrack:
        """The models on the boards now."""
        return self._track.now()

    def pins(self) -> Pins:
        """What operators decided of metrics as judges."""
        return self._pins.now()

    def prompts(self, prompt_set: str) -> tuple[SetPrompt, ...] | None:
        """The prompts of a set; None where it or its files are not here."""
        known = self.prompt_sets.get(prompt_set)
        if known is None:
            return None
        try:
            return known.set_prompts(self.data)
        except SubmitterError:
            return None

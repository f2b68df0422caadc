"""How pages and programs read the model track: once per change of the store."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Mapping
from pathlib import Path

from benchmarks.errors import SubmitterError
from benchmarks.prompt_sets.prompt_set import PromptSet, SetPrompt
from leaderboard.models.board_memory import BoardMemory
from leaderboard.models.entries import PATH, ModelTrack, parse_track
from leaderboard.models.pins import PATH as PINS_PATH
from leaderboard.models.pins import Pins
from leaderboard.models.scores import ScoresReader
from leaderboard.store.interface import NotFoundError, Store


class ModelReader:
    """The models on the boards, their prompts and their scores. Several threads may share one.

    Args:
        store: where they are published.
        prompt_sets: those known here, by name.
        data: folder of benchmark data, if there is one.

    Attributes:
        public: the repository in which they are published.
        data: folder of benchmark data, if there is one.
        memory: what boards of models are made from, kept between looks.
    """

    def __init__(
        self, store: Store, prompt_sets: Mapping[str, PromptSet], data: Path | None
    ) -> None:
        self.prompt_sets = prompt_sets
        self.scores = ScoresReader(store.public)
        self.public = store.public
        self.data = data
        self._lock = threading.Lock()
        self._content: bytes | None = None
        self._track = ModelTrack()
        self._pins_content: bytes | None = None
        self._pins = Pins()
        self.memory = BoardMemory()

    def track(self) -> ModelTrack:
        """The models on the boards now.

        Raises:
            TransientError: the store cannot be read.
        """
        content = b""
        with contextlib.suppress(NotFoundError):
            content = self.public.read(PATH)
        with self._lock:
            if content != self._content:
                self._track = parse_track(content) if content else ModelTrack()
                self._content = content
            return self._track

    def pins(self) -> Pins:
        """What operators decided of metrics as judges.

        Raises:
            TransientError: the store cannot be read.
        """
        content = b""
        with contextlib.suppress(NotFoundError):
            content = self.public.read(PINS_PATH)
        with self._lock:
            if content != self._pins_content:
                self._pins = Pins.model_validate_json(content) if content else Pins()
                self._pins_content = content
            return self._pins

    def prompts(self, prompt_set: str) -> tuple[SetPrompt, ...] | None:
        """The prompts of a set; None where it or its files are not here."""
        known = self.prompt_sets.get(prompt_set)
        if known is None:
            return None
        try:
            return known.set_prompts(self.data)
        except SubmitterError:
            return None

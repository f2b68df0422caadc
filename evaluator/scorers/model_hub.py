"""Model repositories on the Hub and their cache, read through `huggingface_hub`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from huggingface_hub import HfApi, constants, snapshot_download

from benchmarks.errors import SubmitterError
from benchmarks.sources.client import limit_waiting
from evaluator.hub.faults import CHECKPOINT, in_words


@dataclass(frozen=True, slots=True)
class ModelHub:
    """Where repositories are, and where what was fetched of them is kept.

    Attributes:
        cache: folder in the layout of the Hub's client.
        pins: file with the commits that were taken.
        endpoint: address; None: that of the environment.
        token: of the reader; None: that of the environment or of a login.
    """

    cache: Path
    pins: Path
    endpoint: str | None = None
    token: str | None = None

    @classmethod
    def of_environment(cls) -> ModelHub:
        """As the Hub's own variables say (`HF_HOME`, `HF_HUB_CACHE`, `HF_ENDPOINT`, `HF_TOKEN`)."""
        return cls(Path(constants.HF_HUB_CACHE), Path(constants.HF_HOME) / "assay_checkpoints.json")

    def snapshot(
        self,
        repository: str,
        revision: str,
        patterns: Sequence[str],
        *,
        ignored: Sequence[str] = (),
        offline: bool = False,
    ) -> Path:
        """The folder of a commit, named for it, with the files that match; fetched if need be.

        Raises:
            SubmitterError: `checkpoint_missing`, `disk_full`.
            TransientError: `hub_unreachable`.
        """
        limit_waiting()
        with in_words(repository, revision, CHECKPOINT):
            place = snapshot_download(
                repository,
                revision=revision,
                cache_dir=self.cache,
                allow_patterns=list(patterns),
                ignore_patterns=list(ignored),
                local_files_only=offline,
                endpoint=self.endpoint,
                token=self.token,
            )
        return Path(place)

    def present(
        self,
        repository: str,
        revision: str,
        patterns: Sequence[str],
        *,
        ignored: Sequence[str] = (),
    ) -> Path | None:
        """The folder of a commit in the cache with every file that matches; None: not there."""
        try:
            place = self.snapshot(repository, revision, patterns, ignored=ignored, offline=True)
        except SubmitterError:
            return None
        return place if any(any(place.glob(f"**/{pattern}")) for pattern in patterns) else None

    def file_names(self, repository: str, commit: str, *, offline: bool = False) -> list[str]:
        """What a commit holds; offline, what of it is in the cache.

        Raises:
            SubmitterError: `checkpoint_missing`.
            TransientError: `hub_unreachable`.
        """
        if offline:
            folder = f"models--{repository.replace('/', '--')}"
            place = self.cache / folder / "snapshots" / commit
            return [each.relative_to(place).as_posix() for each in place.rglob("*")]
        limit_waiting()
        with in_words(repository, commit, CHECKPOINT):
            api = HfApi(endpoint=self.endpoint, token=self.token)
            return list(api.list_repo_files(repository, revision=commit))

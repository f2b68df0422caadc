"""Checkpoints by Hub id and commit, as safetensors unless an operator allows otherwise.

Here they are found and fetched, without torch; `evaluator.scorers.loading` reads them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from filelock import FileLock
from huggingface_hub import (
    HfApi,
    constants,
    get_hf_file_metadata,
    hf_hub_url,
    snapshot_download,
)

from benchmarks.errors import SubmitterError
from benchmarks.sources.client import limit_waiting
from benchmarks.sources.output import replace_durably
from evaluator.hub.faults import CHECKPOINT, Messages, in_words
from evaluator.scorers.registry import Checkpoint, Runtime, ScorerRow

SAFE = ".safetensors"
_TO_QUEUE = Messages(
    "checkpoint_missing",
    "or score with weights of your own (python -m evaluator scorers run) and send the scores",
)
_PICKLE_ENDINGS = frozenset({".bin", ".pt", ".pth", ".ckpt", ".pkl"})


def unsafe(name: str, files: Sequence[str]) -> SubmitterError:
    """The refusal of weights that can run code when they are read."""
    shown = ", ".join(files[:3])
    return SubmitterError(
        "checkpoint_unsafe",
        f"{name} has its weights as pickle only ({shown}), which can run code when it is read.",
        "If you trust its authors, allow it with --allow-pickle.",
    )


def names_in(place: Path) -> list[str]:
    """Every path below a folder; of a file its name."""
    if place.is_file():
        return [place.name]
    return [each.relative_to(place).as_posix() for each in place.rglob("*")]


def has_safe(names: Sequence[str]) -> bool:
    """Whether safetensors are among the files."""
    return any(name.endswith(SAFE) for name in names)


def pickled(names: Sequence[str]) -> list[str]:
    """Those of the files that are pickles."""
    return [name for name in names if Path(name).suffix in _PICKLE_ENDINGS]


class CheckpointPins:
    """Repository to commit, in one file beside the cache of the Hub; safe for several processes."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def commit(self, repository: str) -> str:
        """The commit a repository is held to; empty where none is."""
        return self._read().get(repository, "")

    def pin(self, repository: str, commit: str) -> str:
        """Hold a repository to a commit, unless it is held to one already."""
        try:
            self.place.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(self.place.with_suffix(".lock")):
                held = self._read()
                if repository not in held:
                    held[repository] = commit
                    replace_durably(
                        self.place, json.dumps(dict(sorted(held.items())), indent=1).encode()
                    )
                return held[repository]
        except OSError as error:
            raise SubmitterError(
                "cache_not_writable",
                f"{self.place} cannot be written ({error.strerror or error}).",
                "Name a folder of your own with HF_HOME.",
            ) from error

    def _read(self) -> dict[str, str]:
        try:
            content = json.loads(self.place.read_bytes())
        except FileNotFoundError:
            return {}
        except ValueError as error:
            raise self._malformed(str(error)) from error
        if not isinstance(content, dict) or not all(
            isinstance(value, str) for value in content.values()
        ):
            raise self._malformed("it is no table of commits")
        return content

    def _malformed(self, why: str) -> SubmitterError:
        return SubmitterError(
            "checkpoint_pins_malformed",
            f"{self.place} is no record of checkpoints ({why}).",
            "Delete it; the next runs then take the newest commits.",
        )


class Listing(NamedTuple):
    """A commit on the Hub."""

    commit: str
    names: list[str]  # of its files
    weights: int | None  # how many there are in its safetensors; None where the Hub does not say


@dataclass(frozen=True, slots=True)
class ModelHub:
    """Where repositories are, and where what was fetched of them is kept."""

    cache: Path  # folder in the layout of the Hub's client
    pins: Path  # file with the commits that were taken
    endpoint: str | None = None  # address; None: that of the environment
    token: str | None = None  # of the reader; None: that of the environment or of a login

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
        """The folder of a commit, named for it, with the files that match; fetched if need be."""
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

    def look_up(self, repository: str, revision: str) -> Listing:
        """The commit of a revision, and what it holds; asks the Hub and fetches nothing."""
        limit_waiting()
        with in_words(repository, revision, _TO_QUEUE):
            api = HfApi(endpoint=self.endpoint, token=self.token)
            found = api.model_info(repository, revision=revision)
        names = [each.rfilename for each in found.siblings or ()]
        counted = found.safetensors.total if found.safetensors else None
        return Listing(str(found.sha), names, counted)

    def check_access(self, repository: str, commit: str, file: str) -> None:
        """Refuse a file that this reader may not have, or that cannot be reached now."""
        limit_waiting()
        with in_words(repository, commit, _TO_QUEUE):
            address = hf_hub_url(repository, file, revision=commit, endpoint=self.endpoint)
            get_hf_file_metadata(address, token=self.token, endpoint=self.endpoint)

    def file_names(self, repository: str, commit: str, *, offline: bool = False) -> list[str]:
        """What a commit holds; offline, what of it is in the cache."""
        if offline:
            folder = f"models--{repository.replace('/', '--')}"
            place = self.cache / folder / "snapshots" / commit
            return [each.relative_to(place).as_posix() for each in place.rglob("*")]
        limit_waiting()
        with in_words(repository, commit, CHECKPOINT):
            api = HfApi(endpoint=self.endpoint, token=self.token)
            return list(api.list_repo_files(repository, revision=commit))


SETTINGS = ("*.json", "*.txt", "*.model", "*.jinja", "*.tiktoken", "*.yaml")
"""Configurations, vocabularies, chat templates."""
PICKLES = ("*pytorch_model*.bin",)
_UNUSED = ("onnx/*", "openvino/*", "*.fp16.*", "*.non_ema.*")


@dataclass(frozen=True, slots=True)
class Source:
    """Where a checkpoint is read from."""

    place: Path  # a local folder (or file, where the row names one), whole and checked
    name: str  # for the record: `owner/name`, or the folder's path where it is the operator's own
    revision: str  # the commit; empty for a folder of the operator's own

    def __str__(self) -> str:
        return f"{self.name}@{self.revision}" if self.revision else self.name


def resolve(
    row: ScorerRow, runtime: Runtime, role: str = "model", *, hub: ModelHub | None = None
) -> Source:
    """The files of a row's checkpoint, fetched if need be.

    The commit is the operator's (`runtime.revisions`), else the row's, else the one that an
    earlier run took here, else the newest, which later runs then keep to.
    """
    checkpoint = row.checkpoints[role]
    if not runtime.allow_pickle and pickled([checkpoint.file]):
        raise unsafe(checkpoint.id, [checkpoint.file])
    local = runtime.folders.get(role) or _as_folder(checkpoint.id)
    if local is not None:
        return _local(row, runtime, local, checkpoint)
    said = runtime.revisions.get(role, "")
    search = _Search(row.name, checkpoint, said, runtime, hub or ModelHub.of_environment())
    if checkpoint.file:
        return search.one_file()
    return search.folder()


def check_class(source: Source, accepted: tuple[str, ...]) -> str:
    """Refuse a checkpoint of another `model_type` than the family knows, before it is loaded."""
    place = source.place / "config.json"
    try:
        content = json.loads(place.read_bytes())
    except FileNotFoundError as error:
        raise SubmitterError(
            "checkpoint_wrong_class",
            f"{source} holds no config.json; wanted: a model of type {' or '.join(accepted)}.",
        ) from error
    except ValueError as error:
        raise SubmitterError("checkpoint_damaged", f"{place} is not JSON ({error}).") from error
    found = content.get("model_type", "") if isinstance(content, dict) else ""
    if found not in accepted:
        raise SubmitterError(
            "checkpoint_wrong_class",
            f"{source} holds a model of type {found or 'unknown'!r}; "
            f"wanted: {' or '.join(accepted)}.",
        )
    return str(found)


def cached(row: ScorerRow, role: str = "model", *, hub: ModelHub | None = None) -> Path | None:
    """Where the checkpoint of a row lies on this machine; None where it does not, or not whole."""
    checkpoint = row.checkpoints[role]
    local = _as_folder(checkpoint.id)
    if local is not None:
        return local if local.exists() else None
    store = hub or ModelHub.of_environment()
    revision = commit_of(row, role, hub=store) or "main"
    safe = checkpoint.pattern or f"*{SAFE}"
    layouts = [(safe,), PICKLES] if checkpoint.weights else [SETTINGS]
    for wanted in [(checkpoint.file,)] if checkpoint.file else layouts:
        place = store.present(checkpoint.id, revision, wanted, ignored=_UNUSED)
        if place is not None:
            return place
    return None


def commit_of(row: ScorerRow, role: str = "model", *, hub: ModelHub | None = None) -> str:
    """The commit that the next run takes; empty where that is the newest one on the Hub."""
    checkpoint = row.checkpoints[role]
    store = hub or ModelHub.of_environment()
    return checkpoint.revision or CheckpointPins(store.pins).commit(checkpoint.id)


def _as_folder(name: str) -> Path | None:
    return Path(name).expanduser() if name.startswith(("/", ".", "~")) else None


def _local(row: ScorerRow, runtime: Runtime, place: Path, checkpoint: Checkpoint) -> Source:
    """A folder, or a file, of the operator's own."""
    if checkpoint.file and place.is_dir():
        place = place / Path(checkpoint.file).name
    if not place.exists():
        raise SubmitterError("checkpoint_missing", f"{row.name}: there is no {place}.")
    names = names_in(place) if checkpoint.weights and not runtime.allow_pickle else []
    if pickled(names) and not has_safe(names):
        raise unsafe(str(place), pickled(names))
    return Source(place, str(place), "")


@dataclass(frozen=True, slots=True)
class _Search:
    """Brings one checkpoint from the Hub, or from its cache; `said` is the operator's commit."""

    scorer: str
    checkpoint: Checkpoint
    said: str
    runtime: Runtime
    hub: ModelHub

    def folder(self) -> Source:
        """A repository laid out as a library writes it."""
        settings = (*SETTINGS, *(("*.py",) if self.runtime.trust_remote_code else ()))
        if not self.checkpoint.weights:
            place = self._fetch(settings)
            return self._source(place, place.name)
        place = self._fetch((*settings, self.checkpoint.pattern or f"*{SAFE}"))
        if not has_safe(names_in(place)):
            self._refuse_pickles(place.name)
            place = self._fetch((*settings, *PICKLES), place.name)
            if not pickled(names_in(place)):
                raise self._lacks("weights in a known layout")
        return self._source(place, place.name)

    def one_file(self) -> Source:
        """One file of a repository."""
        place = self._fetch((self.checkpoint.file,))
        if not (place / self.checkpoint.file).is_file():
            raise self._lacks(self.checkpoint.file)
        return self._source(place / self.checkpoint.file, place.name)

    def _fetch(self, patterns: tuple[str, ...], commit: str = "") -> Path:
        name, offline = self.checkpoint.id, self.runtime.offline
        revision = commit or self._asked_revision()
        try:
            return self.hub.snapshot(name, revision, patterns, ignored=_UNUSED, offline=offline)
        except SubmitterError as error:
            raise SubmitterError(
                error.code, f"{self.scorer}: {error.message}", error.hint
            ) from error

    def _asked_revision(self) -> str:
        """The revision to ask for."""
        if self.said:
            return self.said
        pinned = CheckpointPins(self.hub.pins).commit(self.checkpoint.id)
        wanted = self.checkpoint.revision
        if pinned and wanted and len(wanted) == len(pinned):
            self._refuse_other(pinned, wanted)
        return wanted or pinned or "main"

    def _source(self, place: Path, commit: str) -> Source:
        if not self.said:
            held = CheckpointPins(self.hub.pins).pin(self.checkpoint.id, commit)
            self._refuse_other(held, commit)
        return Source(place, self.checkpoint.id, commit)

    def _refuse_other(self, pinned: str, wanted: str) -> None:
        if wanted != pinned:
            raise SubmitterError(
                "checkpoint_revision",
                f"{self.scorer} names commit {wanted} of {self.checkpoint.id}; "
                f"earlier runs here took {pinned}.",
                f"To go on with another commit, delete its line in {self.hub.pins}.",
            )

    def _refuse_pickles(self, commit: str) -> None:
        """Say why there are no safetensors, unless pickles are there and allowed."""
        name = self.checkpoint.id
        found = pickled(self.hub.file_names(name, commit, offline=self.runtime.offline))
        if not found:
            raise self._lacks("safetensors")
        if not self.runtime.allow_pickle:
            raise unsafe(name, found)

    def _lacks(self, what: str) -> SubmitterError:
        where = " in the cache of this machine" if self.runtime.offline else ""
        return SubmitterError(
            "checkpoint_missing", f"{self.scorer}: {self.checkpoint.id} has no {what}{where}."
        )

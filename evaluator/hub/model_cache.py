"""Public models of the Hub that modules name, fetched before a box starts, for boxes have no network.

Asked for without a token, so that no module can make this machine fetch what only its operator may
see; by commit, so that a run can be repeated; weights as safetensors only.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath

from benchmarks.errors import PlatformError, SubmitterError, TransientError
from benchmarks.sources.client import limit_waiting
from evaluator.folder_cache import (
    PART,
    CachedFolder,
    cached_folders,
    let_all_read,
    note_use,
    taken_away,
    using,
    while_alone,
)
from evaluator.hub.faults import Messages, in_words
from evaluator.isolation.job import ModelFiles

NAMED = re.compile(
    r"(?P<repo>[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95})@(?P<sha>[0-9a-f]{40})"
)
TAKEN = (
    "*.safetensors", "*.json", "*.txt", "*.model", "*.jinja", "*.tiktoken", "*.yaml", "*.py",
)  # fmt: skip
"""Weights, configurations, vocabularies, chat templates, and code, which runs in the box alone."""
LEFT = ("onnx/*", "openvino/*", "*.fp16.*", "*.non_ema.*", ".*", "*/.*")
MOST_BYTES = 64 << 30
_KEPT_FREE = 1 << 30
"""Of the disk, in bytes, for everything else."""
_PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl")
_WORDING = Messages(
    "model_missing", "or bundle the weights as .safetensors", token=False, own_disk=False
)

Tell = Callable[[str, int, int], None]
"""Told of each file: the model, bytes that are here, bytes in all."""


def _nobody_listens(_model: str, _done: int, _total: int) -> None:
    return


@dataclass(frozen=True, slots=True)
class _File:
    name: str
    n_bytes: int


@dataclass(frozen=True, slots=True)
class ModelCache:
    """Models on this machine, each in a folder as the Hub's client keeps them."""

    folder: Path  # where they are
    endpoint: str | None = None  # address of the Hub; None: that of the environment
    most_bytes: int = MOST_BYTES  # of one model

    def bring(self, models: Sequence[str], tell: Tell = _nobody_listens) -> tuple[ModelFiles, ...]:
        """The files of models, fetched if need be; what is here already costs no request."""
        return tuple(self._bring(model, tell) for model in models)

    @contextmanager
    def lent(
        self, models: Sequence[str], tell: Tell = _nobody_listens
    ) -> Iterator[tuple[ModelFiles, ...]]:
        """The same as `bring`, for a box: none of them is taken away before this is left."""
        with ExitStack() as stack:
            for model in models:
                stack.enter_context(using(self._place(*_named(model))))
            yield self.bring(models, tell)

    def models(self) -> tuple[CachedFolder, ...]:
        """What is here, the one that was used longest ago first."""
        return cached_models(self.folder)

    def forget(self, model: str) -> int:
        """Take a model away; it is fetched again when it is needed."""
        place = self._place(*_named(model))
        of_it = [one for one in self.models() if one.name == place.name]
        if not of_it:
            raise SubmitterError(
                "unknown_model",
                f"There is no {model} in {self.folder}.",
                "See what is there: python -m evaluator models list",
            )
        freed = sum(taken_away(one) for one in of_it)
        if any(one.place.exists() for one in of_it):
            raise TransientError(
                "model_in_use", f"{model} is being used or fetched.", "Try again when it is not."
            )
        return freed

    def _place(self, repo: str, sha: str) -> Path:
        return self.folder / f"{repo.replace('/', '--')}@{sha}"

    def _check_room(self, repo: str, n_bytes: int) -> None:
        """Refuse what would fill the disk, before it is fetched."""
        free = shutil.disk_usage(self.folder).free
        if n_bytes + _KEPT_FREE > free:
            raise PlatformError(
                "disk_full",
                f"{repo} has {n_bytes / 2**30:.1f} GiB, and {free / 2**30:.1f} GiB are free where "
                "models are kept.",
                f"Make room in {self.folder}, or name another folder with ASSAY_MODELS.",
            )

    def _bring(self, model: str, tell: Tell) -> ModelFiles:
        repo, sha = _named(model)
        place = self._place(repo, sha)
        if not place.is_dir():
            with in_words(repo, sha, _WORDING), while_alone(place):
                if not place.is_dir():
                    self._fetch(repo, sha, place, tell)
        note_use(place)
        return ModelFiles(repo, sha, place)

    def _fetch(self, repo: str, sha: str, place: Path, tell: Tell) -> None:
        from huggingface_hub import HfApi, hf_hub_download  # noqa: PLC0415 (heavy, seldom needed)

        limit_waiting()
        info = HfApi(endpoint=self.endpoint, token=False).model_info(
            repo, revision=sha, files_metadata=True
        )
        listed = [_File(s.rfilename, s.size or 0) for s in info.siblings or ()]
        files = _files_to_fetch(repo, listed, self.most_bytes)
        self._check_room(repo, sum(file.n_bytes for file in files))
        part = place.with_name(f"{place.name}{PART}")
        snapshot = part / "snapshots" / sha
        snapshot.mkdir(parents=True, exist_ok=True)
        done, total = 0, sum(file.n_bytes for file in files)
        for file in files:
            tell(repo, done, total)
            hf_hub_download(
                repo,
                file.name,
                revision=sha,
                local_dir=snapshot,
                endpoint=self.endpoint,
                token=False,
            )
            done += file.n_bytes
        tell(repo, done, total)
        shutil.rmtree(snapshot / ".cache", ignore_errors=True)
        _finish(part, sha)
        part.replace(place)


def cached_models(folder: Path) -> tuple[CachedFolder, ...]:
    """The models in a folder, the one that was used longest ago first."""
    return tuple(one for one in cached_folders(folder) if "@" in one.name)


def model_of(one: CachedFolder) -> str:
    """`owner/name@commit` of a folder of the cache; no name of an owner holds two dashes."""
    return one.name.replace("--", "/", 1)


def _named(model: str) -> tuple[str, str]:
    named = NAMED.fullmatch(model)
    if named is None:
        raise SubmitterError(
            "bad_model",
            f"{model[:120]!r} does not name a model.",
            "Write owner/name@commit, with all 40 digits of the commit.",
        )
    return named["repo"], named["sha"]


def _files_to_fetch(repo: str, files: Sequence[_File], most_bytes: int) -> list[_File]:
    taken = [file for file in files if _is_taken(file.name)]
    if not any(file.name.endswith(".safetensors") for file in taken):
        pickles = [file.name for file in files if file.name.endswith(_PICKLES)]
        has = f"only {', '.join(pickles[:3])}" if pickles else "none"
        raise SubmitterError(
            "model_unsafe",
            f"{repo} has no weights as .safetensors ({has}).",
            "Pickles can run code when they are read and are not fetched. Name a repository, or a "
            "commit, that holds safetensors.",
        )
    n_bytes = sum(file.n_bytes for file in taken)
    if n_bytes > most_bytes:
        raise SubmitterError(
            "model_too_large",
            f"{repo} has {n_bytes / 2**30:.1f} GiB; a model may have {most_bytes / 2**30:.1f} GiB.",
            "Name a smaller one.",
        )
    return taken


def _is_taken(name: str) -> bool:
    parts = PurePosixPath(name).parts
    plain = parts and ".." not in parts and not name.startswith("/") and "\\" not in name
    wanted = any(fnmatch(name, pattern) for pattern in TAKEN)
    return bool(plain) and wanted and not any(fnmatch(name, pattern) for pattern in LEFT)


def _finish(part: Path, sha: str) -> None:
    """Make it readable for whichever user a box has, and say which commit `main` stands for."""
    (part / "refs").mkdir(exist_ok=True)
    (part / "refs" / "main").write_text(sha)
    let_all_read(part)

"""Public models of the Hub that modules name, fetched before a box starts, for boxes have no network.

Asked for without a token, so that no module can make this machine fetch what only its operator may
see; by commit, so that a run can be repeated; weights as safetensors only.
"""

from __future__ import annotations

import os
import re
import shutil
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath

from filelock import FileLock, Timeout

from benchmarks.errors import PlatformError, SubmitterError, TransientError
from benchmarks.sources.client import limit_waiting
from evaluator.hub.faults import Messages, in_words
from evaluator.in_use import in_use, unused
from evaluator.isolation.job import ModelFiles

PART = ".part"
LOCK = ".lock"
USED = ".used"
_GONE = ".gone"


@dataclass(frozen=True, slots=True)
class CachedModel:
    """A model on a shelf."""

    model: str  # `owner/name@commit`
    place: Path  # its folder
    n_bytes: int  # on disk
    last_used: float  # seconds since 1970, by this machine's clock
    in_use: bool  # whether a box that runs has it
    whole: bool  # whether all of it was fetched


@contextmanager
def using(place: Path) -> Iterator[None]:
    """Use a model, which may still have to be fetched: nobody takes it away meanwhile."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with in_use(_mark(place)):
        yield


def note_use(place: Path) -> None:
    """Remember that a model was used now, where that can be written down."""
    with suppress(OSError):
        _mark(place).touch(mode=0o644)


def cached_models(folder: Path) -> tuple[CachedModel, ...]:
    """What stands on a shelf, the one that was used longest ago first."""
    found = [_shelved(place) for place in folder.glob("*@*") if place.is_dir() and _is_model(place)]
    return tuple(sorted(found, key=lambda one: (one.last_used, one.model)))


def taken_away(one: CachedModel) -> int:
    """Remove a model unless it is used or being fetched; the number of bytes this freed."""
    bare = _bare(one.place)
    try:
        with FileLock(bare.with_name(f"{bare.name}{LOCK}"), timeout=0), unused(_mark(bare)) as free:
            if not free:
                return 0
            # Renamed first: a crash never leaves half a model under its name.
            gone = one.place.with_name(f"{uuid.uuid4().hex}{_GONE}")
            one.place.replace(gone)
    except (Timeout, FileNotFoundError):
        return 0
    shutil.rmtree(gone, ignore_errors=True)
    return one.n_bytes


def sweep(folder: Path) -> int:
    """Remove what a removal that was cut off left; the number of bytes this freed."""
    freed = 0
    for gone in folder.glob(f"*{_GONE}"):
        freed += bytes_below(gone)
        shutil.rmtree(gone, ignore_errors=True)
    return freed


def bytes_below(place: Path) -> int:
    """What a file, or a folder with all that is in it, takes of the disk."""
    if not place.is_dir():
        return _bytes_of(place)
    return sum(
        _bytes_of(Path(folder) / name) for folder, _, names in os.walk(place) for name in names
    )


def _bytes_of(file: Path) -> int:
    try:
        found = file.lstat()
    except FileNotFoundError:
        return 0
    return found.st_blocks * 512


def _shelved(place: Path) -> CachedModel:
    bare = _bare(place)
    mark = _mark(bare)
    try:
        last_used = mark.stat().st_mtime
    except FileNotFoundError:  # fetched before uses were noted
        last_used = place.stat().st_mtime
        is_free = True
    else:
        with unused(mark) as is_free:
            pass
    return CachedModel(
        model=bare.name.replace("--", "/", 1),  # no name of an owner on the Hub holds two dashes
        place=place,
        n_bytes=bytes_below(place),
        last_used=last_used,
        in_use=not is_free,
        whole=place == bare,
    )


def _is_model(place: Path) -> bool:
    return not place.name.endswith((LOCK, USED, _GONE))


def _bare(place: Path) -> Path:
    return place.with_name(place.name.removesuffix(PART))


def _mark(place: Path) -> Path:
    return place.with_name(f"{place.name}{USED}")


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

    def models(self) -> tuple[CachedModel, ...]:
        """What is here, the one that was used longest ago first."""
        return cached_models(self.folder)

    def forget(self, model: str) -> int:
        """Take a model away; it is fetched again when it is needed."""
        place = self._place(*_named(model))
        of_it = [one for one in self.models() if one.model == place.name.replace("--", "/", 1)]
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
            with in_words(repo, sha, _WORDING), self._alone(place):
                if not place.is_dir():
                    self._fetch(repo, sha, place, tell)
        note_use(place)
        return ModelFiles(repo, sha, place)

    @contextmanager
    def _alone(self, place: Path) -> Iterator[None]:
        """One fetches a model, others wait for it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with FileLock(self.folder / f"{place.name}{LOCK}"):
            yield

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
    for folder, _, names in os.walk(part):
        Path(folder).chmod(0o755)
        for name in names:
            (Path(folder) / name).chmod(0o644)

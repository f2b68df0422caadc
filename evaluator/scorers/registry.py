"""Built-in metrics: the table of rows, how a row is run, and the families that load them."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from benchmarks.errors import PlatformError, SubmitterError
from benchmarks.schema import Method
from evaluator.scorers.device import check_device
from evaluator.scoring.contract import Compares, Scorer

Dtype = Literal["float32", "bfloat16", "float16"]


@dataclass(frozen=True)
class Runtime:
    """What an operator decides; picklable, for it travels to actors."""

    device: str = "cpu"  # as torch names it: `cpu`, `cuda`, `cuda:1`
    # precision of the model's weights and of its forward pass; None: the row's own
    dtype: Dtype | None = None
    # checkpoint role to a local folder or file, in place of the Hub's
    folders: dict[str, Path] = field(default_factory=dict)
    # checkpoint role to a commit, in place of the row's
    revisions: dict[str, str] = field(default_factory=dict)
    # whether the Hub is never asked; checkpoints must be in its cache or `folders`
    offline: bool = False
    # whether weights in other formats than safetensors may be read. They can run code when they are
    # read, so only an operator says so
    allow_pickle: bool = False
    trust_remote_code: bool = False  # whether code of a checkpoint's repository may be run
    # file of questions for metrics that ask them; None: the row's own writer
    questions: Path | None = None
    batch_texts: int = 64  # rows of one call of a text or joint encoder


Granularity = Literal["overall", "elements", "questions"]


class Frozen(BaseModel):
    """Base of rows and of families' options: unknown keys are mostly typos, so they are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Checkpoint(Frozen):
    """Weights on the Hub."""

    id: str  # Repository, `owner/name`; a path of a folder stands for itself
    revision: str = ""
    """Commit. Empty: the one found when it is first fetched here, which is then kept to."""
    file: str = ""
    """One file of the repository, where it is not laid out as a `transformers` checkpoint."""
    weights: bool = True
    """False where only its configuration, vocabulary or image processor is used."""
    pattern: str = ""
    """Names of its weight files, where a repository holds several layouts of the same weights."""
    licence: str = ""  # Of the weights; empty: not verified


class ScorerRow(Frozen):
    """One metric."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9.-]*$", max_length=64)
    """On boards and on the command line."""
    family: str = Field(pattern=r"^[a-z][a-z0-9_]*$")  # File in `families/`
    title: str
    summary: str  # One sentence: what it asks and what its number is
    formula: str  # The score, exactly
    source: str  # Paper, section or table, or the code it follows
    checkpoints: dict[str, Checkpoint] = Field(default_factory=dict)
    """By role; most families read only `model`."""
    options: dict[str, Any] = Field(default_factory=dict)  # What the family's `Options` says
    low: float | None = None  # Smallest possible score; None where unbounded
    high: float | None = None
    higher_is_better: bool = True
    granularity: tuple[Granularity, ...] = ("overall",)
    reads_prompt: bool = True
    """False: it judges the image alone, so its scores are the same under every prompt."""
    dtype: Dtype = "float32"  # Precision of the authors' figures, and the default here
    trained_on: tuple[str, ...] = ()  # Benchmarks whose data it was trained or tuned on
    parameters: float | None = None  # Weights that take part, in units
    flops_per_pair: float | None = None
    """Of one forward pass; where its cost depends on the prompt, of a prompt of 20 tokens."""
    environment: str = ""
    """The operator's environment whose packages take the place of ours; empty: ours alone."""
    notes: tuple[str, ...] = ()  # What changes the number and is easily overlooked

    @property
    def digest(self) -> str:
        """SHA-256 of what decides the score, in hex: not of titles and notes, nor of commits."""
        said = self.model_dump(mode="json", include={"family", "options", "dtype"})
        said["checkpoints"] = {
            role: one.model_dump(mode="json", exclude={"revision", "licence"})
            for role, one in self.checkpoints.items()
        }
        if self.environment:
            said["environment"] = self.environment
        return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()

    @property
    def asks_questions(self) -> bool:
        """Whether it is run with a question file: for its questions, or the elements they name."""
        return "questions" in self.granularity or self.options.get("overall") == "elements_mean"

    @property
    def reads(self) -> str:
        """What a score depends on, for people."""
        return "image and prompt" if self.reads_prompt else "image only"

    @property
    def method(self) -> Method:
        """Whether it scores images, or compares two of a prompt."""
        return "compare" if self.options.get("method") == "compare" else "score"

    @property
    def endpoint(self) -> str:
        """The operator's endpoint that it asks and pays; empty where it runs on our machines."""
        return str(self.options.get("endpoint", ""))

    @property
    def revisions(self) -> dict[str, str]:
        """Role to the commit that the row names; roles without one are left out."""
        return {role: one.revision for role, one in self.checkpoints.items() if one.revision}


Options = TypeVar("Options", bound=Frozen)


@dataclass(frozen=True)
class Loaded:
    """A scorer with what has to be said of it."""

    scorer: Scorer | Compares
    environment: dict[str, str]  # device, precision, image processor, checkpoints' commits
    # what tells two ways of preparing an image apart; part of the key of kept embeddings
    preprocessing: str = ""


@dataclass(frozen=True)
class Family(Generic[Options]):
    """One way to compute a score; a file in `families/` names an instance `FAMILY`."""

    title: str  # for people: `dual encoder`
    options: type[Options]  # what a row's `options` may hold
    # loads the checkpoints and makes the scorer
    load: Callable[[ScorerRow, Options, Runtime], Loaded]
    # what beside the row, its checkpoints and its code decides a score, where there is such a thing
    identity: Callable[[Options], dict[str, str]] | None = None

    def check(self, row: ScorerRow) -> Options:
        """The options of a row."""
        return self.options.model_validate(row.options)


ROWS = Path(__file__).parent / "rows"


def load_rows(folder: Path = ROWS) -> Mapping[str, ScorerRow]:
    """All rows by name, those of a file together, in the files' order."""
    rows: dict[str, ScorerRow] = {}
    for path in sorted(folder.glob("*.toml")):
        for row in _file_rows(path, path.stat().st_mtime_ns):
            if row.name in rows:
                raise PlatformError("bad_scorer_row", f"{path.name}: {row.name} is there twice.")
            rows[row.name] = row
    return rows


@lru_cache(maxsize=64)
def _file_rows(path: Path, changed_ns: int) -> tuple[ScorerRow, ...]:
    """Rows of a file that was last changed at a time, read once: `submit` looks rows up one by one."""
    del changed_ns
    try:
        return tuple(ScorerRow.model_validate(values) for values in _tables(path))
    except ValidationError as error:
        raise PlatformError("bad_scorer_row", f"{path.name}: {_first(error)}.") from error


def _tables(path: Path) -> list[dict[str, Any]]:
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8")).get("scorer")
    except ValueError as error:
        raise PlatformError("bad_scorer_row", f"{path.name}: {error}.") from error
    if not isinstance(tables, list):
        raise PlatformError("bad_scorer_row", f"{path.name} holds no [[scorer]].")
    return tables


def find_row(name: str, rows: Mapping[str, ScorerRow]) -> ScorerRow:
    """The row of a name."""
    if name in rows:
        return rows[name]
    close = get_close_matches(name, rows, n=3, cutoff=0.4)
    hint = f"Did you mean {' or '.join(close)}?" if close else ""
    raise SubmitterError(
        "unknown_scorer",
        f"There is no built-in metric {name!r}.",
        f"{hint} `python -m evaluator scorers list` shows all.".strip(),
    )


def family_of(row: ScorerRow) -> Family[Any]:
    """The family of a row; imports its file, and with it what the file needs."""
    name = f"evaluator.scorers.families.{row.family}"
    try:
        module = import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise PlatformError("bad_scorer_row", f"{row.name}: no family {row.family!r}.") from error
    family: Family[Any] = module.FAMILY
    return family


def load_scorer(row: ScorerRow, runtime: Runtime) -> Loaded:
    """Load a metric."""
    check_device(runtime.device)
    family = family_of(row)
    try:
        options = family.check(row)
    except ValidationError as error:
        raise PlatformError("bad_scorer_row", f"{row.name}: {_first(error)}.") from error
    return family.load(row, options, runtime)


def _first(error: ValidationError) -> str:
    """Where a row does not fit, and why."""
    found = error.errors()[0]
    where = ".".join(map(str, found["loc"]))
    return f"{where}: {found['msg']}" if where else str(found["msg"])

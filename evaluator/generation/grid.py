"""Grid of models: which are drawn with the same prompts and seeds, how each went, and all on one page."""

from __future__ import annotations

import base64
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from benchmarks.errors import SubmitterError
from benchmarks.sources.output import replace_durably
from evaluator.generation.folder import CONTACT_SHEET, RunFolder, default_name, spread
from evaluator.generation.manifest import ImageRow, Scalar
from evaluator.generation.prompts import ChosenPrompts, Prompt
from evaluator.generation.recipes import Overrides
from evaluator.standalone_page import render_page
from leaderboard.thumbnails import MEDIA_TYPE, thumbnail

PAGE = "grid.html"
MOST_PROMPTS = 60
MOST_MODELS = 100
_WIDTH = 320
_FOR_PIPELINES = ("recipe", "steps", "guidance", "negative_prompt", "revision", "variant")


class ModelRequest(BaseModel):
    """A model, and how it is run; what is None or empty is left to its recipe or endpoint."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str = Field(min_length=1)  # Hub id, folder, or id at the endpoint
    endpoint: str = ""  # Name in the operator's file; empty: a pipeline of diffusers
    name: str = ""  # On boards, and of its folder in a grid; empty: by its id
    licence: str = ""
    revision: str = ""  # Branch, tag or commit on the Hub
    variant: str = ""  # Which of several files of the same weights
    recipe: str | None = None  # By name
    steps: int | None = Field(default=None, ge=1)
    guidance: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    width: int | None = Field(default=None, ge=8)  # In pixels
    height: int | None = Field(default=None, ge=8)
    negative_prompt: str | None = None
    quality: str = ""  # As the endpoint names it
    set: dict[str, Scalar | tuple[Scalar, ...]] = Field(default_factory=dict)
    """Further arguments of the pipeline's call, or further fields of each request."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if not self.endpoint:
            if self.quality:
                raise ValueError("quality is for endpoints")
            return self
        given = [name for name in _FOR_PIPELINES if getattr(self, name) not in (None, "")]
        if given:
            raise ValueError(f"{', '.join(given)}: for pipelines, not for endpoints")
        if (self.width is None) != (self.height is None):
            raise ValueError("an endpoint is asked for both width and height, or for neither")
        return self

    @property
    def size(self) -> str:
        """As endpoints have it: `1024x1024`; empty where none is asked for."""
        return f"{self.width}x{self.height}" if self.width and self.height else ""

    @property
    def overrides(self) -> Overrides:
        """What is said of a pipeline's call."""
        return Overrides(
            steps=self.steps,
            guidance=self.guidance,
            width=self.width,
            height=self.height,
            negative_prompt=self.negative_prompt,
            call=self.set,
        )

    @property
    def folder_name(self) -> str:
        """Name of its folder in a grid."""
        return default_name(self.name or self.model.rstrip("/"))


class _Grid(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    model: tuple[ModelRequest, ...] = Field(min_length=1, max_length=MOST_MODELS)


def read_grid(path: Path) -> tuple[ModelRequest, ...]:
    """The models of a TOML file, a table `[[model]]` for each.

    Raises:
        SubmitterError: `bad_grid`, with everything that is wrong.
    """
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
        return _Grid.model_validate(values).model
    except ValidationError as error:
        raise _bad_grid(path.name, faults(error)) from None
    except (OSError, ValueError) as error:
        raise _bad_grid(path.name, str(error)) from error


def faults(error: ValidationError) -> str:
    """Everything that is wrong, each with its key."""
    told = ((".".join(map(str, one["loc"])), one["msg"]) for one in error.errors())
    return "; ".join(f"{where}: {what}" if where else what for where, what in told)


def check_folders(requests: Sequence[ModelRequest]) -> None:
    """Refuse a grid of which two models would have the same folder.

    Raises:
        SubmitterError: `bad_grid`.
    """
    names = [one.folder_name.lower() for one in requests]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise _bad_grid("The grid", f"two models would have the folder {', '.join(twice)}")


def _bad_grid(where: str, problem: str) -> SubmitterError:
    return SubmitterError(
        "bad_grid",
        f"{where}: {problem}.",
        "A grid has a table [[model]] with model = ... for each, and a name where two are alike.",
    )


@dataclass(frozen=True)
class GridResult:
    """How a model of a grid went."""

    model: str
    folder: str  # in the grid's folder
    wanted: int  # images
    images: int  # that are there
    withheld: Mapping[str, int]  # problem to how many have none for it
    seconds: float  # that its images took; at an endpoint several at a time
    usd: float | None  # that its images cost; None where it is not paid for
    problem: str  # why it is not complete; empty where it is

    @classmethod
    def of(
        cls,
        request: ModelRequest,
        folder: RunFolder,
        prompts: ChosenPrompts,
        seeds: Sequence[int],
        problem: str,
    ) -> GridResult:
        """What its folder holds."""
        rows = _wanted_rows(folder, prompts.prompts, seeds)
        problems = [row.problem for row in rows if row.problem]
        return cls(
            model=request.model,
            folder=request.folder_name,
            wanted=len(prompts.prompts) * len(seeds),
            images=sum(row.file is not None for row in rows),
            withheld={name: problems.count(name) for name in dict.fromkeys(problems)},
            seconds=sum(row.seconds or 0.0 for row in rows),
            usd=sum(row.usd or 0.0 for row in rows) if request.endpoint else None,
            problem=problem,
        )


@dataclass(frozen=True)
class _Cell:
    """A place of the page."""

    picture: str  # address of a thumbnail, which holds it; empty where there is none
    said: str  # in place of it, or what it shows


def write_page(
    out: Path, results: Sequence[GridResult], prompts: ChosenPrompts, seeds: Sequence[int]
) -> Path:
    """Write the contact sheet of all models: one column for each, one row for each prompt.

    The first seed alone is shown, of prompts spread over the set where there are too many.
    """
    seed = seeds[0]
    shown = spread(prompts.prompts, MOST_PROMPTS)
    columns = [_column(RunFolder(out / one.folder), shown, seed) for one in results]
    page = render_page(
        "evaluator.generation",
        "grid.html",
        results=results,
        prompts=shown,
        n_prompts=len(prompts.prompts),
        rows=list(zip(*columns, strict=True)),
        seed=seed,
        source=prompts.benchmark,
        sheet=CONTACT_SHEET,
    )
    replace_durably(out / PAGE, page.encode())
    return out / PAGE


def _wanted_rows(
    folder: RunFolder, prompts: Sequence[Prompt], seeds: Sequence[int]
) -> list[ImageRow]:
    wanted = {(prompt.prompt_id, seed) for prompt in prompts for seed in seeds}
    try:
        return [row for row in folder.rows() if row.key in wanted]
    except SubmitterError:  # A table that is no longer one: its model's problem says so.
        return []


def _column(folder: RunFolder, prompts: Sequence[Prompt], seed: int) -> list[_Cell]:
    found = {row.prompt_id: row for row in _wanted_rows(folder, prompts, [seed])}
    return [_cell(folder, found.get(prompt.prompt_id)) for prompt in prompts]


def _cell(folder: RunFolder, row: ImageRow | None) -> _Cell:
    if row is None:
        return _Cell("", "not there")
    if row.file is None:
        return _Cell("", f"{row.problem}: {row.refusal}" if row.refusal else str(row.problem))
    try:
        small = thumbnail((folder.path / row.file).read_bytes(), _WIDTH)
    except (OSError, ValueError):
        return _Cell("", "damaged")
    data = base64.b64encode(small).decode()
    return _Cell(f"data:{MEDIA_TYPE};base64,{data}", row.revised_prompt or "")

"""Files of a folder of generations: `assay.toml`, and the table of images.

The name in `assay.toml` is the model's, its licence the weights'. The table has one line of JSON for
each image, appended as images are finished.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from datetime import date, datetime
from pathlib import Path
from typing import Annotated, Literal, Self

import tomlkit
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from benchmarks.errors import SubmitterError
from benchmarks.prompt_sets.prompt_set import MAX_SEED
from evaluator.manifest import NamedManifest, Text, read_manifest
from leaderboard.records import ModelCard, Selection

TABLE = "images.jsonl"
SeedMode = Literal["per_image", "stream"]


class ImageRow(BaseModel):
    """One image, or why there is none. Only the ids and the file are needed in a submission."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    prompt_id: str
    seed: int = Field(ge=0, le=MAX_SEED)
    file: str | None  # Path inside the folder; None where the image is withheld
    prompt: str | None = None
    sha256: str | None = None  # Of the file's bytes
    width: int | None = Field(default=None, ge=1)  # In pixels
    height: int | None = Field(default=None, ge=1)
    problem: str | None = None  # Why it is withheld: `nsfw`, `black` or `refused`
    nsfw: bool | None = None  # The safety checker's verdict; None where none ran
    truncated: bool | None = None
    """Whether a text encoder left out the end of the prompt; None where that is not known."""
    cut_by: tuple[str, ...] = ()  # Which ones did, with what they read: `tokenizer (77 tokens)`
    model: str = ""
    revision: str = ""
    pipeline: str = ""
    scheduler: str = ""
    steps: int | None = None
    guidance: float | None = None
    seed_mode: SeedMode | None = None
    position: int | None = None  # In a stream of noise, how many images of this seed came before
    dtype: str = ""
    device: str = ""
    versions: dict[str, str] = Field(default_factory=dict)
    seconds: float | None = None  # Its share of the time of the batch it was drawn in
    endpoint: str = ""  # Name of the endpoint that drew it
    drawn_on: str = ""  # Day, as YYYY-MM-DD, of an image behind an endpoint
    usd: float | None = None  # Price of an image behind an endpoint
    revised_prompt: str | None = None  # What the endpoint drew in place of the prompt, as it says
    refusal: str | None = None  # Why the endpoint refused the prompt, in its words

    @property
    def key(self) -> tuple[str, int]:
        """What makes a row unique."""
        return self.prompt_id, self.seed


class BrokenRow(BaseModel):
    """A line that is not a row."""

    model_config = ConfigDict(frozen=True)

    line: int
    reason: str


def parse_rows(content: bytes) -> tuple[list[ImageRow], list[BrokenRow]]:
    """Rows in the order of their lines, and what is wrong with the other lines."""
    rows: list[ImageRow] = []
    broken: list[BrokenRow] = []
    for found in stream_rows(content.splitlines()):
        if isinstance(found, ImageRow):
            rows.append(found)
        else:
            broken.append(found)
    return rows, broken


def stream_rows(lines: Iterable[bytes]) -> Iterator[ImageRow | BrokenRow]:
    """What each line holds that is not empty, one line at a time."""
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            yield ImageRow.model_validate_json(line)
        except ValidationError as error:
            yield BrokenRow(line=number, reason=row_fault(error))


def row_fault(error: ValidationError) -> str:
    """The first thing that is wrong with a row, in words."""
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    return f"{where} {first['msg']}".strip()[:200]


def read_rows(folder: Path) -> list[ImageRow]:
    """The rows of a run that may have been cut off; a later row replaces an earlier one.

    Only the last line may be broken, by the cut: its image is made again.
    """
    path = folder / TABLE
    if not path.exists():
        return []
    content = path.read_bytes()
    rows, broken = parse_rows(content)
    if broken and not (len(broken) == 1 and broken[0].line == len(content.splitlines())):
        raise SubmitterError(
            "table_malformed",
            f"{path}, line {broken[0].line}: {broken[0].reason}.",
            "Mend or remove that line; its image is made again.",
        )
    return list({row.key: row for row in rows}.values())


def encoded(rows: Iterable[ImageRow]) -> bytes:
    """The rows as lines."""
    return b"".join(_line(row) for row in rows)


def in_order(rows: Iterable[ImageRow], keys: Iterable[tuple[str, int]]) -> Iterator[ImageRow]:
    """Rows in the order of the keys, then those that are not among them."""
    by_key = {row.key: row for row in rows}
    for key in dict.fromkeys([*keys, *by_key]):
        if key in by_key:
            yield by_key[key]


def _line(row: ImageRow) -> bytes:
    return json.dumps(row.model_dump(mode="json"), ensure_ascii=False).encode() + b"\n"


Dtype = Literal["float32", "bfloat16", "float16"]  # Precision of weights and arithmetic
Scalar = bool | int | float | str
SafetyChecker = Literal["on", "off", "none"]
"""`none`: the checkpoint has none, so nothing is known about its images."""


class Settings(BaseModel):
    """The settings of one folder; the whole of it is kept in its manifest."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str  # Hub id, or the name of the operator's own folder
    revision: str
    """Commit on the Hub; `sha256:...` over the files of a folder of the operator's own."""
    variant: str = ""  # Which of several files of the same weights, e.g. `fp16`
    pipeline: str  # Class of diffusers
    scheduler: str  # Its class; what it is configured with belongs to the checkpoint
    recipe: str = ""  # Name in the table of recipes; empty: the pipeline's own defaults
    seed_mode: SeedMode = "per_image"
    dtype: str  # Precision of the weights
    decoder_dtype: str = ""  # Precision of the VAE, where it differs
    device: str  # `cpu`, `cuda`, `mps`: arithmetic differs between them
    safety_checker: SafetyChecker
    call: dict[str, Scalar | tuple[Scalar, ...]] = Field(default_factory=dict)
    """Every argument of the pipeline's call that is a plain value, defaults spelt out."""


class EndpointSettings(BaseModel):
    """The settings of one folder whose images come from an endpoint."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    endpoint: str  # Its name in the operator's file; never its key
    model: str  # Id of the model there
    size: str = ""  # As `1024x1024`; empty: the endpoint's own
    quality: str = ""  # As the endpoint names it; empty: the endpoint's own
    image_usd: float = Field(ge=0, allow_inf_nan=False)  # Price of an image, when last asked
    reproducible: bool
    """Whether the endpoint takes the seed; if not, each prompt and seed is one draw, and the same
    image cannot be had again."""
    call: dict[str, Scalar | tuple[Scalar, ...]] = Field(default_factory=dict)
    """What else each request says."""


def differences(
    there: Settings | EndpointSettings, now: Settings | EndpointSettings
) -> Iterator[str]:
    """What differs, in words: `num_inference_steps: 28 there, 20 now`."""
    before, after = _flat(there), _flat(now)
    for name in dict.fromkeys([*before, *after]):
        if before.get(name) != after.get(name):
            yield f"{name}: {before.get(name, 'unset')} there, {after.get(name, 'unset')} now"


def _flat(settings: Settings | EndpointSettings) -> dict[str, object]:
    # Which recipe the values came from changes no image, nor does what an image costs.
    values = settings.model_dump(exclude={"call", "recipe", "image_usd"})
    return {**values, **settings.call}


Seed = Annotated[int, Field(ge=0, le=MAX_SEED)]


class GenerationsManifest(NamedManifest):
    """What a folder of generations says about itself."""

    kind: Literal["generations"] = "generations"
    model: Text = Field(default="", max_length=300)  # Hub id of the model, where there is one
    revision: Text = Field(default="", max_length=300)
    """Its commit; `sha256:...` over the files of a folder of the operator's own."""
    benchmark: str = Field(default="", pattern=r"^[a-z0-9_]*$")
    """Whose prompts were drawn; empty for prompts of one's own."""
    benchmark_revision: str = ""
    seeds: tuple[Seed, ...] = ()
    """Every prompt is wanted once for each; empty: those that the table names."""
    images: str = TABLE  # The table of images
    parameters: int | None = Field(default=None, ge=1)  # Number of the model's weights
    steps: int | None = Field(default=None, ge=1)  # Denoising steps; None: as `settings` say
    guidance: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Guidance scale; None: as `settings` say."""
    drawn_on: str = ""  # Day, as YYYY-MM-DD: a service behind an address changes under one name
    released: str = ""  # Day of the model's release, as YYYY-MM-DD
    selection: Selection = "first"
    """Whether the image of a prompt and seed is the first that was drawn, or the best of several."""
    best_of: int | None = Field(default=None, ge=2)
    """Of how many the best was taken; with `selection = "best_of"` alone."""
    selected_by: Text = Field(default="", max_length=200)
    """What took the best: a person, or the metric by its name."""
    settings: Settings | None = None  # How they were made, where `generate` drew them
    endpoint: EndpointSettings | None = None  # Likewise, where an endpoint drew them
    versions: dict[str, str] = Field(default_factory=dict)
    """Of the libraries, when the run last went on; each row has its own."""

    @field_validator("drawn_on", "released", mode="before")
    @classmethod
    def _day(cls, value: object) -> object:
        if isinstance(value, date) and not isinstance(value, datetime):  # TOML has days of its own
            return value.isoformat()
        if value == "" or not isinstance(value, str):
            return value
        try:
            if date.fromisoformat(value).isoformat() == value:
                return value
        except ValueError:
            pass
        raise ValueError("is no day as YYYY-MM-DD")

    @model_validator(mode="after")
    def _selected(self) -> Self:
        wrong = list(_selection_faults(self))
        if wrong:
            raise ValidationError.from_exception_data(
                "selection",
                [
                    InitErrorDetails(
                        type=PydanticCustomError("selection", message),
                        loc=(key,),
                        input=getattr(self, key),
                    )
                    for key, message in wrong
                ],
            )
        return self

    @property
    def made_with(self) -> Settings | EndpointSettings | None:
        """How they were made; None where `generate` did not make them."""
        return self.settings or self.endpoint

    def model_card(self) -> ModelCard:
        """How the images were made, as the boards show it."""
        call = self.settings.call if self.settings else {}
        steps, guidance = call.get("num_inference_steps"), call.get("guidance_scale")
        return ModelCard(
            model=self.model,
            revision=self.revision,
            parameters=self.parameters,
            steps=self.steps if self.steps is not None else _whole(steps),
            guidance=self.guidance if self.guidance is not None else _finite(guidance),
            drawn_on=self.drawn_on,
            released=self.released,
            selection=self.selection,
            best_of=self.best_of,
            selected_by=self.selected_by if self.selection == "best_of" else "",
        )


def _selection_faults(manifest: GenerationsManifest) -> Iterator[tuple[str, str]]:
    """Keys that contradict `selection`, and why."""
    if manifest.selection == "best_of" and manifest.best_of is None:
        yield "selection", "it needs best_of: of how many images the best was taken"
    if manifest.selection != "best_of" and manifest.best_of is not None:
        yield "best_of", 'it goes with selection = "best_of" alone'


def _whole(value: object) -> int | None:
    """A number of steps; a pipeline may call something else by that name."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        return None
    return value


def _finite(value: object) -> float | None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return float(value) if math.isfinite(value) and value >= 0 else None


def manifest_text(manifest: GenerationsManifest) -> bytes:
    """The manifest as TOML, its kind first; keys that say nothing are left out."""
    values = {"kind": manifest.kind, **manifest.model_dump(mode="json", exclude_none=True)}
    if manifest.selection == "first":
        del values["selection"]
    return tomlkit.dumps({k: v for k, v in values.items() if v not in ("", [], {})}).encode()


def parse_generations(content: bytes) -> GenerationsManifest:
    """Read a manifest."""
    return read_manifest(content, GenerationsManifest)

"""`assay.toml`, the manifest of a scoring module, and its outputs where it gives several scores per pair."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from benchmarks.errors import SubmitterError
from benchmarks.schema import Kind, Method
from benchmarks.scores import check_metric_name
from evaluator.manifest import NamedManifest, read_manifest

_ENTRY_POINT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*:[A-Za-z_][A-Za-z0-9_]*")
_BENCHMARK = re.compile(r"[a-z0-9_]+")
_MODEL = re.compile(
    r"([A-Za-z0-9][A-Za-z0-9._-]{0,95}/[A-Za-z0-9][A-Za-z0-9._-]{0,95})@[0-9a-f]{40}"
)
_NOT_IN_REPOSITORIES = ("--", "..")
MAX_MODELS = 8
LEAST_FLOPS, MOST_FLOPS = 1.0, 1e21
"""Of one pair. No scorer lies outside, and a number that does would flatten everybody's chart."""
FEWEST, MOST = 2, 8
Direction = Literal["higher_is_better", "lower_is_better"]


class Output(BaseModel):
    """One of several scores of a pair; what is not said of it is as the module says of all."""

    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True)

    direction: Direction | None = None
    range: tuple[float, float] | None = None
    """Smallest and largest score it can give, where it has bounds."""
    benchmarks: tuple[str, ...] = ()
    """Benchmarks it is a metric on; empty means all that the module is run on."""
    kinds: tuple[Kind, ...] = ()
    """What people judged on the benchmarks it is a metric on: `alignment`, `preference`, `quality`;
    empty means anything."""

    @field_validator("range", mode="before")
    @classmethod
    def _range(cls, value: object) -> object:
        return _checked_range(value)

    def is_on(self, benchmark: str, kind: Kind) -> bool:
        """Whether it is a metric on a benchmark of this kind."""
        named = not self.benchmarks or benchmark in self.benchmarks
        return named and (not self.kinds or kind in self.kinds)


def _metric_name(module: str, output: str) -> str:
    """Name on the boards of an output of a module."""
    return f"{module}-{output}"


def _checked_range(value: object) -> object:
    """A range as it is written in a manifest."""
    # As written, since pydantic speaks of tuples and of missing items.
    if value is None or (isinstance(value, list | tuple) and _is_range(value)):
        return value
    raise ValueError("must be two finite numbers in a list, the smaller one first")


def _is_range(value: Sequence[object]) -> bool:
    numbers = [v for v in value if isinstance(v, int | float) and not isinstance(v, bool)]
    if len(value) != 2 or len(numbers) != 2:
        return False
    return all(math.isfinite(v) for v in numbers) and numbers[0] < numbers[1]


def _named_outputs(value: object) -> object:
    """Names in a list as a table of outputs; anything else as it is."""
    if isinstance(value, dict):
        return value
    if not isinstance(value, list | tuple) or not all(isinstance(name, str) for name in value):
        raise ValueError("must be a list of names, or a table [outputs.NAME] of each")
    if twice := {name for name in value if value.count(name) > 1}:
        raise ValueError(f"{_listed(twice)} is named more than once")
    return {name: {} for name in value}


def _check_outputs(module: str, outputs: Mapping[str, Output], benchmarks: Sequence[str]) -> None:
    """Whether a module may have these outputs; everything that is wrong is in one `ValueError`."""
    if problems := list(_problems(module, outputs, benchmarks)):
        raise ValueError("; ".join(problems))


def _problems(
    module: str, outputs: Mapping[str, Output], benchmarks: Sequence[str]
) -> Iterator[str]:
    if not FEWEST <= len(outputs) <= MOST:
        yield (
            f"names {len(outputs)}, and there may be {FEWEST} to {MOST}; a metric with one output "
            "names none"
        )
    folded: dict[str, str] = {}
    for name, output in outputs.items():
        before = folded.setdefault(name.casefold(), name)
        if before != name:
            yield f"{_quoted(before)} and {_quoted(name)} differ in case alone"
        try:
            check_metric_name(name)
            check_metric_name(_metric_name(module, name))
        except SubmitterError as error:
            yield f"{_quoted(name)}: {error.message} {error.hint}".rstrip(".")
        if others := [one for one in output.benchmarks if benchmarks and one not in benchmarks]:
            yield f"{_quoted(name)} is to be on {_listed(others)}, which `benchmarks` does not name"


def _benchmarks_of_outputs(
    outputs: Mapping[str, Output], kinds: Mapping[str, Kind]
) -> dict[str, tuple[str, ...]]:
    """Output to the benchmarks it is on, of those the module would be run on, given with their kinds.

    Raises:
        SubmitterError: `output_nowhere`: one is on none of them.
    """
    found = {
        name: tuple(one for one, kind in kinds.items() if output.is_on(one, kind))
        for name, output in outputs.items()
    }
    if nowhere := [name for name, on in found.items() if not on]:
        raise SubmitterError(
            "output_nowhere",
            f"The output {_listed(nowhere)} is on none of the benchmarks that the module would be run "
            f"on: {', '.join(kinds)}.",
            "Name others under [outputs.NAME] in assay.toml, or leave the output out.",
        )
    return found


def _quoted(name: str) -> str:
    return repr(name[:80])


def _listed(names: Sequence[str] | set[str]) -> str:
    return ", ".join(_quoted(name) for name in sorted(names))


class Manifest(NamedManifest):
    """What a scoring module says about itself.

    Weights come bundled (`weights`), or as public models of the Hub that are fetched before the
    box starts, since it has no network:

        models = ["openai/clip-vit-base-patch32@3d74acf9a28c67741b2f4f2ea7635f0aaf6f0268"]

    The constructor is given their folders as `models`, a dictionary by `owner/name`; libraries
    that load by `owner/name` find them as well.
    """

    entry_point: str = "scorer:Scorer"
    """`module:Class` inside the archive."""
    method: Method = "score"
    """Method that is asked: `score`, a number for an image and a prompt; or `compare`, a margin for
    two images of a prompt, in both orders."""
    weights: str = ""
    """Bundled safetensors file, given to the constructor as `weights`."""
    direction: Direction = "higher_is_better"
    range: tuple[float, float] | None = None
    """Smallest and largest score the module can give, where it has bounds."""
    trained_on: tuple[str, ...] = ()
    """Benchmarks whose data the scorer was trained or tuned on; they need not be known here."""
    flops_per_pair: float | None = None
    """Floating-point operations of scoring one pair, such as 9.9e10, counted by its author (a
    multiplication with its addition is two; where it depends on the prompt, one of 20 tokens). It is
    shown as declared, not measured."""
    models: tuple[str, ...] = ()
    """Public models of the Hub that it loads, each as `owner/name@commit` with the forty digits of
    the commit; at most eight."""
    environment: str = ""
    """One of the operator's environments, in place of Assay's own packages; a metric may bring a
    `requirements.lock` instead."""
    benchmarks: tuple[str, ...] = ()
    """Benchmarks to be run on; empty means all whose images are at hand."""
    outputs: dict[str, Output] = Field(default_factory=dict)
    """Names of the scores of a pair, where `score` gives a row of several, 2 to 8, in their order: a
    list, or a table `[outputs.NAME]` of each with `direction`, `range`, `benchmarks` or `kinds`. Each
    is a metric NAME-OUTPUT of its own."""

    @field_validator("entry_point")
    @classmethod
    def _entry_point(cls, value: str) -> str:
        if not _ENTRY_POINT.fullmatch(value):
            raise ValueError("must be module:Class, for example scorer:Scorer")
        return value

    @field_validator("weights")
    @classmethod
    def _weights(cls, value: str) -> str:
        if value and not value.endswith(".safetensors"):
            raise ValueError("must be a .safetensors file inside the archive")
        return value

    @field_validator("range", mode="before")
    @classmethod
    def _range(cls, value: object) -> object:
        return _checked_range(value)

    @field_validator("direction", "range")
    @classmethod
    def _of_scores(cls, value: object, found: ValidationInfo) -> object:
        if found.data.get("method") == "compare":
            raise ValueError(
                'is of scores; with method = "compare" a positive number says that the first image '
                "is better"
            )
        return value

    @field_validator("trained_on")
    @classmethod
    def _trained_on(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if not _BENCHMARK.fullmatch(name):
                raise ValueError(
                    f"{name[:80]!r} is not a benchmark's name (small letters, digits and _)"
                )
        return value

    @field_validator("flops_per_pair", mode="before")
    @classmethod
    def _flops(cls, value: object) -> object:
        # As written, since pydantic would take true for 1 and read numbers in strings.
        if value is None:
            return value
        number = value if isinstance(value, int | float) and not isinstance(value, bool) else 0
        if LEAST_FLOPS <= number <= MOST_FLOPS:
            return number
        raise ValueError(
            f"must be a number from {LEAST_FLOPS:g} to {MOST_FLOPS:g}: the floating-point "
            "operations of scoring one pair"
        )

    @field_validator("benchmarks")
    @classmethod
    def _benchmarks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if value.count(name) > 1:
                raise ValueError(f"{name[:80]!r} is named more than once")
        return value

    @field_validator("outputs", mode="before")
    @classmethod
    def _named_outputs(cls, value: object) -> object:
        return _named_outputs(value)

    @field_validator("outputs")
    @classmethod
    def _outputs(cls, value: dict[str, Output], found: ValidationInfo) -> dict[str, Output]:
        if found.data.get("method") == "compare":
            raise ValueError('are of scores; with method = "compare" there is one margin')
        _check_outputs(found.data.get("name", ""), value, found.data.get("benchmarks", ()))
        return value

    @field_validator("models")
    @classmethod
    def _models(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if len(value) > MAX_MODELS:
            raise ValueError(f"names {len(value)} models; {MAX_MODELS} are fetched at most")
        repositories = [_repository(model) for model in value]
        for repository in repositories:
            if repositories.count(repository) > 1:
                raise ValueError(f"{repository!r} is named more than once")
        return value

    @property
    def of_metrics(self) -> Mapping[str, Output]:
        """Its metrics on the boards, each with all that holds for it: one, or one for each output."""
        said = self.outputs or {"": Output()}
        return {
            _metric_name(self.name, output) if output else self.name: own.model_copy(
                update={
                    "direction": own.direction or self.direction,
                    "range": own.range or self.range,
                }
            )
            for output, own in said.items()
        }

    @property
    def lower_is_better(self) -> tuple[str, ...]:
        """Its metrics for which lower is better."""
        return tuple(
            name for name, one in self.of_metrics.items() if one.direction == "lower_is_better"
        )

    @property
    def flops_of_metrics(self) -> dict[str, float]:
        """What it declares of its metrics, as records keep it; empty where it does not."""
        if self.flops_per_pair is None:
            return {}
        return dict.fromkeys(self.of_metrics, self.flops_per_pair)

    @property
    def bounds(self) -> dict[str, tuple[float, float] | None]:
        """Metric to the smallest and largest score that it can give; None where it says none."""
        return {name: one.range for name, one in self.of_metrics.items()}

    def metric_benchmarks(self, kinds: Mapping[str, Kind]) -> dict[str, tuple[str, ...]]:
        """Metric to its benchmarks, of those it would be run on, given with their kinds.

        Empty where its metrics are on all of them.

        Raises:
            SubmitterError: `output_nowhere`: an output is on none.
        """
        if not self.outputs:
            return {}
        found = _benchmarks_of_outputs(self.outputs, kinds)
        if all(on == tuple(kinds) for on in found.values()):
            return {}
        return {_metric_name(self.name, output): on for output, on in found.items()}

    @property
    def module_file(self) -> str:
        """The file the entry point is imported from."""
        return f"{self.entry_point.partition(':')[0]}.py"


def _repository(model: str) -> str:
    found = _MODEL.fullmatch(model)
    if found is None or any(part in found[1] for part in _NOT_IN_REPOSITORIES):
        raise ValueError(
            f"{model[:200]!r} is not owner/name@commit, with all forty digits of the commit (the "
            "page of a model's files on the Hub shows it under History)"
        )
    return found[1]


def parse_manifest(content: bytes) -> Manifest:
    """Read a manifest.

    Raises:
        SubmitterError: `bad_manifest`, listing every problem with its key.
    """
    return read_manifest(content, Manifest)

"""The contract between a benchmark and everything above it.

A benchmark has two sides that never meet in a scorer's process: `Questions` is all a scorer may
see; the answers are seen by the protocol alone. A benchmark is added by making one folder with a
`protocol.py` that names `BENCHMARKS`, a tuple of `Benchmark` objects (see `benchmarks.registry`).
"""

from __future__ import annotations

import tomllib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self, get_args

import numpy as np
import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from benchmarks.arrays import FloatArray, extreme_unit
from benchmarks.errors import PlatformError, SubmitterError
from benchmarks.inference import infer
from benchmarks.rated_images import RatedImages
from benchmarks.rows import Measured, MeasuredBuilder, Row, concatenate, withheld
from benchmarks.sources.folder import DataFile, DataFolder
from benchmarks.statistics.intervals import PerturbedPlan
from benchmarks.statistics.resampling import DEFAULT_RESAMPLES, ResamplingPlan

Kind = Literal["alignment", "preference", "quality"]
KINDS: tuple[Kind, ...] = get_args(Kind)
Method = Literal["score", "compare"]
"""How a metric is asked: a score of an image and a prompt, or a margin of two images of a prompt."""
BETWEEN_TEXTS = "withheld: it compares scores of different prompts, and the metric compares images of one prompt"
"""Note of a row that a metric with margins cannot have."""


class Frozen(BaseModel):
    """Base of what is read from files: unknown keys are mostly typos, so they are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class MeasureInfo(Frozen):
    """Meaning of a measure, for the header of its column and the about page."""

    title: str
    """Short name in a column header, e.g. `Spearman ρ`."""
    meaning: str
    """One or two sentences for a person who never read the paper."""
    low: float | None = None
    """Smallest possible value; None where unbounded."""
    high: float | None = None
    """Largest possible value; None where unbounded."""
    higher_is_better: bool = True
    chance: float | None = None
    """Expected value of a metric of random scores."""
    in_steps: bool = False
    """Whether it moves in steps that no single cluster causes, as a count of a few relations does:
    such a measure has resamples and ranks, but no influences, so no paired tests."""
    bias_corrected: bool = True
    """Whether its interval is corrected for bias (BCa); else it is a percentile interval."""
    source: str = ""
    """Paper, section and equation."""

    @classmethod
    def correlation(cls, **fields: Any) -> Self:
        """A measure in -1..1, of which random scores get 0."""
        return cls(low=-1.0, high=1.0, chance=0.0, **fields)

    @classmethod
    def share(cls, **fields: Any) -> Self:
        """A measure in 0..1."""
        return cls(low=0.0, high=1.0, **fields)


BY_GENERATOR = "by_generator"
"""Measure of rows that hold the headline on the images of one generator, whose name is their facet."""
BY_GENERATOR_INFO = MeasureInfo(
    title="By generator",
    meaning="The measure of the headline on the images of one generator alone, all of its images in one "
    "pool (of comparisons: those with an image of it).",
    source="Assay, validity against the release date of generators",
)


class Selector(Frozen):
    """Selector of the rows a board ranks by: fields of a `Row` that must match (None matches None)."""

    measure: str
    split: str | None = None
    variant: str | None = None
    facet: str | None = None

    def matches(self, row: Row) -> bool:
        """Whether the row is this measure, whatever its skill."""
        return (row.measure, row.split, row.variant, row.facet) == (
            self.measure,
            self.split,
            self.variant,
            self.facet,
        )


class Scale(Frozen):
    """Scale of a headline value in an index over benchmarks.

    A value is rescaled to (value - chance) / (ceiling - chance): 0 is chance and 1 the ceiling;
    below 0 is worse than chance, and above 1 beyond the ceiling.
    """

    chance: float = Field(allow_inf_nan=False)
    """What random scores get under the protocol, in the unit of the headline."""
    ceiling: float = Field(allow_inf_nan=False)
    """What is within reach: people where there is a figure of theirs, else the largest value."""
    ceiling_is: str = Field(min_length=1)
    """One sentence: what the ceiling is."""
    source: str = Field(min_length=1)
    """Paper, section or table, or command, of both figures."""

    @model_validator(mode="after")
    def _has_a_length(self) -> Self:
        if self.chance == self.ceiling:
            raise ValueError(f"chance and ceiling are both {self.chance}: nothing lies between")
        return self


class Card(Frozen):
    """Description of a benchmark, read from the `card.toml` of its folder."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9_]*$", max_length=60)
    title: str
    family: str
    """The protocol it follows: `croc`, `ts2`, `evalmuse`, `gecko`, ..."""
    summary: str
    """One sentence for the board."""
    description: str
    """Paragraphs for the about page: what the data are, what the board is based on."""
    revision: str
    """Pinned revision of the data; stored in every row."""
    protocol: int = Field(default=1, ge=1)
    """Version of the protocol; raised when a measure comes out otherwise for the same scores."""
    same_questions_as: tuple[str, ...] = ()
    """Earlier revisions with the very same images, texts and pairs: scores made for them stand, and
    only measures are computed again."""
    kind: Kind = "alignment"
    """What people judged: whether image and text fit, which image they prefer, or how good it is. An
    index never mixes kinds."""
    simulated: bool = False
    """True where ratings or labels do not come from people: every page says so."""
    answers_public: bool = True
    """Whether per-pair scores and the scorer's output may be published."""
    cluster: str
    """What is resampled: `prompt pair`, `graph`, `prompt`."""
    headline: Selector
    """What the board is ordered by."""
    headline_scale: Scale | None = None
    """Chance and ceiling of the headline; None keeps the benchmark out of indices."""
    measures: dict[str, MeasureInfo]
    skills: dict[str, str] = Field(default_factory=dict)
    """Skill key to display name, in the order of display."""
    facets: dict[str, str] = Field(default_factory=dict)
    """Facet key to display name."""
    splits: dict[str, str] = Field(default_factory=dict)
    """Split key to display name; a split that is not named here is shown by its key."""
    unfilled: str = ""
    """Why no released results fill its board: what the authors have not published, in a sentence."""
    licence: str = ""
    citation: str = ""
    links: dict[str, str] = Field(default_factory=dict)
    files: tuple[DataFile, ...] = ()
    """What it is read from; empty where it needs no files."""
    counts: dict[str, int] = Field(default_factory=dict)
    """What the files must hold, e.g. `images`; a loader refuses anything else."""

    @model_validator(mode="after")
    def _ceiling_is_better_than_chance(self) -> Self:
        scale = self.headline_scale
        if scale is not None:
            rises = self.higher_is_better(self.headline.measure)
            if (scale.ceiling > scale.chance) is not rises:
                better = "larger" if rises else "smaller"
                raise ValueError(
                    f"{better} values of {self.headline.measure} are better, so its ceiling "
                    f"({scale.ceiling}) cannot lie on the other side of chance ({scale.chance})"
                )
        return self

    def higher_is_better(self, measure: str) -> bool:
        """Whether larger values of a measure are better; so for measures without a description."""
        named = self.headline.measure if measure == BY_GENERATOR else measure
        info = self.measures.get(named)
        return info is None or info.higher_is_better

    @classmethod
    def read(cls, path: Path, measures: Mapping[str, MeasureInfo]) -> Self:
        """Read a card file; the measures come from its protocol, which defines what they mean.

        Raises:
            PlatformError: `invalid_benchmark`: it is not TOML, a field is missing, misspelt or of
                the wrong type, or the headline is none of the measures.
        """
        try:
            card = cls.model_validate(
                {**tomllib.loads(path.read_text("utf-8")), "measures": measures}
            )
        except ValidationError as error:
            said = (f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
            raise PlatformError("invalid_benchmark", f"{path}: {'; '.join(said)}.") from error
        except ValueError as error:
            raise PlatformError("invalid_benchmark", f"{path}: {error}.") from error
        if card.headline.measure not in measures:
            raise PlatformError(
                "invalid_benchmark",
                f"{path}: headline.measure: {card.headline.measure!r} is none of its measures "
                f"({', '.join(measures)}).",
            )
        return card


@dataclass(frozen=True, slots=True)
class Pair:
    """An (image, prompt) combination to be scored."""

    pair_id: str
    image_id: str
    text_id: str


@dataclass(frozen=True, slots=True)
class Element:
    """A part of a prompt that an element-level metric scores on its own, e.g. `two cups`."""

    element_id: str
    text: str


@dataclass(frozen=True)
class Questions:
    """All a scorer may see.

    Attributes:
        images: image_id to a function that returns the encoded image as it is kept, in any
            common format; the engine hands scorers a canonical PNG without metadata.
        texts: text_id to prompt.
        pairs: what is to be scored; each pair_id once.
        elements: text_id to the elements of that prompt; empty where the benchmark has none.
        lists: ids of pairs of one text whose images the benchmark compares with each other; empty
            where it compares all images of a text, None where that is not known.
    """

    images: Mapping[str, Callable[[], bytes]]
    texts: Mapping[str, str]
    pairs: tuple[Pair, ...]
    elements: Mapping[str, tuple[Element, ...]] = field(default_factory=dict)
    lists: tuple[tuple[str, ...], ...] | None = ()


@dataclass(frozen=True)
class ScoreTable:
    """Scores of one or more metrics on one benchmark.

    Attributes:
        overall: index `pair_id` in the benchmark's order, one float64 column per metric;
            NaN means that the metric gave no score there.
        elements: metric to a frame with columns `pair_id`, `element_id`, `score`; a metric
            without element scores is absent.
        directions: metric to +1 (higher is better, the default) or -1.
        repaired: metric to the pair ids whose cell was malformed in the source and mended by
            the benchmark's own documented rule.
        margins: metric to a frame with columns `pair_id`, `other_id`, `margin`, a line for each
            order in which two images of a text were compared: positive where the metric prefers the
            first, NaN where it gave nothing. Of such a metric `overall` holds strengths within each
            text (`benchmarks.statistics.bradley_terry`), which tell nothing between texts.
    """

    overall: pd.DataFrame
    elements: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    directions: Mapping[str, Literal[1, -1]] = field(default_factory=dict)
    repaired: Mapping[str, frozenset[str]] = field(default_factory=dict)
    margins: Mapping[str, pd.DataFrame] = field(default_factory=dict)

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of the metrics, in column order."""
        return tuple(str(name) for name in self.overall.columns)

    def oriented(self) -> pd.DataFrame:
        """`overall` with lower-is-better metrics negated, so that higher is always better.

        A metric whose scores are so large or small that their squares would leave the range of
        doubles is divided by a power of two: no measure depends on the unit of a score.
        """
        factors = [self.directions.get(name, 1) / self.unit(name) for name in self.metrics]
        turned: pd.DataFrame = self.overall * factors
        return turned

    def unit(self, metric: str) -> float:
        """Unit of `oriented` in units of the metric's own scores: 1 as a rule."""
        return extreme_unit(self.overall[metric].to_numpy(np.float64))

    def oriented_elements(self, metric: str) -> pd.DataFrame:
        """The element scores of a metric, negated where lower is better.

        Raises:
            KeyError: the metric has no element scores.
        """
        table = self.elements[metric]
        return table.assign(score=table["score"] * self.directions.get(metric, 1))


def scores_of_elements(table: pd.DataFrame, keys: pd.DataFrame) -> tuple[FloatArray, int]:
    """A metric's scores of elements in the order of the benchmark's.

    `table`: columns `pair_id`, `element_id`, `score`; `keys`: columns `pair_id`, `element_id`, E rows.
    Returns: shape (E,), NaN where the metric gives none; and how many scores belong to no key.
    """
    names = ["pair_id", "element_id"]
    if table[names].reset_index(drop=True).equals(keys[names].reset_index(drop=True)):
        # In the order of the keys, which spares looking up every pair of names.
        return table["score"].to_numpy(np.float64), 0
    joined = keys[names].merge(
        table[[*names, "score"]], on=names, how="left", validate="one_to_one", indicator=True
    )
    known = int((joined["_merge"] == "both").sum())
    return joined["score"].to_numpy(np.float64), len(table) - known


@dataclass(frozen=True)
class Answers:
    """The answer side. Protocols subclass this with tables of their own.

    Attributes:
        pair_ids: every pair a scores file must hold, in the benchmark's order.
        clusters: ids of the clusters that are resampled, in a fixed order.
        sources: SHA-256 of each file the answers were read from, by its path in the card, and the
            commit it was fetched at, by its source; stored with every result.
    """

    pair_ids: tuple[str, ...]
    clusters: tuple[str, ...]
    sources: Mapping[str, str] = field(default_factory=dict, kw_only=True)

    def counts(self) -> dict[str, int]:
        """Counts by name for `describe`, e.g. `images`, `counting: prompts`."""
        return {"pairs": len(self.pair_ids), "clusters": len(self.clusters)}


class Benchmark(ABC):
    """A benchmark: its card, its two sides and its protocol."""

    card: Card
    home: Path | None = None
    """Folder of a card beside which its files may lie; None where none do."""
    asked_from: tuple[str, ...] = ()
    """Files of the card that `questions` cannot do without; none where it has no questions."""
    further: tuple[Callable[[ScoreTable, Any, ResamplingPlan, str, str], Measured], ...] = ()
    """Computes measures that its protocol has not; see `benchmarks.measures`."""
    _answerable: tuple[object, bool] | None = None

    def __init__(self, card: Card | None = None, home: Path | None = None) -> None:
        if card is not None:
            self.card = card
        self.home = home

    @property
    def name(self) -> str:
        """Registry name, e.g. `ts2`."""
        return self.card.name

    @property
    def track(self) -> Literal["metrics", "models"]:
        """Kind of what is ranked: metrics, or text-to-image models (a `prompt_sets.PromptSet`)."""
        return "metrics"

    @abstractmethod
    def answers(self, data: Path | None) -> Answers:
        """Load the answer side.

        Args:
            data: folder of data files (`--data` / `ASSAY_DATA`); None where none was given.

        Raises:
            SubmitterError: `data_missing` or `data_malformed`, naming file and expectation.
        """

    @abstractmethod
    def measure(self, scores: ScoreTable, answers: Any, plan: ResamplingPlan) -> Measured:
        """Compute every measure of every metric in the table, with resamples."""

    def questions(self, data: Path | None) -> Questions:
        """Load the question side (images and prompts).

        Raises:
            SubmitterError: `images_missing` where the images are not at hand.
        """
        del data
        raise SubmitterError(
            "images_missing",
            f"The images of {self.name} are not on this machine, so code cannot be run on it.",
            f"Submit a scores file for {self.name} instead.",
        )

    def has_questions(self, data: Path | None) -> bool:
        """Whether `questions` would succeed, as far as its files being there tells; cheap."""
        there = bool(self.asked_from) and all(map(self.folder(data).has, self.asked_from))
        return there and self.has_images(data)

    def has_images(self, data: Path | None) -> bool:
        """Whether images are there that `asked_from` cannot name, e.g. unpacked or in parts; cheap."""
        del data
        return True

    def has_answers(self, data: Path | None) -> bool:
        """Whether `answers` would succeed; the answer is kept until a file changes."""
        state = (data, self.folder(data).signature())
        if self._answerable is None or self._answerable[0] != state:
            self._answerable = (state, self._can_answer(data))
        return self._answerable[1]

    def _can_answer(self, data: Path | None) -> bool:
        try:
            self.answers(data)
        except SubmitterError:
            return False
        return True

    def folder(self, data: Path | None) -> DataFolder:
        """The files of the card, for loaders: below a folder of data, or beside the card."""
        return DataFolder(data, self.name, self.card.files, self.card.counts, self.home)

    def remote_names(self, path: str, data: Path | None) -> tuple[str, ...]:
        """Names of the files in a declared folder whose origin is a web address.

        A web address cannot be listed, so `fetch` asks here, once the answers are there; the name
        is appended to the folder's `url`. The default, none, suits every other folder.

        Args:
            path: the folder, as declared in the card.
            data: folder of data files.

        Raises:
            SubmitterError: `data_missing` or `data_malformed`, from the file that names them.
        """
        del path, data
        return ()

    def training(self, data: Path | None) -> tuple[Questions, Answers] | None:
        """Labelled data of the same release that the board leaves out; None where it takes all.

        Raises:
            SubmitterError: as `questions` and `answers`.
        """
        del data
        return None

    def prompts(self, data: Path | None) -> pd.DataFrame:
        """The prompt set for model developers.

        Returns:
            Columns `prompt_id` (str, unique), `prompt` (str), `split` (str, may be empty),
            `skills` (str, joined by `;`, may be empty), in the benchmark's order.

        Raises:
            SubmitterError: `no_prompts` where images cannot be generated for this benchmark;
                `data_missing` or `data_malformed`.
        """
        del data
        raise SubmitterError(
            "no_prompts",
            f"{self.name} tests metrics on given images; there is nothing to generate for it.",
            "See `python -m benchmarks list` for benchmarks with a prompt set.",
        )

    def facts(self, answers: Any) -> Mapping[str, pd.DataFrame]:
        """Tables by title of what the answers alone say, e.g. how far raters agree."""
        del answers
        return {}

    def cases(self, answers: Any, data: Path | None) -> pd.DataFrame | None:
        """Cases to look at, with what people said; None where there are none.

        Returns:
            One row for each pair of a case; see `benchmarks.cases.SCHEMA`.
        """
        del answers, data
        return None

    def rated_images(self, answers: Any) -> RatedImages | None:
        """Images with people's ratings, to see what choosing the best of a prompt gains; None without."""
        del answers
        return None

    def texts(self, data: Path | None) -> Mapping[str, str]:
        """Cluster to its prompt, for whoever looks at a case; none where the texts are not at hand."""
        del data
        return {}

    def parse_special(
        self, content: bytes, name: str, answers: Any, metric: str
    ) -> ScoreTable | None:
        """Read a submitted file of a format of this benchmark's own (e.g. masks), or None.

        A hook: None (the default) means that the file is an ordinary scores file.

        Raises:
            SubmitterError: the file is of that format, but wrong.
        """
        del content, name, answers, metric
        return None

    def repair_cell(self, metric: str, cell: str) -> float | None:
        """Read a cell of a scores file that is not a number, or None where it is an error.

        A hook for released files with known, documented defects; the default mends nothing.
        """
        del metric, cell
        return None

    def known_directions(self) -> Mapping[str, Literal[1, -1]]:
        """Directions of metrics that the benchmark itself released; higher is better if absent."""
        return {}

    def plan(self, answers: Answers, n_resamples: int = DEFAULT_RESAMPLES) -> ResamplingPlan:
        """The resampling plan of this revision."""
        return ResamplingPlan.for_revision(
            self.name, self.card.revision, answers.clusters, n_resamples
        )

    def evaluate(
        self, scores: ScoreTable, answers: Answers, n_resamples: int = DEFAULT_RESAMPLES
    ) -> Measured:
        """Measures with intervals and contributions, for the judge, the CLI and tests.

        The protocol runs once over the plan's resamples and over every block of clusters left
        out and taken twice; see `inference.infer`.
        """
        plan = PerturbedPlan.of(self.plan(answers, n_resamples))
        infos = self.card.measures
        in_steps = {name for name, info in infos.items() if info.in_steps}
        uncorrected = {name for name, info in infos.items() if not info.bias_corrected}
        measured = self.measure(scores, answers, plan)
        given = scores, answers, plan, self.name, self.card.revision
        more = [compute(*given) for compute in self.further]
        more.append(self.by_generator(scores, answers, plan))
        if any(part.rows for part in more):
            measured = concatenate((measured, *more))
        if scores.margins:
            beyond = [r.metric in scores.margins and not self.within_text(r) for r in measured.rows]
            measured = withheld(measured, np.array(beyond, bool), BETWEEN_TEXTS)
        return infer(measured, plan, in_steps, uncorrected)

    def by_generator(self, scores: ScoreTable, answers: Any, plan: ResamplingPlan) -> Measured:
        """Rows of measure `by_generator`; none where nothing tells who made the images."""
        del scores, answers
        return MeasuredBuilder(plan.n_resamples).build()

    @property
    def compares_images(self) -> bool:
        """Whether its protocol has such rows as `within_text` tells."""
        return False

    def within_text(self, row: Row) -> bool:
        """Whether a row of its protocol compares the scores of images of one text alone.

        A metric that compares images of a text has no others: all other rows of it are withheld.
        """
        del row
        return False

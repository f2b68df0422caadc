"""Schema of a card that says a whole benchmark: its tables, their columns, items and protocol.

A card is data, never code: a cell is taken from a column, mapped, put into a template or cut out by
a regular expression of RE2, which runs in linear time; there are no expressions.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import AfterValidator, Field, ValidationError, model_validator

from benchmarks.families.untrusted import Place, odd_values, plain_path
from benchmarks.generators import find_generator
from benchmarks.parsing import Key, key_lines, line_of, syntax_fault
from benchmarks.problems import Problem, ProblemsError
from benchmarks.schema import Card, Frozen, Kind, MeasureInfo, Selector
from benchmarks.sources.folder import DataFile

FamilyName = Literal["rating", "preference", "group", "element", "system"]
FAMILIES: tuple[FamilyName, ...] = get_args(FamilyName)
ControlName = Literal[
    "constant",
    "random",
    "prompt_length",
    "image_size",
    "file_size",
    "aspect",
    "position",
    "model_identity",
]
Format = Literal["csv", "tsv", "json", "jsonl", "txt", "parquet", "xlsx"]
CellType = Literal["str", "int", "float", "bool", "list_str", "list_int", "list_float"]
Cell = str | int | float | bool
ROW = "@row"
"""Source of a column: number of the row in its table, from 0."""
_GROUP = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|(\((?!\?))")
_LARGEST_CARD = 1 << 20
_SYNTAX_LINE = re.compile(r"\(at line (\d+), column \d+\)")


def with_named_group(pattern: str) -> str:
    """A pattern of RE2 with its only group named `found`."""
    groups = [match.start(1) for match in _GROUP.finditer(pattern) if match[1]]
    if len(groups) != 1:
        raise ValueError(f"{pattern!r} has {len(groups)} groups; exactly one is cut out")
    named = f"{pattern[: groups[0]]}(?P<found>{pattern[groups[0] + 1 :]}"
    try:
        pc.extract_regex(pa.array([""]), named)
    except pa.ArrowInvalid as error:
        raise ValueError(f"{pattern!r} is no regular expression of RE2: {error}") from error
    return named


PlainPath = Annotated[str, AfterValidator(plain_path)]
Pattern = Annotated[str, AfterValidator(lambda text: text and with_named_group(text) and text)]


class Column(Frozen):
    """What a column of a table is made of: one source, then `regex`, then `map`, then `type`."""

    source: str = Field("", alias="from")
    """Column of the file, or a path into a record or a cell of JSON: `response_a.content[0][1]`.
    `@1`, `@2`, ...: keys that `records` passed; `@index`: place in a list; `@row`; `@file`: name
    without its suffix; `@value`: a line of text, or an entry that is no record."""
    template: str = ""
    """Text with `{column}` or `{column:05d}`, of columns of the file."""
    const: Cell | None = None
    regex: Pattern = ""
    """Regular expression (RE2) with one group, which is kept; of lists, applied to each entry."""
    map: dict[str, Cell] = Field(default_factory=dict)
    """Text of a cell, or of an entry of a list, to what it means; any other text is an error."""
    type: CellType = "str"
    optional: bool = False
    """Whether a cell may be empty, and the column absent."""

    @model_validator(mode="after")
    def _has_one_source(self) -> Column:
        if sum((bool(self.source), bool(self.template), self.const is not None)) != 1:
            raise ValueError("needs exactly one of from, template and const")
        return self


def _as_column(given: object) -> object:
    return {"from": given} if isinstance(given, str) else given


class Table(Frozen):
    """A table, or several files of one layout read as one table."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    path: PlainPath | tuple[PlainPath, ...]
    """Declared files of role `answers` or `prompts`."""
    format: Format | None = None
    """None: by the suffix."""
    quotes: bool = True
    """Whether cells of CSV and TSV may stand in quotes; false: a quote is a character as any other."""
    records: str = ""
    """Where the records of a JSON file lie: `pairs[*]`, `*.models.*`; empty: the file is a list."""
    explode: str = ""
    """Column of the file that holds lists: a row for each entry; `@index` is its place."""
    where: dict[str, tuple[Cell, ...]] = Field(default_factory=dict)
    """Column of the file to the values kept; other rows are dropped and counted."""
    columns: dict[str, Column] = Field(min_length=1)

    @model_validator(mode="before")
    @classmethod
    def _short_columns(cls, given: Any) -> Any:
        columns = given.get("columns") if isinstance(given, dict) else None
        if not isinstance(columns, dict):
            return given
        return {**given, "columns": {key: _as_column(one) for key, one in columns.items()}}

    @property
    def paths(self) -> tuple[str, ...]:
        """The declared files, in order."""
        return (self.path,) if isinstance(self.path, str) else self.path


class Join(Frozen):
    """Columns of one table brought to the rows of another."""

    left: str
    right: str
    on: str | tuple[str, ...] | dict[str, str]
    """Columns of both, or columns of the left table to those of the right."""
    how: Literal["one", "many"] = "one"
    """`one`: at most one row of the right table fits; `many`: its columns become lists."""
    unmatched: Literal["error", "ignore"] = "error"
    """Whether rows of the right table that fit nowhere are an error."""

    @property
    def keys(self) -> Mapping[str, str]:
        """Column of the left table to that of the right."""
        if isinstance(self.on, dict):
            return self.on
        return {name: name for name in ((self.on,) if isinstance(self.on, str) else self.on)}


class Sample(Frozen):
    """A part of the items: whole units with the smallest SHA-256 of their names."""

    by: str
    """Column whose values are kept or left out as a whole, e.g. `prompt`."""
    keep: float = Field(gt=0, le=1)
    """Share of the units of each stratum, rounded up."""
    strata: str = ""
    """Column; the share is kept in each of its values."""


class ItemColumns(Frozen):
    """Columns of the joined table that make the items."""

    pair: str = ""
    """Id of a row; empty: its number."""
    prompt: str = "prompt"
    """Id of the prompt, which is the cluster."""
    text: str | tuple[str, ...] = "text"
    """The prompt itself; several columns for the texts of a group; empty where it is not released."""
    image: str | tuple[str, ...] = "image"
    """Name of the image; several columns, or one that holds lists, for several images in a row;
    empty where images have no names."""
    model: str | tuple[str, ...] = ""
    """Who made the image; as many as there are images."""
    shared: bool = False
    """Whether an image with its prompt is one pair wherever it stands: then its name is its id."""
    split: str = ""
    skills: str = ""
    """Column of a skill, or of a list of skills."""
    sample: Sample | None = None

    @property
    def columns(self) -> frozenset[str]:
        """The columns that it names."""
        named = [self.pair, self.prompt, self.split, self.skills]
        named += [*_each(self.text), *_each(self.image), *_each(self.model)]
        named += [self.sample.by, self.sample.strata] if self.sample else []
        return frozenset(named)


class Images(Frozen):
    """Where the images are."""

    source: Literal["folder", "zip", "parquet", "url"]
    path: str = ""
    """Declared file or folder; a template for several: `set/{model}.zip`, in whose place its content may lie unpacked. For `url` the declared
    folder with a `url`, into which `fetch` brings them. Empty for `parquet`: the files of the first
    table."""
    name: str | tuple[str, ...] = "{image}"
    """Template of the name inside it, of columns `image`, `prompt`, `model`, `pair`; for `url` the
    name behind the folder's address. For `parquet` the column with the images, of bytes or of
    `{bytes, path}`, or as many as a row has images."""
    key: str | tuple[str, ...] = "image"
    """Columns of the Parquet files whose cells are the names of the images, one for each column of
    images; or `@row`, where a row of the first table is a row of the files."""

    @model_validator(mode="after")
    def _has_columns(self) -> Images:
        if self.source != "parquet":
            if not isinstance(self.name, str):
                raise ValueError("several names belong to images in Parquet files")
        elif self.key != ROW and len(_each(self.key)) != len(_each(self.name)):
            raise ValueError("key needs one column for each column of images, or to be @row")
        return self

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of a Parquet file with images."""
        return _each(self.name)

    @property
    def keys(self) -> tuple[str, ...]:
        """Columns of a Parquet file with their names; none where rows tell."""
        return () if self.key == ROW else _each(self.key)


def _each(names: str | tuple[str, ...]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else names


class Gold(Frozen):
    """What people said of an item: one facet of a rating board."""

    ratings: str = ""
    """Column with lists of ratings."""
    rating: str = ""
    """Column with one rating, a row for each rater."""
    rater: str = ""
    mean: str = ""
    """Column with a mean opinion score."""
    sd: str = ""
    n: int = Field(0, ge=0)
    """Raters behind a mean."""
    scale: tuple[float, float]
    outside: Literal["error", "keep", "drop"] = "error"
    """What becomes of ratings outside the scale."""
    unsure: tuple[Cell, ...] = ()
    """Ratings that mean no answer."""
    aggregate: Literal["mean", "median"] | tuple[str, ...] = "mean"
    """Or columns: nested means, the innermost first."""
    round: int | None = None
    min_raters: int = Field(1, ge=1)

    @model_validator(mode="after")
    def _has_one_form(self) -> Gold:
        if sum(map(bool, (self.ratings, self.rating, self.mean))) != 1:
            raise ValueError("needs exactly one of ratings, rating and mean")
        if (self.sd or self.n) and not self.mean:
            raise ValueError("sd and n belong to a mean")
        if not self.scale[0] < self.scale[1]:
            raise ValueError("scale needs its lower end first")
        return self


class Values(Frozen):
    """Cells of a column of labels, by what they mean."""

    a: Cell
    b: Cell
    tie: Cell | None = None
    bad: Cell | None = None


class Threshold(Frozen):
    """A threshold of ties that is found on a split which is not evaluated."""

    grid: tuple[float, ...] = Field(min_length=1)
    calibrate: str
    on: Literal["score", "softmax"] = "score"


class Preference(Frozen):
    """What people preferred, in one of five forms."""

    label: str = ""
    values: Values | None = None
    votes: tuple[str, str] | None = None
    weights: tuple[str, str] | None = None
    ranks: str = ""
    """Column with lists of ranks, `best` being the best; all pairs are compared."""
    best: Literal["lowest", "highest"] = "lowest"
    winner: Literal["a", "b"] | None = None
    """The side that always won."""
    human_ties: Literal["drop", "half", "class"] = "drop"
    metric_ties: Literal["wrong", "half", "threshold"] = "wrong"
    threshold: float | Threshold = 0.0
    good: float | None = None
    """For verdicts: equal scores from here on say that both are good, below it that both are bad,
    and below 0 that the reply could not be read."""
    min_votes: int = Field(1, ge=1)
    min_gap: float = Field(0.0, ge=0)
    average: Literal["micro", "macro"] = "micro"
    weight: Literal["none", "gap"] = "none"
    """`gap`: a comparison counts by how far apart both sides are (votes: as a share of the votes)."""
    sides: Literal["hash", "given"] = "hash"
    """How the images of a row are ordered and named: by hash, so that nothing tells where they were
    in the released list, or as released."""
    raters: str = ""
    """Column with lists of single ratings of a comparison, for the ceiling."""
    middle: float = 0.0
    """Ratings above it are for a, below it for b."""

    @model_validator(mode="after")
    def _has_one_form(self) -> Preference:
        forms = (self.label, self.votes, self.weights, self.ranks, self.winner)
        if sum(map(bool, forms)) != 1:
            raise ValueError("needs exactly one of label, votes, weights, ranks and winner")
        if bool(self.label) is not (self.values is not None):
            raise ValueError("label needs values, and values a label")
        if (self.metric_ties == "threshold") is not isinstance(self.threshold, Threshold):
            if self.metric_ties == "threshold" and self.threshold:
                return self
            raise ValueError("metric_ties = threshold needs a threshold, and a threshold it")
        return self


class Rule(Frozen):
    """A rule over the cells `c<text>i<image>` of a group: all comparisons hold."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    all: tuple[Annotated[str, Field(pattern=r"^c\d+i\d+ [<>] c\d+i\d+$")], ...] = Field(
        min_length=1
    )


class Group(Frozen):
    """Truth between the texts and images of a group."""

    rule: Literal["winoground", "caption_choice", "image_choice", "vqa_pairs", "best_of"] | None = (
        None
    )
    rules: tuple[Rule, ...] = ()
    threshold: float = 0.5
    """For `vqa_pairs`: scores above it answer yes, scores below it no."""
    size: tuple[Annotated[int, Field(ge=2)], ...] = ()
    """For `best_of`: images of one choice, in the order of the rows."""
    gold: str = ""
    """For `best_of`: section of `[gold]` whose ratings say which image is the best."""
    ties: tuple[Literal["average", "first"], ...] = ("average",)
    """For `best_of`: the mean over images of equal best score, or the first of them."""

    @model_validator(mode="after")
    def _has_one_rule(self) -> Group:
        if bool(self.rule) is bool(self.rules):
            raise ValueError("needs either rule or rules")
        if (self.rule == "best_of") is not bool(self.size and self.gold):
            raise ValueError("size and gold belong to the rule best_of, which needs both")
        return self

    @property
    def n_images(self) -> int:
        """Images of a row, where no columns name them."""
        if self.rules:
            cells = (cell for rule in self.rules for one in rule.all for cell in one.split()[::2])
            return 1 + max(int(cell.rpartition("i")[2]) for cell in cells)
        return 1 if self.rule in ("caption_choice", "best_of") else 2


class Search(Frozen):
    """A threshold that is found on a split which is not evaluated."""

    search: float = Field(gt=0, le=0.5)
    """Step between thresholds that are tried, as a share of the scores: 0.01 tries every percentile."""
    on: str
    """The split."""


class Element(Frozen):
    """Labels of parts of a prompt: words, objects, questions."""

    element: str = ""
    """Column of the part's id; empty: each pair is one part, `whole`."""
    element_text: str = ""
    """Column of what a scorer is asked of the part."""
    label: str
    """Column: whether it is there, or the share of raters who say so, or a list of either; the rows of
    one part are averaged."""
    cut: float = Field(0.5, ge=0, le=1)
    """A part is there where its mean label is at least this."""
    threshold: float | Literal["held_out"] | Search = "held_out"
    """From which score on a metric says that a part is there."""
    of: Literal["elements", "prompts"] = "elements"
    """What is counted: each part, or each image by the mean of its parts, true where all are there."""
    mean: Literal["am", "gm"] = "am"
    """Mean of the scores of an image's parts: arithmetic, or geometric."""


class System(Frozen):
    """Values of models by people."""

    source: str = Field("", alias="from")
    """Another benchmark, whose ratings are averaged by model."""
    facet: str = ""
    """Facet of its ratings; empty: that of its headline."""
    human: str = ""
    """Table with columns `model` and `value`."""
    scale: tuple[float, float] = (0.0, 1.0)
    """What counts as a rate of 0 and of 1 among the values of people."""
    released: dict[str, date] = Field(default_factory=dict)
    """Model to the date of its release, `2024-08-01`."""
    known_dates: bool = False
    """Whether models that are not in `released` have the dates that Assay knows of them."""

    def release_date(self, model: str) -> date | None:
        """When a model was released; None where it is not known."""
        known = find_generator(model) if self.known_dates else None
        return self.released.get(model, known.released if known else None)

    @model_validator(mode="after")
    def _has_one_source(self) -> System:
        if bool(self.source) is bool(self.human):
            raise ValueError("needs exactly one of from and human")
        if self.facet and not self.source:
            raise ValueError("facet belongs to from")
        if not self.scale[0] < self.scale[1]:
            raise ValueError("scale needs its lower end first")
        return self


class Evaluation(Frozen):
    """What is measured, and of which parts."""

    measures: tuple[str, ...] = ()
    """The first one is the headline; empty: all of the family."""
    ties: tuple[Literal["calibrated", "equal", "ignore"], ...] = ("calibrated",)
    pool: Literal["all", "prompt", "model"] = "all"
    missing: Literal["drop", "wrong", "absent", "fail"] | None = None
    """What becomes of items without a score; `absent`: they say that an element is not there."""
    slices: tuple[Literal["skills", "split"], ...] = ("skills", "split")
    """Parts that have rows of their own."""
    pooled: bool = True
    """Whether there are rows over all splits too, as split `all`; skills are then theirs alone."""
    variant: str = "assay"
    """Variant of the rows: `paper` where the protocol is the authors'."""


class Controls(Frozen):
    """Pseudo-metrics under the same protocol, shown and never ranked."""

    run: tuple[ControlName, ...] | None = None
    """None: all that apply."""


class Golden(Frozen):
    """A figure that must come out, checked when the card is checked."""

    metric: str
    """A control, or a metric whose scores ship with the card."""
    measure: str
    value: float
    tol: float = Field(gt=0)
    variant: str | None = None
    facet: str | None = None
    split: str | None = None
    skill: str | None = None


class FamilyCard(Card):
    """Card of a benchmark of a family; see `docs/bring-your-own-data.md`."""

    follows: FamilyName = Field(alias="family")
    """Family whose protocol it follows; `family` itself, but for a benchmark with code of its own."""
    kind: Kind
    headline: Selector
    tables: tuple[Table, ...] = ()
    joins: tuple[Join, ...] = ()
    items: ItemColumns = ItemColumns()
    images: Images | None = None
    gold: dict[str, Gold] = Field(default_factory=dict)
    preference: Preference | None = None
    group: Group | None = None
    element: Element | None = None
    system: System | None = None
    evaluation: Evaluation = Evaluation()
    controls: Controls = Controls()
    golden: dict[str, Golden] = Field(default_factory=dict)

    def problems(self) -> Iterator[tuple[Place, str]]:
        """What does not fit together, each with its place."""
        yield from self._misplaced_sections()
        yield from self._unknown_files()
        yield from self._unknown_tables()
        known = self.columns
        for place, name in self._named_columns():
            if name not in known:
                yield (
                    place,
                    f"column {name!r} is in no table ({', '.join(sorted(known)) or 'none'})",
                )
        measures: list[tuple[Place, str]] = [(("headline", "measure"), self.headline.measure)]
        measures += [(("golden", key, "measure"), one.measure) for key, one in self.golden.items()]
        measures += [(("evaluation", "measures"), one) for one in self.evaluation.measures]
        for place, measure in measures:
            if measure not in self.measures:
                yield place, f"{measure!r} is none of {', '.join(self.measures)}"
        threshold = self.preference.threshold if self.preference else 0.0
        if isinstance(threshold, Threshold) and self.headline.split == threshold.calibrate:
            place = ("preference", "threshold")
            yield place, "the threshold is calibrated on the split that is evaluated"
        search = self.element.threshold if self.element else 0.0
        if isinstance(search, Search):
            place = ("element", "threshold")
            if self.headline.split == search.on:
                yield place, "the threshold is searched on the split that is evaluated"
            if not self.items.split:
                yield place, "a threshold that is searched on a split needs items.split"
        if self.evaluation.missing == "absent" and not self.element:
            yield ("evaluation", "missing"), "absent belongs to family element"

    def _misplaced_sections(self) -> Iterator[tuple[Place, str]]:
        own = {"rating": "gold"}.get(self.follows, self.follows)
        # A choice among rated images has a group, and ratings too.
        also = "gold" if self.group and self.group.rule == "best_of" else own
        for section in ("gold", "preference", "group", "element", "system"):
            if section == own and not getattr(self, section):
                yield ("family",), f"a card of family {self.follows} needs [{section}]"
            if section not in (own, also) and getattr(self, section):
                yield (section,), f"[{section}] belongs to another family than {self.follows}"

    def _unknown_files(self) -> Iterator[tuple[Place, str]]:
        yield from _unsafe_files(self.files)
        images = self.images
        if images is None:
            return
        at_url = [file.path for file in self.files if file.url and file.folder]
        if images.source == "url" and images.path not in at_url:
            yield ("images", "path"), f"{images.path!r} is no declared folder with a url"
        elif images.source == "parquet" and not images.path:
            return
        elif "{" not in images.path and images.path not in {file.path for file in self.files}:
            yield ("images", "path"), f"{images.path!r} is no declared file"

    def _unknown_tables(self) -> Iterator[tuple[Place, str]]:
        if not self.tables and not (self.system and self.system.source):
            yield (), "needs [[tables]]"
        files = {file.path for file in self.files}
        names = [table.name for table in self.tables]
        for number, table in enumerate(self.tables):
            if table.name in names[:number]:
                yield ("tables", number, "name"), f"two tables are named {table.name}"
            for path in (path for path in table.paths if path not in files):
                place = ("tables", number, "path")
                yield place, f"table {table.name}: {path} is no declared file"
        for number, join in enumerate(self.joins):
            for side, name in (("left", join.left), ("right", join.right)):
                if name not in names:
                    place = ("joins", number, side)
                    yield place, f"a join names a table {name!r}, which is not declared"

    @property
    def paths(self) -> tuple[str, ...]:
        """The files of all tables, each once."""
        return tuple(dict.fromkeys(path for table in self.tables for path in table.paths))

    @property
    def of_items(self) -> FamilyCard:
        """The card with the tables alone that its items come from: the first, and what it needs."""
        columns = {table.name: set(table.columns) for table in self.tables}
        used, joins = set(self.items.columns), list[Join]()
        if self.element:
            used |= {self.element.element, self.element.element_text, self.element.label}
        for join in reversed(self.joins):
            brought = columns[join.right] - columns[join.left] - set(join.keys.values())
            if brought & used or any(other.left == join.right for other in joins):
                joins.insert(0, join)
        kept = {join.right for join in joins}
        tables = self.tables[:1] + tuple(one for one in self.tables[1:] if one.name in kept)
        return self.model_copy(update={"tables": tables, "joins": tuple(joins)})

    @cached_property
    def columns(self) -> frozenset[str]:
        """Columns of all tables."""
        return frozenset(name for table in self.tables for name in table.columns)

    def _named_columns(self) -> Iterator[tuple[Place, str]]:
        """Columns that the card uses, with their places."""
        sections: list[tuple[Place, Any, tuple[str, ...]]] = [
            (
                ("items",),
                None if self.system and self.system.source else self.items,
                ("prompt", "text", "image", "model", "pair", "split", "skills"),
            ),
            (
                ("preference",),
                self.preference,
                ("label", "ranks", "raters", "votes", "weights"),
            ),
            (("element",), self.element, ("element", "element_text", "label")),
        ]
        for facet, gold in self.gold.items():
            place = ("gold", facet)
            sections.append((place, gold, ("ratings", "rating", "rater", "mean", "sd")))
            if isinstance(gold.aggregate, tuple):
                sections.append((place, gold, ("aggregate",)))
        for inside, section, keys in sections:
            for key in keys if section is not None else ():
                named = getattr(section, key) or ()
                for name in filter(None, (named,) if isinstance(named, str) else named):
                    yield (*inside, key), name


def _unsafe_files(files: Sequence[DataFile]) -> Iterator[tuple[Place, str]]:
    """Declared files that could lie elsewhere than below a folder, or come by an open connection."""
    for number, file in enumerate(files):
        for path in (file.path, *file.also):
            try:
                plain_path(path)
            except ValueError as error:
                yield ("files", number, "path"), str(error)
        if file.url and not file.url.startswith("https://"):
            yield ("files", number, "url"), f"{file.url[:80]!r} does not begin with https://"


@dataclass(frozen=True)
class CardText:
    """Content of a card's file, before any schema."""

    path: Path
    given: Mapping[str, Any]
    lines: Mapping[Key, int]  # of its keys

    @classmethod
    def read(cls, path: Path) -> CardText:
        """Read a file of a stranger's.

        Raises:
            ProblemsError: `invalid_benchmark`: it is too large, no TOML, or holds odd values.
        """
        try:
            content = path.read_bytes()
            if len(content) > _LARGEST_CARD:
                raise ValueError(
                    f"has {len(content):,} bytes; a card has at most {_LARGEST_CARD:,}"
                )
            text = content.decode("utf-8")
            given = tomllib.loads(text)
        except (OSError, ValueError, RecursionError) as error:
            said = str(error) if isinstance(error, OSError) else syntax_fault(error)
            raise _refusal(path, [((), said)], {}) from error
        lines = key_lines(text)
        if odd := list(odd_values(given)):
            raise _refusal(path, odd, lines)
        return cls(path, given, lines)


def protocol_card(text: CardText, measures: Mapping[str, MeasureInfo]) -> Card:
    """The card of somebody's data in the layout of a benchmark whose protocol is code.

    `measures`: those of the protocol.

    Raises:
        ProblemsError: `invalid_benchmark`: every problem, each with its line.
    """
    try:
        card = Card.model_validate({**text.given, "measures": measures})
    except ValidationError as error:
        raise _refusal(text.path, _faults(error), text.lines) from error
    unfit: list[tuple[Place, str]] = list(_unsafe_files(card.files))
    if card.headline.measure not in measures:
        said = f"{card.headline.measure!r} is none of {', '.join(measures)}"
        unfit.append((("headline", "measure"), said))
    if unfit:
        raise _refusal(text.path, unfit, text.lines)
    return card


def _faults(error: ValidationError) -> list[tuple[Place, str]]:
    return [(one["loc"], one["msg"].removeprefix("Value error, ")) for one in error.errors()]


MeasuresOf = Callable[[FamilyName, Mapping[str, Any]], Mapping[str, MeasureInfo]]
"""From a family and a card as it was read to what the measures mean that the card may choose."""


def family_card(
    content: CardText, measures_of: MeasuresOf, follows: FamilyName | None = None
) -> FamilyCard:
    """The card of a benchmark of a family.

    `measures_of`: what the measures of a family mean; `follows`: the family where code says it, and
    the card's own is the name under which its skills are known; None: what the card says.

    Raises:
        ProblemsError: `invalid_benchmark`: every problem, each with its line.
    """
    path, given, lines = content.path, content.given, content.lines
    own_family = str(given.get("family", ""))
    if follows is not None:
        given = {**given, "family": follows}
    try:
        card = FamilyCard.model_validate({**given, "measures": _measures(given, measures_of)})
    except ValidationError as error:
        found = _faults(error)
        found += _further_problems(given, {str(place[0]) for place, _ in found}, measures_of)
        raise _refusal(path, found, lines) from error
    if unfit := list(card.problems()):
        raise _refusal(path, unfit, lines)
    return card.model_copy(update={"family": own_family})


_STAND_INS = dict.fromkeys(
    ("name", "title", "summary", "description", "revision", "cluster"), "x"
) | {"kind": "alignment"}
"""Required keys that say nothing of other keys."""
_TOGETHER = (
    frozenset(FamilyCard.model_fields) - _STAND_INS.keys() - {"licence", "citation", "links"}
)
"""Keys that must be right before it can be told whether they fit together."""


def _further_problems(
    given: Mapping[str, Any], wrong: set[str], measures_of: MeasuresOf
) -> list[tuple[Place, str]]:
    """What does not fit together in a card of which other keys are wrong."""
    if wrong & _TOGETHER:
        return []
    right = {key: value for key, value in given.items() if key not in wrong}
    measures = _measures(given, measures_of)
    card = FamilyCard.model_validate({**_STAND_INS, **right, "measures": measures})
    return list(card.problems())


def _refusal(
    path: Path, found: Sequence[tuple[Place, str]], lines: Mapping[Key, int]
) -> ProblemsError:
    """One error of all problems of a card."""
    problems = tuple(
        Problem("invalid_benchmark", _placed(place, message), file=str(path), line=line)
        for place, message in dict.fromkeys(found)
        for line in (_line_of_fault(place, message, lines),)
    )
    said = (f"{one.message}{f' (line {one.line})' if one.line else ''}" for one in problems)
    return ProblemsError("invalid_benchmark", f"{path}: {'; '.join(said)}.", "", problems)


def _line_of_fault(place: Place, message: str, lines: Mapping[Key, int]) -> int | None:
    in_syntax = None if place else _SYNTAX_LINE.search(message)
    return int(in_syntax[1]) if in_syntax else line_of(lines, place)


def _placed(place: Place, message: str) -> str:
    # Pydantic names the forms of a value that has several, as `function-after[...]`.
    names = [str(part) for part in place if "[" not in str(part)]
    return f"{'.'.join(names)}: {message}" if names else message


def _measures(given: Mapping[str, Any], measures_of: MeasuresOf) -> dict[str, MeasureInfo]:
    """The measures that the card chooses among those of its family; all where it chooses none."""
    family = given.get("family")
    if family not in FAMILIES:
        return {}
    infos = dict(measures_of(family, given))
    evaluation = given.get("evaluation")
    chosen = evaluation.get("measures") if isinstance(evaluation, dict) else None
    if not isinstance(chosen, list):
        return infos
    return {name: infos[name] for name in map(str, chosen) if name in infos}

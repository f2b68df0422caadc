"""Proposal of a card from the columns of a table: what each seems to be, and why.

A column is told by its name, then by its values; whatever is not told stays in the card as
`FILL IN`, which `bench check` names with its line. Everything that came from the table is data: it is
written as quoted text, in values and in comments alike.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from benchmarks.families.card import CellType, FamilyName
from benchmarks.families.untrusted import FILL_IN

PROPOSED: tuple[FamilyName, ...] = ("rating", "preference", "element", "group", "system")
"""Families that a table can be told to be of."""
_SIDES = (("a", "b"), ("0", "1"), ("1", "2"), ("left", "right"), ("first", "second"))
"""How names of columns tell two sides apart."""
_WORDS: Mapping[str, str] = {
    "image": r"image|img|picture|photo|file_?name|generation",
    "prompt_id": r"prompt_?(id|index|no)|ranking_id",
    "text": r"prompt|caption|text|instruction|sentence",
    "rater": r"rater|annotator|worker|user|participant|judge_id",
    "model": r"model|generator|system",
    "value": r"elo|arena|win_?rate|mos\w*|rating|score|mean|quality|align\w*|human",
    "released": r"released?|date",
    "sd": r"std|sd|stdev",
    "rank": r"rank(ing|s)?",
    "votes": r"votes?|wins?|weight(ed)?|count",
    "label": r"better|best|vote|choice|chosen|prefer\w*|winner|label|verdict",
    "element": r"element|question|span|object|aspect",
    "truth": r"label|answer|present|correct|is_?there",
    "rating": r"mos\w*|rating|score|likert|mean|quality|aesthetics?|align\w*|coherence|fidelity|"
    r"overall|correspondence",
    "skills": r"skill|category|tag|challenge",
    "split": r"split|subset",
    "id": r"id|idx|uid|index|pair(_id)?|name|key",
}
_KINDS: Mapping[str, str] = {
    "alignment": r"align|correspond|fit|faithful|match",
    "quality": r"quality|aesthetic|coheren|artifact|fidelity|perception",
    "preference": r"prefer|vote|better|best|winner|chosen|rank|elo|arena",
}
_TIES = re.compile(r"(tie|same|equal|both|draw|both_?good|0\.5)(_?vote)?")
_BAD = re.compile(r"(both_?bad|neither|none)(_?vote)?")
_SCALES = ((0, 1), (1, 5), (0, 5), (1, 7), (1, 10), (0, 10), (0, 100), (-1, 1))
_PICTURE = re.compile(r"\.(?:png|jpe?g|webp|gif|bmp)$", re.IGNORECASE)
_YES_NO = frozenset({"yes", "no", "true", "false", "0", "1", "y", "n"})
_LABELS, _PARTS = 6, 60
"""The most values of a column of labels, and of one of skills or splits."""
_MODELS = 3
"""Fewer rows than this are not taken for models."""


@dataclass(frozen=True)
class SourceFile:
    """The file that a card is proposed for."""

    path: str  # as the card declares it, e.g. `my_votes/votes.csv`
    origin: Mapping[str, Any]  # keys of `[[files]]` beside path and role
    revision: str
    format: str = ""  # where the suffix does not tell it
    records: str = ""  # where the records of a JSON file lie


@dataclass(frozen=True)
class Guess:
    """What a column seems to be."""

    column: str  # of the file
    role: str
    why: str


@dataclass
class Proposal:
    """A card in the making."""

    family: FamilyName
    guesses: list[Guess] = field(default_factory=list)
    columns: dict[str, tuple[str, CellType]] = field(default_factory=dict)
    items: dict[str, Any] = field(default_factory=dict)
    sections: dict[str, dict[str, Any]] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)  # what could not be guessed
    facets: dict[str, str] = field(default_factory=dict)
    # of a second table of the same file: the values of models
    values: dict[str, tuple[str, CellType]] = field(default_factory=dict)

    def take(self, column: str, role: str, why: str, form: CellType = "str") -> str:
        """Use a column of the file, under a name that a card may have."""
        self.guesses.append(Guess(column, role, why))
        name = re.sub(r"\W+", "_", column.lower()).strip("_") or "column"
        while self.columns.get(name, (column, form))[0] != column:
            name += "_"
        self.columns[name] = (column, form)
        return name


class TableColumns:
    """The columns of a table, as a sample of its rows shows them."""

    def __init__(self, sample: pd.DataFrame) -> None:
        self.sample = sample
        self.names = [str(name) for name in sample]
        self.left = list(self.names)

    def find(self, role: str, fits: Callable[[pd.Series], bool], most: int = 1) -> list[str]:
        """Columns whose name has a word of the role, and whose values fit; those are used up."""
        pattern = re.compile(rf"(^|[^a-z])({_WORDS[role]})s?([^a-z]|$)")
        found = [
            name
            for name in self.left
            if pattern.search(_parted(name)) and fits(self.sample[name].dropna())
        ][:most]
        self.left = [name for name in self.left if name not in found]
        return found

    def two_sides(self, role: str, fits: Callable[[pd.Series], bool]) -> tuple[str, ...]:
        """Two columns that differ in their side alone, which are then used up."""
        pattern = re.compile(rf"(^|[^a-z])({_WORDS[role]})s?([^a-z]|$)")
        for first, second in _SIDES:
            for name in self.left:
                other = _other_side(_parted(name), first, second)
                match = next((one for one in self.left if _parted(one) == other), None)
                if match is None or not pattern.search(re.sub(r"[0-9]", "", _parted(name))):
                    continue
                if fits(self.sample[name].dropna()) and fits(self.sample[match].dropna()):
                    self.left = [one for one in self.left if one not in (name, match)]
                    return name, match
        return ()


def _parted(name: str) -> str:
    """A name in lower case with its words parted: `imageA` is `image_a`, `image1` is `image_1`."""
    apart = re.sub(r"(?<=[a-z])(?=[A-Z0-9])", "_", name)
    return re.sub(r"[^a-z0-9]+", "_", apart.lower())


def _other_side(name: str, first: str, second: str) -> str:
    parts = name.split("_")
    return "_".join(second if part == first else part for part in parts) if first in parts else ""


def is_number(cells: pd.Series) -> bool:
    """Whether all cells are numbers."""
    return bool(len(cells)) and bool(pd.to_numeric(cells, errors="coerce").notna().all())


def _is_list(cells: pd.Series) -> bool:
    return bool(len(cells)) and all(_as_list(cell) is not None for cell in cells[:50])


def _is_number_list(cells: pd.Series) -> bool:
    lists = [_as_list(cell) or [] for cell in cells[:50]]
    flat = pd.Series([one for cell in lists for one in cell], dtype=object)
    return _is_list(cells) and is_number(flat)


def _as_list(cell: object) -> list[Any] | None:
    if isinstance(cell, str) and cell.startswith("["):
        try:
            cell = json.loads(cell)
        except ValueError:
            return None
    found = getattr(cell, "tolist", lambda: cell)()
    return found if isinstance(found, list) else None


def _is_text(cells: pd.Series) -> bool:
    return (
        bool(len(cells)) and all(isinstance(cell, str) for cell in cells) and not is_number(cells)
    )


def _is_name(cells: pd.Series) -> bool:
    return bool(len(cells)) and not _is_list(cells) and not isinstance(cells.iloc[0], dict)


def _is_few(cells: pd.Series) -> bool:
    return _is_name(cells) and cells.astype(str).nunique() <= _LABELS


def _is_part(cells: pd.Series) -> bool:
    return _is_name(cells) and cells.astype(str).nunique() <= _PARTS


def _is_truth(cells: pd.Series) -> bool:
    return _is_few(cells) and set(cells.astype(str).str.lower()) <= _YES_NO


def _is_date(cells: pd.Series) -> bool:
    return bool(len(cells)) and bool(_dates(cells).notna().all())


def _dates(cells: pd.Series) -> pd.Series:
    """The days of cells as `2024-08-01`, and of times on a day; NaT where a cell is none."""
    days = cells.astype(str).str.slice(0, 10)
    return pd.to_datetime(days, format="%Y-%m-%d", errors="coerce")


def _is_model(cells: pd.Series) -> bool:
    return _is_text(cells) and len(cells) >= _MODELS and bool(cells.is_unique)


def _of_models(sample: pd.DataFrame) -> bool:
    """Whether each row is a model with a value, and none is of an image or a text."""
    columns = TableColumns(sample)
    of_images = any(columns.find(role, _is_name) for role in ("image", "text", "prompt_id"))
    named = columns.find("model", _is_model) or columns.find("id", _is_model)
    return bool(not of_images and named and columns.find("value", is_number))


def propose(sample: pd.DataFrame, family: FamilyName | None = None) -> Proposal:
    """What the columns seem to be.

    `sample`: rows of the table; `family`: one of `PROPOSED`, where it is known.
    """
    columns = TableColumns(sample)
    if family == "system" or (family is None and _of_models(sample)):
        return _models(columns)
    images = columns.two_sides("image", _is_name) or tuple(columns.find("image", _is_list))
    texts = columns.two_sides("text", _is_text)
    ranks = columns.find("rank", _is_number_list)
    votes = columns.two_sides("votes", is_number) or columns.two_sides("rating", is_number)
    models = columns.two_sides("model", _is_name) or tuple(columns.find("model", _is_list))
    compared = bool(len(images) == 2 or len(models) == 2 or ranks)
    label = columns.find("label", _is_few) if compared else []
    element = [] if compared else columns.find("element", _is_name)
    truth = columns.find("truth", _is_truth) if element else []
    if family is None and texts and len(images) == 2:
        family = "group"
    elif family is None:
        family = "preference" if compared else "element" if element and truth else "rating"
    made = Proposal(family)
    _items(made, columns, images, models, texts)
    if family == "preference":
        _preference(made, columns, ranks, votes, label)
    elif family == "element":
        _element(made, element, truth)
    elif family == "group":
        made.sections["group"] = {"rule": "winoground"}
        made.unknown.append("whether text 0 belongs to image 0 and text 1 to image 1, and no other")
    else:
        _ratings(made, columns)
    return made


def _items(
    made: Proposal,
    columns: TableColumns,
    images: tuple[str, ...],
    models: tuple[str, ...],
    texts: tuple[str, ...],
) -> None:
    """The columns that every family has."""
    sample, items = columns.sample, made.items
    identity = columns.find("prompt_id", _is_name)
    text = [] if texts else columns.find("text", _is_text)
    images = images or tuple(columns.find("image", _is_name)) or tuple(_pictures(columns))
    models = models or tuple(columns.find("model", _is_name))
    unique = columns.find("id", lambda cells: _is_name(cells) and cells.astype(str).is_unique)
    if unique:
        items["pair"] = made.take(unique[0], "id of a row", "its values are unique")
    if texts:
        items["text"] = [made.take(one, "text", "named so") for one in texts]
        items["prompt"] = items.get("pair") or items["text"][0]
    elif text:
        why = f"{sample[text[0]].nunique():,} texts"
        items["text"] = made.take(text[0], "prompt", why)
        items["prompt"] = items["text"]
    else:
        items["text"] = ""
        made.unknown.append("no prompt: scores can be submitted, but no code can be run")
    if identity:
        items["prompt"] = made.take(identity[0], "id of the prompt", "named so")
    if "prompt" not in items:
        items["prompt"] = FILL_IN
        made.unknown.append(
            "which column tells the prompts apart: rows of one are resampled together"
        )
    for key, found, role in (("image", images, "image"), ("model", models, "who made the image")):
        lists = len(found) == 1 and _is_list(sample[found[0]].dropna())
        form: CellType = "list_str" if lists else "str"
        names = [made.take(one, role, "named so", form) for one in found]
        if names:
            items[key] = names if len(names) > 1 else names[0]
    items.setdefault("image", "")
    if not images:
        made.unknown.append("no names of images: scores can be submitted, but no code can be run")
    for key in ("skills", "split"):
        for part in columns.find(key, _is_part):
            items[key] = made.take(part, key, f"{sample[part].nunique()} values")


def _pictures(columns: TableColumns) -> Iterator[str]:
    """The first column whose cells end as names of images do."""
    for name in columns.left:
        cells = columns.sample[name].dropna()
        if _is_name(cells) and cells.astype(str).str.contains(_PICTURE).all():
            columns.left.remove(name)
            yield name
            return


def _preference(
    made: Proposal,
    columns: TableColumns,
    ranks: Sequence[str],
    votes: Sequence[str],
    label: Sequence[str],
) -> None:
    section: dict[str, Any] = {}
    if ranks:
        section["ranks"] = made.take(ranks[0], "ranks", "lists of numbers", "list_float")
        made.unknown.append("whether the lowest rank is the best; the card says so (`best`)")
        section["best"] = "lowest"
    elif label:
        section["label"] = made.take(label[0], "which image is better", "few values, named so")
        values = sorted(set(columns.sample[label[0]].dropna().astype(str)))
        section["values"] = _sides_of(values, made)
    elif votes:
        whole = all((pd.to_numeric(columns.sample[one].dropna()) % 1 == 0).all() for one in votes)
        key = "votes" if whole else "weights"
        section[key] = [made.take(one, key, "a number for each image", "float") for one in votes]
    else:
        section["label"], section["values"] = FILL_IN, {"a": FILL_IN, "b": FILL_IN}
        made.unknown.append("which column tells the image that people prefer")
    made.sections["preference"] = section


def _sides_of(values: Sequence[str], made: Proposal) -> dict[str, str]:
    """What each label means."""
    found: dict[str, str] = {}
    left = []
    for value in values:
        plain = _parted(value)
        if _BAD.fullmatch(plain) or plain == "bothbad_vote":
            found.setdefault("bad", value)
        elif _TIES.fullmatch(plain):
            found.setdefault("tie", value)
        else:
            left.append(value)
    for first, second in _SIDES:
        sides = [
            [
                value
                for value in left
                if side in re.split(r"_|(?<=left|ight)(?=vote)", _parted(value))
            ]
            for side in (first, second)
        ]
        if all(len(side) == 1 for side in sides) and sides[0] != sides[1]:
            found |= {"a": sides[0][0], "b": sides[1][0]}
            break
    for side in ("a", "b"):
        if side not in found:
            found[side] = FILL_IN
            shown = ", ".join(json.dumps(value[:40]) for value in values)
            made.unknown.append(f"which label says that image {side} is better ({shown})")
    return {side: found[side] for side in ("a", "b", "tie", "bad") if side in found}


def _element(made: Proposal, element: Sequence[str], truth: Sequence[str]) -> None:
    section: dict[str, Any] = {"label": FILL_IN}
    if element:
        section["element"] = made.take(element[0], "part of the prompt", "named so")
        section["element_text"] = section["element"]
    if truth:
        section["label"] = made.take(truth[0], "whether it is there", "yes or no", "bool")
    else:
        made.unknown.append("which column tells whether a part is there")
    section["threshold"] = "held_out"
    made.sections["element"] = section
    # Rows of one image are parts of it.
    made.items["pair"] = made.items["image"] or FILL_IN


def _ratings(made: Proposal, columns: TableColumns) -> None:
    sample = columns.sample
    raters = columns.find("rater", _is_name)
    sds = columns.find("sd", is_number, 9)
    lists = columns.find("rating", _is_number_list, 9)
    numbers = [] if lists else columns.find("rating", is_number, 9)
    if not lists and not numbers:
        numbers = [name for name in columns.left if is_number(sample[name].dropna())][:1]
        made.unknown += [
            f"whether {json.dumps(name)} is a rating: no name says so" for name in numbers
        ]
    for name in (*lists, *numbers):
        cells = sample[name].dropna()
        flat = [float(one) for cell in cells for one in (_as_list(cell) if lists else [cell]) or []]
        low, high = _scale_of(flat) or (FILL_IN, FILL_IN)
        made.unknown.append(
            f"whether {json.dumps(name)} is rated from {low} to {high}: its values lie in "
            f"{min(flat):g} to {max(flat):g}"
        )
        form: CellType = "list_float" if lists else "float"
        key = "ratings" if lists else "rating" if raters else "mean"
        column = made.take(name, "rating", f"{min(flat):g} to {max(flat):g}", form)
        gold: dict[str, Any] = {key: column, "scale": [low, high]}
        if raters and not lists:
            gold["rater"] = made.take(raters[0], "rater", "named so")
        if key == "mean" and (sd := _sd_of(name, sds)):
            gold["sd"] = made.take(sd, f"standard deviation of {name}", "named so", "float")
        made.sections[f"gold.{column}"] = gold
        made.facets[column] = name
    if not made.facets:
        made.sections["gold.rating"] = {"mean": FILL_IN, "scale": [FILL_IN, FILL_IN]}
        made.unknown.append("which column holds ratings")
    if not lists and raters and "pair" in made.items:
        del made.items["pair"]  # A row is a rating; an image has several.
    image = made.items["image"]
    if image and "pair" not in made.items:
        made.items["pair"] = image


def _models(columns: TableColumns) -> Proposal:
    """A card of models with their values; a metric gives one score for each."""
    made, sample = Proposal("system"), columns.sample
    named = columns.find("model", _is_model) or columns.find("id", _is_model)
    value = columns.find("value", is_number)
    released = columns.find("released", _is_date)
    model = made.take(named[0], "model", "its values are unique") if named else FILL_IN
    made.items = {"pair": model, "prompt": model, "text": "", "image": "", "model": model}
    made.sections["system"] = {"human": "people"}
    made.values = {"model": (named[0] if named else FILL_IN, "str"), "value": (FILL_IN, "float")}
    if not named:
        made.unknown.append("which column names the models")
    if value:
        numbers = pd.to_numeric(sample[value[0]].dropna())
        why = f"{numbers.min():g} to {numbers.max():g}"
        made.guesses.append(Guess(value[0], _VALUE, why))
        made.values["value"] = (value[0], "float")
        scale = _scale_of(numbers)
        if scale is None:  # Without ends there are no rates, only orders.
            made.sections["evaluation"] = {"measures": ["pa", "srcc", "krcc"]}
        else:
            made.sections["system"]["scale"] = list(scale)
            made.unknown.append(f"whether people's values run from {scale[0]} to {scale[1]}")
    else:
        made.unknown.append("which column holds what people say of a model")
    if named and released:
        made.guesses.append(Guess(released[0], "release date", "its values are dates"))
        days = _dates(sample[released[0]])
        made.sections["system.released"] = {
            str(name): f"{day:%Y-%m-%d}"
            for name, day in zip(sample[named[0]], days, strict=True)
            if not pd.isna(day)
        }
    made.unknown.append(
        "which images the models made: a metric gives one score for a model, and values have no "
        "intervals; with a table of images, prompts and models they have"
    )
    return made


_VALUE = "people's value of a model"


def _scale_of(numbers: Sequence[float] | pd.Series) -> tuple[int, int] | None:
    """The first usual scale that holds all numbers."""
    low, high = min(numbers), max(numbers)
    return next((one for one in _SCALES if one[0] <= low and high <= one[1]), None)


def _sd_of(rating: str, sds: Sequence[str]) -> str:
    """The deviation that shares a word with a rating; the only one where there is one."""
    words = set(_parted(rating).split("_")) - {"mos", "mean", "rating", "score"}
    return next(
        (sd for sd in sds if words & set(_parted(sd).split("_"))), sds[0] if len(sds) == 1 else ""
    )


def kind_of(made: Proposal) -> str:
    """What the labels measure, by the names of their columns."""
    if made.family not in ("rating", "system"):
        return "preference" if made.family == "preference" else "alignment"
    values = (guess.column for guess in made.guesses if guess.role == _VALUE)
    names = " ".join((*made.facets.values(), *values)).lower()
    kinds = [kind for kind, pattern in _KINDS.items() if re.search(pattern, names)]
    if not kinds:
        made.unknown.append("whether people said how well images fit (alignment) or look (quality)")
    return kinds[0] if kinds else FILL_IN


def card_text(made: Proposal, name: str, source: SourceFile, headline: str, n_rows: int) -> str:
    """The card as TOML, with what was guessed and why beside each line."""
    facet = next(iter(made.facets), "")
    title = name.replace("_", " ").capitalize()
    asks = {
        "preference": "does the metric prefer the image that people prefer",
        "group": "does the metric know which text belongs to which image",
        "element": "does the metric know which parts of the prompt are there",
        "system": "does the metric order models as people do",
    }.get(made.family, "does the metric follow the ratings of people")
    kind = kind_of(made)
    reasons = {guess.column: f"{guess.role}: {guess.why}" for guess in made.guesses}
    lines = [
        "# A proposal of `bench new`. What it could not know:",
        *(f"#   - {text}" for text in made.unknown),
        "# See what the board will rest on: python -m benchmarks check THIS_FILE",
        _pair("name", name),
        _pair("title", title),
        _pair("family", made.family),
        _pair("kind", kind) + "  # alignment, preference or quality: an index never mixes them",
        _pair("summary", f"{n_rows:,} rows: {asks}?"),
        _pair("description", "What the images are, who judged them, and how.")
        + "  # for the about page",
        _pair("revision", source.revision),
        _pair("cluster", "model" if made.family == "system" else "prompt")
        + "  # what is resampled for intervals",
        _pair("licence", "") + "  # of the data",
        _pair("citation", ""),
        "",
        "[headline]",
        _pair("measure", headline) + "  # what the board is ordered by",
        _pair("variant", "assay"),
        *([_pair("facet", facet)] if facet else []),
        *(["", "[facets]"] if made.facets else []),
        *(_pair(key, label) for key, label in made.facets.items()),
        *_table("rows", source, made.columns, reasons),
        *(_table("people", source, made.values, reasons) if made.values else []),
    ]
    lines += ["", "[items]", *(_pair(key, value) for key, value in made.items.items())]
    for section, keys in made.sections.items():
        lines += ["", f"[{section}]", *(_pair(key, value) for key, value in keys.items())]
    lines += ["", "[[files]]", _pair("path", source.path), _pair("role", "answers")]
    lines += [_pair(key, value) for key, value in source.origin.items()]
    return "\n".join(lines) + "\n"


def _table(
    name: str,
    source: SourceFile,
    columns: Mapping[str, tuple[str, CellType]],
    reasons: Mapping[str, str],
) -> Iterator[str]:
    """A table of the file, each column with the reason why it was taken."""
    yield from ("", "[[tables]]", _pair("name", name), _pair("path", source.path))
    yield from ([_pair("format", source.format)] if source.format else [])
    yield from ([_pair("records", source.records)] if source.records else [])
    yield "[tables.columns]"
    for column, (origin, form) in columns.items():
        value = (
            _value(origin) if form == "str" else f'{{ from = {_value(origin)}, type = "{form}" }}'
        )
        yield f"{column} = {value}  # {_comment(reasons.get(origin, 'not told'))}"


def _pair(key: str, value: Any) -> str:
    plain = re.fullmatch(r"[A-Za-z0-9_-]+", key)
    return f"{key if plain else _value(key)} = {_value(value)}"


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "{ " + ", ".join(_pair(key, inner) for key, inner in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    # Escapes of JSON are those of TOML, but for DEL, which JSON does not escape.
    return json.dumps(value).replace("\x7f", "\\u007f")


def _comment(text: str) -> str:
    """Text that stays on its line, whatever the table said."""
    return "".join(sign if sign.isprintable() else "?" for sign in text)[:160]

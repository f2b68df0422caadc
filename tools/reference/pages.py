"""Pages of the reference, and of the errata, from the objects that the code itself reads."""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import typer
from typer.main import get_command

from benchmarks.errata.entries import KINDS, Erratum, errata
from benchmarks.published import papers
from benchmarks.schema import Card, MeasureInfo, Selector
from benchmarks.settings.model import SETTINGS, Setting
from leaderboard.states import FINISHED, IN_WORK, LEGEND, TRANSITIONS, State
from tools.reference.errors import ErrorCode
from tools.reference.markdown import code, page, table, text

_OF_COMMANDS = """\
`assay` is `python -m evaluator`, and `assay bench` is `python -m benchmarks`. Every command answers
`--help`. They end with 0, or with 1 where the input is wrong, 2 where they are
used wrongly and 3 where Assay or the world outside is at fault; see [errors](errors.md). An option
with a variable in the last column is taken from there, or from the
[settings file](settings.md), where it is not given."""

_EXAMPLE = re.compile(r"\s*Examples?:\s*", re.IGNORECASE)


def commands_page(command_lines: Mapping[str, typer.Typer]) -> str:
    """The document; a group that is a command line of its own stands there alone."""
    titles = {app.info.help for app in command_lines.values()}
    parts = [
        part
        for called, app in command_lines.items()
        for part in _command(called, get_command(app), 2, titles)
    ]
    return page("Commands", _OF_COMMANDS, *parts)


def _command(
    called: str, command: Any, level: int, elsewhere: Collection[object] = ()
) -> Iterator[str]:
    yield f"{'#' * min(level, 4)} {called}"
    yield from _command_help(command)
    if hasattr(command, "commands"):
        for name, one in sorted(command.commands.items()):
            if not one.hidden and one.help not in elsewhere:
                yield from _command(f"{called} {name}", one, level + 1)
        return
    rows = [row for option in command.params if (row := _option_row(option))]
    if rows:
        yield table(("option", "", "default", "variable"), rows)


def _command_help(command: Any) -> Iterator[str]:
    said = inspect.cleandoc(command.help or "").replace("\f", "")
    words, *examples = _EXAMPLE.split(said)
    for paragraph in words.strip().split("\n\n"):
        if paragraph.strip():
            yield text(paragraph)
    for example in examples:
        yield f"```text\n{inspect.cleandoc(example).strip()}\n```"


def _option_row(option: Any) -> list[str] | None:
    if getattr(option, "hidden", False) or option.name == "help":
        return None
    is_argument = option.param_type_name == "argument"
    names = (
        [option.metavar or option.name.upper()]
        if is_argument
        else [*option.opts, *option.secondary_opts]
    )
    taken = option.envvar if isinstance(option.envvar, str) else ""
    needed = " **Needed.**" if option.required else ""
    return [
        "<br>".join(code(name) for name in names),
        text(option.help or "") + needed,
        code(_option_default(option)),
        code(taken),
    ]


def _option_default(option: Any) -> str:
    value = option.default
    if value is None or callable(value) or value in ((), [], ""):
        return ""
    if isinstance(value, bool):
        return "" if not value else "yes"
    return ", ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)


_OF_ERRATA = """\
Papers are right far more often than not, and these benchmarks are good because their authors
released the data by which anybody can look. Where a printed figure does not follow from that data,
boards show both: the figure as printed, and the corrected one. This is the whole list, as
`python -m benchmarks.errata` prints it; with an id it prints what one printed beside what the data
give."""


def errata_page() -> str:
    """The document."""
    every = errata()
    kinds = "\n".join(f"- **{name}**: {text(what)}." for name, what in KINDS.items())
    parts = [part for erratum in every for part in _erratum(erratum)]
    return page("Errata", _OF_ERRATA, kinds, f"There are {len(every)}.", *parts)


def _erratum(erratum: Erratum) -> Iterator[str]:
    paper = papers()[erratum.paper]
    yield f"## {erratum.id}"
    yield f"{text(paper.title)}: {text(erratum.where)} (**{erratum.kind}**)."
    yield f"{text(erratum.title)} {text(erratum.why)}"
    cells = (
        [text(cell.label), text(cell.printed), text(cell.correct) or "not known"]
        for cell in erratum.cells
    )
    yield table(("what", "as printed", "should be"), cells)
    if erratum.command:
        yield f"Computed again by {code(erratum.command)}."


_SAID_AT_MOST = 3

_OF_ERRORS = """\
An error has a code, which stays the same from release to release and is meant for programs, a
sentence that says what is wrong and where, and a sentence that says what to do. A command prints all
three to standard error, as `error [code]: ...`; with `--json`, the page and `/v1` give them as fields.

| whose fault | exit code of a command | what becomes of a submission |
| --- | --- | --- |
| yours | 1 | it is rejected or fails, with the reason; your quota is not charged |
| the world's | 3 | it is tried again; nothing is lost |
| ours | 3 | it fails with the reason, is not charged, and an operator may `rerun` it |
| noted | 0 of `health`, or 3 where nothing works | nothing failed: `/health` and `doctor` tell the operator |

An unknown command or option ends with exit code 2 and has no code of its own. In the sentences below
`…` stands for what varies; where one code has several, the first few are listed."""


def errors_page(codes: Sequence[ErrorCode]) -> str:
    """The document."""
    rows = (
        [code(one.code), ", ".join(one.whose), _listed(one.says), _listed(one.remedies)]
        for one in codes
    )
    heads = ("code", "whose fault", "says", "what to do")
    count = f"There are {len(codes)} codes."
    return page("Error codes", _OF_ERRORS, count, table(heads, rows))


def _listed(said: Sequence[str]) -> str:
    return "<br>".join(text(one) for one in said[:_SAID_AT_MOST])


_OF_MEASURES = """\
A measure is one named meta-metric: what a benchmark computes about a metric. Its name, with the split,
variant and facet where there are any, is what rows, boards, files and `/v1` carry. Range and chance
are those of the protocol; *chance* is what a metric of random scores gets. Every value of a board comes
with its 95 % interval, its number of items and clusters, and the number of missing scores.

Where a benchmark says who made its images, `by_generator` is its headline on the images of one model, whose
name is the facet: all of its images in one pool, or the comparisons with one of them."""


def measures_page(cards: Iterable[Card]) -> str:
    """The document."""
    parts = [part for card in cards for part in _card(card)]
    return page("Measures", _OF_MEASURES, *parts)


def _card(card: Card) -> Iterator[str]:
    yield f"## {text(card.title)}"
    simulated = " Its ratings are simulated." if card.simulated else ""
    yield (
        f"{code(card.name)}, revision {code(card.revision)}, protocol {card.protocol}; the cluster is "
        f"the {text(card.cluster)}; ranked by {_selector(card.headline)}.{simulated}"
    )
    heads = ("measure", "title", "range", "chance", "better", "what it means", "source")
    yield table(heads, (_measure_row(name, info) for name, info in sorted(card.measures.items())))
    for kind, named in (("split", card.splits), ("facet", card.facets), ("skill", card.skills)):
        if named:
            keys = ", ".join(f"{code(key)} ({text(title)})" for key, title in named.items())
            yield f"Each {kind}: {keys}."


def _measure_row(name: str, info: MeasureInfo) -> list[str]:
    return [
        code(name),
        text(info.title),
        f"{_number(info.low, 'no least')} to {_number(info.high, 'no largest')}",
        _number(info.chance, ""),
        "larger" if info.higher_is_better else "smaller",
        text(info.meaning),
        text(info.source),
    ]


def _number(value: float | None, otherwise: str) -> str:
    return otherwise if value is None else f"{value:g}"


def _selector(headline: Selector) -> str:
    more = (("split", headline.split), ("variant", headline.variant), ("facet", headline.facet))
    named = "".join(f", {kind} {code(value)}" for kind, value in more if value)
    return f"{code(headline.measure)}{named}"


_OF_SETTINGS = """\
A setting is a variable of the environment, and most may stand in the settings file
(`.assay/settings.toml`, or what `ASSAY_SETTINGS` names). An option of a command comes first, then the
variable, then the file, then the default. `python -m evaluator settings` shows what is in force and
where it came from; [operations](../operations.md#settings) has the rest.

A **secret** is never shown. It may be given as the path of a file that holds it, with `_FILE` behind its
variable or `_file` behind its key."""


def settings_page() -> str:
    """The document of all settings."""
    heads = ("variable", "key in the file", "default", "read by", "what it is")
    return page("Settings", _OF_SETTINGS, table(heads, map(_setting_cells, SETTINGS.values())))


def _setting_cells(setting: Setting) -> list[str]:
    secret = " **Secret.**" if setting.secret else ""
    default, readers = code(setting.default_text), text(", ".join(setting.readers))
    said = f"{text(setting.text)}{secret}"
    return [code(setting.variable), code(setting.key), default, readers, said]


_OF_STATES = """\
A submission has one state at a time: what its events, read from the first to the last, come to.
Each change is one event in the public ledger, with the time, who caused it and, where something was
refused or failed, a code, a reason and what to do. `python -m evaluator status ID` shows the state,
`python -m evaluator logs ID` the events."""

_NOTES = """\
- A state with **lease** is held by a worker for a limited time. If the worker dies, the lease runs
  out and another worker claims the submission; finished shards of scores are kept where both see the
  same scratch folder. After three attempts, or six lost workers, it fails, with the
  reason of each.
- A state that is **final** changes only when somebody acts: its author (`publish`, `withdraw`, a
  newer version) or an operator (`rerun`, `hide`, `show`), or when a new revision of a benchmark or a
  new metric queues it again.
- What is withdrawn stays withdrawn."""


def states_page() -> str:
    """The document."""
    rows = (
        [code(state.value), LEGEND[state], _kind(state), _names(sorted(TRANSITIONS[state]))]
        for state in State
    )
    heads = ("state", "what it means", "", "what may follow")
    return page("States of a submission", _OF_STATES, _diagram(), table(heads, rows), _NOTES)


def _kind(state: State) -> str:
    return "lease" if state in IN_WORK else "final" if state in FINISHED else ""


def _names(states: list[State]) -> str:
    return ", ".join(code(state.value) for state in states) or "nothing"


def _diagram() -> str:
    """The usual way and where it may end, in Mermaid, which GitHub draws; the table has all ways."""
    return "\n".join(["```mermaid", "stateDiagram-v2", *_arrows(), "```"])


def _arrows() -> Iterator[str]:
    for before, afters in TRANSITIONS.items():
        for after in State:
            # Ways back and ways out of work are in the table; drawn, they would hide the rest.
            forward = before is None or _PLACE[after] > _PLACE[before]
            if after in afters and forward and (after not in _ENDS or (before, after) in _DRAWN):
                start = before.value if before is not None else "[*]"
                yield f"    {start} --> {after.value}"


_PLACE = {state: number for number, state in enumerate(State)}
_ENDS = frozenset({State.WITHDRAWN, State.FAILED, State.REJECTED, State.HIDDEN, State.SUPERSEDED})
_DRAWN = frozenset(
    {
        (State.RECEIVED, State.REJECTED),
        (State.SCORING, State.FAILED),
        (State.JUDGING, State.FAILED),
        (State.PUBLISHED, State.WITHDRAWN),
        (State.PUBLISHED, State.HIDDEN),
        (State.PUBLISHED, State.SUPERSEDED),
    }
)

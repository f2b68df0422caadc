"""Named tools for programs and assistants, each answered from the API's tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from starlette.datastructures import QueryParams

from benchmarks.errors import SubmitterError
from benchmarks.schema import Selector
from leaderboard.api.operations import Asked
from leaderboard.api.source import Source
from leaderboard.api.tables import boards, catalogue, comparisons, models
from leaderboard.api.tables.heat import heat_table
from leaderboard.publication.measure_names import skill_title
from leaderboard.publication.reader import View
from leaderboard.publication.recommending import leading_cells, nobody
from leaderboard.tables import Table
from leaderboard.text import clean
from leaderboard.views.index import SIMULATED

MOST_ROWS = 100
_LONGEST_WORDS = 100
_MOST_BOARDS = 5
Answer = dict[str, Any]


class Tools:
    """Read-only questions; nothing here changes anything.

    Args:
        source: where everything is read.
    """

    def __init__(self, source: Source) -> None:
        self.source = source

    def benchmarks(self) -> Answer:
        """Lists the benchmarks on which text-to-image metrics are tested.

        `simulated` marks those whose ratings do not come from people.
        """
        found = catalogue.benchmarks(self.source, Asked({}, QueryParams()))
        answer = _answer(found, MOST_ROWS)
        for row in answer["rows"]:
            board = self.source.reader.view().boards[row["name"]]
            row["skills"] = {s: skill_title(board.card, s) for s in board.skills() if ":" not in s}
        return answer

    def board(self, benchmark: str, skill: str = "", measure: str = "", limit: int = 20) -> Answer:
        """The ranking of metrics on a benchmark, best first, with intervals and rank ranges.

        Args:
            benchmark: its name, as `benchmarks` lists it.
            skill: key of a skill; empty: all skills together.
            measure: name of a measure; empty: the headline.
            limit: rows to return, at most 100.
        """
        asked = _asked({"benchmark": benchmark}, skill=skill, measure=measure)
        return _answer(boards.board(self.source, asked), min(limit, MOST_ROWS))

    def compare(self, benchmark: str, a: str, b: str, skill: str = "", measure: str = "") -> Answer:
        """Two metrics against each other: difference, interval, corrected p-value, by skill too.

        Args:
            benchmark: whose board.
            a: entry id of the one metric, as `board` gives it.
            b: entry id of the other.
            skill: key of a skill; empty: all skills together.
            measure: name of a measure; empty: the headline.
        """
        asked = _asked({}, benchmark=benchmark, a=a, b=b, skill=skill, measure=measure)
        return _answer(comparisons.compare(self.source, asked), MOST_ROWS)

    def metrics_for_skill(self, skill: str, ratings: str = "") -> Answer:
        """Which metrics judge a skill best: on each benchmark that has it, those not told apart.

        Metrics that are not significantly above chance are not named.

        Args:
            skill: key or name of a skill, or a part of it, such as `counting`.
            ratings: `simulated` for the boards of simulated ratings, which stand apart.
        """
        wanted = clean(skill)[:_LONGEST_WORDS].casefold().strip()
        if not wanted:
            raise SubmitterError("no_skill", "No skill was named.", "Name one, such as counting.")
        view = self.source.reader.view().group(simulated=ratings == SIMULATED)
        having: dict[str, list[str]] = {}
        for name, board in view.boards.items():
            titles = {s: skill_title(board.card, s) for s in board.skills() if ":" not in s}
            if found := [s for s, title in titles.items() if wanted in f"{s}\n{title}".casefold()]:
                having[name] = found
        if not having:
            raise SubmitterError(
                "unknown_skill", "No benchmark with results has such a skill.",
                "The answer of `benchmarks` lists the skills; with ratings `simulated`, those of simulated boards.",
            )  # fmt: skip
        rows, remarks = self._best(view, having)
        about: Answer = {"as_of": boards.as_of(view), "skill": wanted, "rows": len(rows)}
        return {
            "about": about | ({"remarks": remarks} if remarks else {}),
            "rows": rows[:MOST_ROWS],
        }

    def _best(
        self, view: View, having: Mapping[str, Sequence[str]]
    ) -> tuple[list[Mapping[str, Any]], list[str]]:
        """Who may be best at skills, by benchmark, and what of it is left out or not tested."""
        rows: list[Mapping[str, Any]] = []
        looked_at, left = list(having)[:_MOST_BOARDS], list(having)[_MOST_BOARDS:]
        remarks = [f"Not looked at: {', '.join(left)}. Ask `board` for them."] if left else []
        for name in looked_at:
            found = boards.chosen(self.source, Asked({"benchmark": name}, QueryParams()))
            many = len(found.choice.entry_ids())
            if many > boards.MOST_IN_SKILLS:
                table = heat_table(found.choice, view, None, found.about(), tested=False)
                remarks.append(
                    f"{name} has {many} metrics, too many to test for an answer: those are listed "
                    "whose published range of ranks begins at 1."
                )
            else:
                asked = Asked({"benchmark": name}, QueryParams())
                table = boards.board_skills(self.source, asked)
            best = [
                row
                for row in _answer(table, len(table.rows))["rows"]
                if row.get("skill") in having[name] and row["maybe_best"]
            ]
            named = [row for row in best if _may_be_named(row, view, name)]
            if best and not named:
                remarks.append(f"{name}: {nobody()}.")
            simulated = view.boards[name].card.simulated
            rows += [{"benchmark": name, "simulated": simulated, **row} for row in named]
        if len(rows) > MOST_ROWS:
            remarks.append(f"The first {MOST_ROWS} of {len(rows)} rows; name a narrower skill.")
        return rows, remarks

    def models(self, prompt_set: str = "", skill: str = "", limit: int = 20) -> Answer:
        """Text-to-image models by the metrics that earned it to judge them, best first.

        Where trusted metrics disagree about two models, `disagreements` says so.

        Args:
            prompt_set: its name; empty: which sets and models there are.
            skill: key of a skill; empty: all prompts.
            limit: rows to return, at most 100.
        """
        if not prompt_set:
            return _answer(models.models(self.source, _asked({})), min(limit, MOST_ROWS))
        asked = _asked({"prompt_set": prompt_set}, skill=skill)
        found = models.board(self.source, asked)
        kept = [row for row in found.rows if row["trusted"] and row["skill"] == (skill or None)]
        # The evidence behind every metric is longer than all rows together.
        about = {name: said for name, said in found.about.items() if name != "judges"}
        return _answer(replace(found, rows=kept, about=about), min(limit, MOST_ROWS))

    def entry(self, entry_id: str) -> Answer:
        """Everything published of one metric: its values, cost, findings and trust checks.

        Args:
            entry_id: as `board` gives it.
        """
        found = catalogue.entry(self.source, Asked({"entry_id": entry_id}, QueryParams()))
        return _answer(found, MOST_ROWS)


def _may_be_named(row: Mapping[str, Any], view: View, benchmark: str) -> bool:
    """Whether the metric of a row of skills may be recommended: above chance, and no template."""
    board = view.boards[benchmark]
    names = ("measure", "variant", "split", "facet")
    selector = Selector(**{name: row[name] for name in names if row.get(name) is not None})
    cells = board.cells(selector, row["skill"])
    leading = leading_cells(board.card, cells, view.entries)
    return row["entry_id"] in {cell.entry_id for cell in leading}


def _asked(path: Mapping[str, str], **params: str) -> Asked:
    return Asked(path, QueryParams([(name, value) for name, value in params.items() if value]))


def _answer(table: Table, limit: int) -> Answer:
    """The first rows as JSON values; what is missing is left out."""
    most = max(1, min(limit, max(MOST_ROWS, len(table.rows) if limit > MOST_ROWS else 0)))
    rows = []
    for row in table.rows[:most]:
        values = {one.name: table.value(row, one) for one in table.columns}
        rows.append({name: v for name, v in values.items() if v is not None and v == v})  # noqa: PLR0124
    about = {**table.about, "rows": len(table.rows)}
    return {"about": about, "rows": rows}

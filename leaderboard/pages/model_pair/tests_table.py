"""The tests between two models: by every metric on every skill."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from leaderboard.models.board_types import Judge, PairReport, PairTest
from leaderboard.pages.models.names import judge_name, plain_name
from leaderboard.pages.shown.markup import badge, scroll_box, text
from leaderboard.pages.shown.ranking_marks import p_text
from leaderboard.text import MISSING, count, interval, number

LEVEL = 0.05


def tests_table(
    report: PairReport, titles: Mapping[str | None, str], *, trusted: bool, chosen: str = ""
) -> str:
    """One row for each metric and skill; empty where there is none.

    Args:
        report: of the two models.
        titles: skill to how it is shown, in the order of the rows.
        trusted: whether the tests are of metrics that judge the skill, or of the others.
        chosen: entry id of the one metric that is judged by, which counts as trusted.
    """
    rows = []
    for skill, title in titles.items():
        judges = {judge.entry_id: judge for judge in report.judges.get(skill, ())}
        of = [
            (judges[test.judge], test)
            for test in report.tests
            if test.skill == skill
            and test.judge in judges
            and _counts(judges[test.judge], chosen) is trusted
        ]
        rows += [
            _row(title, judge, test, report, first=k == 0) for k, (judge, test) in enumerate(of)
        ]
    if not rows:
        return ""
    first, second = (text(plain_name(one, 30)) for one in (report.first, report.second))
    heads = (
        "Skill", "Metric", f"Difference<span class=as-note>{first} less {second}</span>",
        "t", "p (Holm)", "Wilcoxon p", "Better on", "Prompts",
    )  # fmt: skip
    columns = "".join(f'<th scope="col">{head}</th>' for head in heads)
    label = "Tests by metrics that judge" if trusted else "Tests by other metrics"
    return (
        f"{scroll_box(label)}<table class='as-table as-tests'><caption class='as-sr'>{label}</caption>"
        f"<thead><tr>{columns}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _counts(judge: Judge, chosen: str) -> bool:
    return judge.entry_id == chosen if chosen else judge.trusted


def told_apart(test: PairTest) -> bool:
    """Whether the two differ at 5 % of all tests of the skill together."""
    return test.t_p_holm < LEVEL


def dominance_bar(test: PairTest, first: str, second: str) -> str:
    """Shares of prompts on which each of two models is strictly better, as one bar.

    Args:
        test: of the two.
        first: plain name of the one.
        second: of the other.
    """
    if math.isnan(test.dominance) or math.isnan(test.dominance_back):
        return MISSING
    tied = max(0.0, 1.0 - test.dominance - test.dominance_back)
    said = (
        f"{first} is better on {100 * test.dominance:.0f} %, {second} on "
        f"{100 * test.dominance_back:.0f} %, equal on {100 * tied:.0f} %"
    )
    begin, parts = 0.0, []
    for kind, share in (("a", test.dominance), ("tie", tied), ("b", test.dominance_back)):
        if share > 0:
            parts.append(
                f'<rect class="as-tally-{kind}" x="{100 * begin:.2f}%" '
                f'width="{100 * share:.2f}%" height="10"/>'
            )
        begin += share
    return (
        f'<svg class="as-tally" role="img" aria-label="{text(said)}"><title>{text(said)}</title>'
        f'{"".join(parts)}</svg><span class="as-ci">{100 * test.dominance:.0f} % / '
        f"{100 * test.dominance_back:.0f} %</span>"
    )


def signed(value: float) -> str:
    """A difference with its sign."""
    shown = number(value)
    return f"+{shown}" if value > 0 and shown != number(0.0) else shown


def p_shown(p: float) -> str:
    """A p-value for a narrow cell; a dash where there is none."""
    return MISSING if math.isnan(p) else p_text(p)


def _row(title: str, judge: Judge, test: PairTest, report: PairReport, *, first: bool) -> str:
    sure = told_apart(test)
    mark = f" {badge('told apart', 'good')}" if sure else ""
    missing = (
        f'<span class="as-note">{count(test.n_missing, "prompt")} left out</span>'
        if test.n_missing
        else ""
    )
    bar = dominance_bar(test, plain_name(report.first, 30), plain_name(report.second, 30))
    values = (
        ("Metric", judge_name(judge.entry_id, judge.title)),
        ("Difference", f'<b>{signed(test.difference)}</b> <span class="as-ci">'
         f"{interval(test.ci_low, test.ci_high)}</span>{mark}"),
        ("t", number(test.t, 2)),
        ("p (Holm)", f'{p_shown(test.t_p_holm)}<span class="as-note">p {p_shown(test.t_p)}</span>'),
        ("Wilcoxon p", f'{p_shown(test.wilcoxon_p)}<span class="as-note">W {number(test.wilcoxon_w, 0)}'
         "</span>"),
        ("Better on", bar),
        ("Prompts", f"{test.n_prompts:,}{missing}"),
    )  # fmt: skip
    cells = "".join(f'<td data-label="{label}">{value}</td>' for label, value in values)
    again = "" if first else ' class="as-again"'
    return f'<tr{again}><th scope="row">{text(title)}</th>{cells}</tr>'


def in_short(report: PairReport, tests: Sequence[PairTest], title: str) -> str:
    """What the metrics that judge a skill say of two models, in sentences; as HTML."""
    names = {judge.entry_id: judge.title for judge in report.judges.get(tests[0].skill, ())}
    first, second = (text(plain_name(one, 40)) for one in (report.first, report.second))
    lines = []
    for test in tests:
        by = text(names.get(test.judge, test.judge), limit=40)
        size = f"{number(abs(test.difference))}, p {p_shown(test.t_p_holm)}"
        if not told_apart(test):
            lines.append(f"By {by} the two are not told apart ({size}).")
        elif test.difference > 0:
            lines.append(f"By {by} <b>{first}</b> is better ({size}).")
        else:
            lines.append(f"By {by} <b>{second}</b> is better ({size}).")
    return f'<p class="as-verdict">{text(title)}: {" ".join(lines)}</p>'

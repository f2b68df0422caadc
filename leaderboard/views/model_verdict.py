"""Verdict on the models of a prompt set: sentences made from tested differences only."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.model_boards import LEVEL
from benchmarks.statistics.better_or_tied import least_prompts
from leaderboard.models.board_types import Judge, ModelBoard, PairReport, PairTest, SkillBoard
from leaderboard.models.people import PeopleBoard
from leaderboard.text import clean, count, interval, number, one_line
from leaderboard.views.figures import Verdict, in_words
from leaderboard.views.models import plain_name
from leaderboard.votes.results import VoteResults

DIGITS = 2  # Of ratings
_MOST_NAMED = 3
_LONGEST_NAME = 40


def verdict_of_board(board: ModelBoard, title: str) -> Verdict:
    """Which model leads by the metrics that judge, and where no order can be given."""
    first, *others = board.skills.values()
    alone = board.query.judge
    judging = tuple(
        one for one in first.judges if (one.entry_id == alone if alone else one.trusted)
    )
    said = [_order(first, board, judging)]
    if first.disagreements and not board.query.judge:
        pairs = count(len(first.disagreements), "pair")
        said.append(f"Qualified metrics significantly disagree about {pairs} of models.")
    flat = [of.title for of in others if no_order(of)]
    if flat and not no_order(first):
        said.append(f"On {in_words(flat)} no two models differ significantly.")
    return Verdict(" ".join(said), _detail(first, board, judging, title))


def no_order(of: SkillBoard) -> bool:
    """Whether models are ranked on a skill and yet no two of them differ significantly."""
    ranked = [one for one in of.standings.values() if one.rank_low is not None]
    return len(ranked) > 1 and not of.disagreements and not any(one.better_than for one in ranked)


def _order(of: SkillBoard, board: ModelBoard, judging: Sequence[Judge]) -> str:
    ranked = [one for one in of.standings.values() if one.rank_low is not None]
    where = "" if of.skill is None else f" on {of.title}"
    if why := _unranked(of, len(ranked), where):
        return why
    names = [plain_name(board.entries[one.submission_id], _LONGEST_NAME) for one in ranked]
    first = [name for name, one in zip(names, ranked, strict=True) if not one.worse_than]
    prompts = count(of.n_prompts, "prompt")
    where = f"{where} ({prompts})" if where else f" on {prompts}"
    by, n = _by(judging), len(ranked)
    rest, ahead = n - 1, len(ranked[0].better_than)
    if not rest:
        said = f"{names[0]} is the only model with a rank{where}"
    elif no_order(of):
        said = f"{by} no two of {n} models differ significantly{where}"
    elif len(first) == 1 and ahead == rest:
        others = "the other model" if rest == 1 else f"all {rest} other models"
        said = f"{by} {first[0]} is significantly better than {others}{where}"
    elif len(first) == 1 and not ranked[0].worse_than:
        said = f"{by} {first[0]} leads {n} models{where}, significantly better than {ahead} of them"
    elif len(first) in (0, n):
        said = f"{by} no model is ahead of all others{where}"
    else:
        named = in_words([*first[:_MOST_NAMED], *_more(first)])
        said = f"{by} {named} lead {n} models{where}: no model is significantly better"
    return f"{said}."


def _unranked(of: SkillBoard, n_ranked: int, where: str) -> str:
    """Why models cannot be ranked on a skill; empty where they can."""
    if not of.n_prompts:
        return f"No prompt that the filters keep tests {of.title}."
    if of.lead is None:
        return f"No metric is qualified to judge these models{where}, so none is ranked."
    if of.n_prompts < least_prompts(len(of.standings)):
        few = f"({of.n_prompts}; at least {least_prompts(len(of.standings))} needed)"
        return f"Too few prompts to order models{where} {few}."
    return "" if n_ranked else f"No model has the scores that a rank{where} needs."


def _by(judging: Sequence[Judge]) -> str:
    if len(judging) == 1:
        one = judging[0]
        return f"By {clean(one.title)}{'' if one.trusted else ', which is not qualified here'},"
    return f"By {len(judging)} qualified metrics,"


def _detail(of: SkillBoard, board: ModelBoard, judging: Sequence[Judge], title: str) -> str:
    said = [f"{title}, {count(len(board.entries), 'model')}."]
    if judging:
        family = "pairs of models" if len(judging) == 1 else "pairs of models and qualified metrics"
        said.append(f"Paired t-tests and sign flips of prompt means, Holm’s correction over all {family}, level "
                    f"{LEVEL}.")  # fmt: skip
    if len(judging) > 1:
        titles = [clean(one.title) for one in judging]
        named = in_words([*titles[:_MOST_NAMED], *_more(titles, "further metric")])
        said.append(f"Qualified here: {named}; a model is better where one of them finds it so and "
                    "none the contrary.")  # fmt: skip
    elif not judging and of.judges:
        said.append(f"Scored by {count(len(of.judges), 'metric')}, none of them qualified here.")
    return " ".join(said)


def verdict_of_people(board: PeopleBoard, *, alone: bool) -> Verdict:
    """Which model people rate highest, and on which skills no two models differ."""
    overall = board.overall
    (first, mean), *others = overall.means.items()
    name = board.models[first]
    value = f"{number(mean.value, DIGITS)} of 5 {interval(mean.ci_low, mean.ci_high, DIGITS)}"
    prompts = count(overall.n_prompts, "prompt")
    said = [f"Rated by people on {prompts}, {name} has the highest mean rating, {value}"]
    ahead = len(overall.ahead_of)
    if others and not overall.note:
        who = "every other model" if ahead == len(others) else (
            f"{ahead} of the {len(others)} others"
        )  # fmt: skip
        said[0] += f", significantly above {who}" if ahead else "; none is significantly below it"
    said[0] += "."
    if overall.note:
        said = [overall.note]
    flat = [one.title for one in board.skills.values() if one.skill and one.undecided]
    if flat:
        said.append(f"On {in_words(flat)} no two of the {len(overall.means)} models differ "
                    "significantly.")  # fmt: skip
    ratings = f", {count(board.n_ratings, 'rating')}" if board.n_ratings else ""
    detail = (
        f"{board.benchmark.title}{ratings}; paired t-tests and sign flips of prompt means, Holm’s correction over "
        f"{count(len(overall.pairs), 'pair')}, level {LEVEL}."
    )
    if alone:
        detail += " No model was submitted here, so models are ordered by people’s ratings alone."
    return Verdict(" ".join(said), detail)


def verdict_of_pair(report: PairReport, tests: Sequence[PairTest], title: str) -> Verdict:
    """What the metrics that judge say of two models on one skill."""
    first, second = (plain_name(one, _LONGEST_NAME) for one in (report.first, report.second))
    if not tests:
        return Verdict(f"No qualified metric has scored both {first} and {second}.")
    names = {judge.entry_id: judge.title for judge in report.judges.get(tests[0].skill, ())}
    sides: dict[str, list[str]] = {first: [], second: [], "": []}
    for test in tests:
        better = first if test.difference > 0 else second
        sides[better if differs(test) else ""].append(clean(names.get(test.judge, test.judge)))
    lines = [
        f"By {in_words(by)} {better} is significantly better than {other}"
        for better, other in ((first, second), (second, first))
        if (by := sides[better])
    ]
    if sides[""]:
        lines.append(f"By {in_words(sides[''])} there is no significant difference between "
                     f"{'the two' if lines else f'{first} and {second}'}")  # fmt: skip
    where = title[:1].lower() + title[1:]
    lines = [*lines[:1], *(f"{one[0].lower()}{one[1:]}" for one in lines[1:])]
    return Verdict(f"{'; '.join(lines)} ({where}, {count(tests[0].n_prompts, 'prompt')}).")


def differs(test: PairTest) -> bool:
    """Whether two models differ significantly, by the corrected p-value."""
    return test.t_p_holm < LEVEL


def _more(names: Sequence[str], what: str = "other") -> list[str]:
    left = len(names) - _MOST_NAMED
    return [count(left, what)] if left > 0 else []


def verdict_of_votes(results: VoteResults | None, title: str) -> Verdict:
    """What the corrected tests between voted models say; None: no revision is published."""
    if results is None:
        return Verdict(f"No votes on {title} are published yet.")
    voted = [one for one in results.models if one.rank is not None]
    ranks = {(one.rank_low, one.rank_high) for one in voted}
    if len({one.group for one in voted}) > 1:
        said = f"The models on {title} have no common order: some were never compared, nor through others."
    elif ranks <= {(1, len(voted))}:
        said = f"On {title} no two of {count(len(voted), 'model')} differ significantly."
    else:
        first = next(one for one in voted if one.rank == 1)
        level = (first.rank_high or 1) - 1  # Models that are not significantly less preferred
        others = f"{level} of the {len(voted) - 1} others not significantly less"
        if not level:
            others = "significantly more than every other model"
        said = f"On {title} people prefer {one_line(first.title, _LONGEST_NAME)}, {others}."
    given = f"{count(results.n_votes, 'vote')} of {count(results.n_raters, 'person', 'people')}"
    return Verdict(
        said,
        f"{given}, who chose between two models’ images of a prompt without knowing which models these were.",
    )

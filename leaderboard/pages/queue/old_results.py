"""Results of a submission by earlier revisions of benchmarks."""

from __future__ import annotations

from leaderboard.pages.page import Context
from leaderboard.pages.shown.markup import text
from leaderboard.views.changes import moved_address


def old_results_list(context: Context, submission_id: str) -> str:
    """The old results of a submission as a list of links; empty where it has none."""
    found = context.earlier.old_results(submission_id)
    lines = "".join(_old_result(context, submission_id, tag, names) for tag, names in found.items())
    return f'<h3>Earlier results</h3><ul class="as-history">{lines}</ul>' if lines else ""


def _old_result(context: Context, submission_id: str, tag: str, benchmarks: tuple[str, ...]) -> str:
    boards = ", ".join(
        f'<a href="{text(moved_address(name, tag))}">{text(context.cards[name].title)}</a>'
        if name in context.cards and tag in context.earlier.tags(context.cards[name])
        else text(name)
        for name in benchmarks
    )
    command = f"python -m evaluator report {submission_id} --revision {tag}"
    return (
        f"<li><b>{text(tag, limit=80)}</b>: {boards} <code>{text(command, limit=300)}</code></li>"
    )

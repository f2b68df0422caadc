"""Fixed head of each page, for any view."""

from __future__ import annotations

from leaderboard.web.heads.head import Head
from leaderboard.web.page import Page

DESCRIPTIONS = {
    "": "Metrics for text-to-image models, tested against human ratings and known errors: one table "
    "over benchmarks and skills with intervals, rank ranges, tiers and cost.",
    "models": "Text-to-image models compared on the same prompts by qualified metrics and by human "
    "ratings: skills, images, seeds, tests between any two, and where metrics disagree.",
    "model": "One text-to-image model: mean scores by skill and metric with intervals, its images, "
    "its variation over seeds, and how to generate them again.",
    "compare": "Two to four metrics on one benchmark: by how much they differ, how sure that is, "
    "and images where they differ or fail.",
    "metric": "Everything about one metric: its results on all benchmarks, trust checks, cost, "
    "history and citation.",
    "submit": "Submit a metric, its scores, or the images of a model; what is waiting, in work and done.",
    "operators": "Everybody’s submissions, bans and the policy, for the operators of this site.",
    "status": "How the service is doing: its workers, its queue and its store.",
    "ledger": "The public record of everything that was done, chained by hashes.",
    "docs": "Guides for metric authors, model developers and operators; the benchmarks, the methods "
    "and the API.",
    "guide": "A guide to Assay: submit, read the boards, run your own, extend.",
    "benchmark": "A benchmark of text-to-image metrics: its measures, protocol, data and citation.",
    "about": "How metrics are tested here: benchmarks, measures, intervals, ranks and tiers.",
    "errata": "What is wrong in the papers and their data, and how it is dealt with here.",
}
"""Path of a page to a sentence."""


def own_head(page: Page) -> Head:
    """What a page says where there is nothing more to be said."""
    return Head(page.title, DESCRIPTIONS.get(page.path, "Assay tests text-to-image metrics."))

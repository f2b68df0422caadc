"""Fixed head of each page, for any view."""

from __future__ import annotations

from leaderboard.pages.heads.head import Head
from leaderboard.pages.page import Page

DESCRIPTIONS = {
    "": "Metrics for text-to-image models, tested against human ratings and known errors: one table "
    "over benchmarks and skills with intervals, rank ranges, tiers and cost.",
    "boards": "Rankings of text-to-image metrics on each benchmark, with intervals, rank ranges, "
    "tiers and tests between any two of them.",
    "models": "Text-to-image models on the same prompts, judged skill by skill by the metrics that "
    "earned it, with rank ranges, tiers, and where those metrics disagree.",
    "model": "One text-to-image model: its mean scores by skill and metric, its images, how it "
    "varies over seeds, and how it was drawn.",
    "model-pair": "Two text-to-image models on the same prompts: by how much they differ, how sure "
    "that is, and which prompts decide it.",
    "prompt": "One prompt: what every text-to-image model drew of it, by the score of a metric.",
    "seeds": "Whether the order of text-to-image models holds when only the random seed changes.",
    "compare": "Two to four metrics on one benchmark: by how much they differ, how sure that is, "
    "and where they disagree.",
    "items": "The images and prompts behind the figures: where a metric fails and where two of "
    "them disagree.",
    "metric": "Everything about one metric: its results on all benchmarks, trust checks, cost, "
    "history and citation.",
    "submit": "Submit a metric, or its scores, to be tested on the benchmarks.",
    "mine": "What became of your submissions.",
    "queue": "Which submissions are waiting, in work and done.",
    "status": "How the service is doing: its workers, its queue and its store.",
    "ledger": "The public record of everything that was done, chained by hashes.",
    "about": "How metrics are tested here: benchmarks, measures, intervals, ranks and tiers.",
    "errata": "What is wrong in the papers and their data, and how it is dealt with here.",
    "moved": "What moved on a benchmark between two of its revisions.",
}
"""Path of a page to a sentence."""


def own_head(page: Page) -> Head:
    """What a page says where there is nothing more to be said."""
    return Head(page.title, DESCRIPTIONS.get(page.path, "Assay tests text-to-image metrics."))

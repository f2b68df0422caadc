"""People's votes between models' images of a prompt set, as the API tells them."""

from __future__ import annotations

from leaderboard.api.serving import TableRouter
from leaderboard.api.source import Source
from leaderboard.api.tables.models import PromptSet, reader_of
from leaderboard.tables import Table, Type, Value, columns_of
from leaderboard.views.models import PlaceQuery
from leaderboard.votes.results import VotedModel
from leaderboard.votes.revisions import read_results, revision_folder

_COLUMNS = (
    "submission_id", "model", "n_votes", "strength", "strength_low", "strength_high", "win_rate",
    "win_rate_low", "win_rate_high", "rank_low", "rank", "rank_high", "group", "both_bad",
    "both_bad_low", "both_bad_high",
)  # fmt: skip
_TYPES = {
    Type.COUNT: "n_votes rank_low rank rank_high group",
    Type.NUMBER: "strength strength_low strength_high win_rate win_rate_low win_rate_high both_bad "
    "both_bad_low both_bad_high",
}
_MEANINGS = {
    "model": "Name and version when the revision was cut.",
    "n_votes": "Votes that rank of which the model is part.",
    "strength": "Bradley-Terry log odds of being preferred, against the mean of the models.",
    "strength_low": "Lower end of the 95 % interval, clustered by prompt and rater.",
    "strength_high": "Upper end.",
    "win_rate": "Mean chance to be preferred to another model, 0 to 1.",
    "win_rate_low": "Lower end of the 95 % interval.",
    "win_rate_high": "Upper end.",
    "rank_low": "Best rank that the corrected tests leave open.",
    "rank": "By strength, 1 is best.",
    "rank_high": "Worst rank that the tests leave open.",
    "group": "Ranks of two groups say nothing together: their models were never compared.",
    "both_bad": "Share of its votes that called both images bad, 0 to 1.",
    "both_bad_low": "Lower end of the 95 % interval.",
    "both_bad_high": "Upper end.",
}
router = TableRouter()


@router.table("/models/{prompt_set}/votes", of_snapshot=False)
def model_votes(source: Source, prompt_set: PromptSet) -> Table:
    """Strengths of models by people's votes, with intervals and ranks; the latest revision.

    `about.file` is where its votes are in the store. No rows, and `about.missing`, where no revision
    is published.
    """
    card = reader_of(source, prompt_set).prompt_sets[prompt_set].card
    results = read_results(source.store.public, prompt_set)
    about: dict[str, object] = {
        "prompt_set": prompt_set,
        "title": card.title,
        "page": PlaceQuery().to_link(prompt_set=prompt_set, view="votes"),
    }
    rows: list[dict[str, Value]] = []
    if results is None:
        about["missing"] = "No revision of votes on these prompts is published."
    else:
        folder = revision_folder(prompt_set, results.number)
        about |= results.model_dump(mode="json", exclude={"models", "schema_version"})
        about["file"] = f"{folder}votes.parquet"
        rows = [_row(one) for one in results.models]
    return Table(f"{prompt_set}-votes", columns_of(_COLUMNS, _TYPES, _MEANINGS), rows, about)


def _row(one: VotedModel) -> dict[str, Value]:
    same = one.model_dump(include={*_COLUMNS} - {"both_bad"})
    share = one.both_bad
    return {
        **same, "model": one.title, "both_bad": share.value, "both_bad_low": share.low,
        "both_bad_high": share.high,
    }  # fmt: skip

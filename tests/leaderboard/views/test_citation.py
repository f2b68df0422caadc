"""A citation has the exact revision, says whether its figures can be read later, and is mere text."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime

import pytest
import yaml

from leaderboard.publication.reader import Revision
from leaderboard.views.citation import Citation, CitedAt, model_board_citation, model_citation
from leaderboard.views.models import ModelsQuery, resolve
from tests.kit.boards import NASTY
from tests.leaderboard.views.model_track import IDS, SET, filled, source_of

AT = datetime(2026, 3, 1, tzinfo=UTC)
COMMIT, KEPT = "c" * 40, "https://huggingface.co/datasets/lab/assay-results/tree/" + "d" * 40
ON_HUB, IN_FOLDER = Revision(COMMIT, "ab" * 32, AT, KEPT), Revision(COMMIT, "ab" * 32, AT)
SITE = "https://assay.example/"


def cited(revision: Revision, **more: object) -> Citation:
    return Citation(**{"key": "assay-x", "title": "A board", "revision": revision, **more})  # type: ignore[arg-type]


def depths(text: str) -> list[int]:
    return list(itertools.accumulate({"{": 1, "}": -1}.get(char, 0) for char in text))


def test_the_exact_revision_is_in_every_form_and_leads_to_the_same_figures_where_there_is_history() -> (
    None
):
    cite = cited(ON_HUB, address=f"{SITE}x")
    for text in (cite.plain(), cite.bibtex(), cite.cff()):
        assert COMMIT in text and "2026-03-01" in text and f"{SITE}x" in text
    assert KEPT in cite.plain() and KEPT.replace("_", r"\_") in cite.bibtex()
    found = yaml.safe_load(cite.cff())
    assert found["identifiers"][0]["value"] == KEPT and found["version"] == COMMIT


def test_a_store_without_history_says_that_its_page_may_show_other_figures() -> None:
    for text in (cited(IN_FOLDER).plain(), cited(IN_FOLDER).bibtex(), cited(IN_FOLDER).cff()):
        assert "keeps no history" in " ".join(text.split()) and COMMIT in text
    assert "identifiers" not in yaml.safe_load(cited(IN_FOLDER).cff())
    assert cited(Revision()).stated_revision == "" and "not dated" in cited(Revision()).plain()


@pytest.mark.parametrize("name", [NASTY, "x}, url = {https://example.org", "\\", "%", ""])
def test_no_name_ends_a_field_or_becomes_markup(name: str) -> None:
    cite = cited(IN_FOLDER, authors=(name,), title=f"Of {name}", work=name)
    found = depths(cite.bibtex())
    assert min(found) >= 0 and found[-1] == 0
    read = yaml.safe_load(cite.cff())
    assert read["cff-version"] == "1.2.0" and read["authors"][0]["name"]
    assert "\u202e" not in cite.plain() + cite.bibtex() + cite.cff()


def test_a_model_and_its_board_are_cited_with_what_they_were_made_of() -> None:
    source = source_of(filled(2))
    at = CitedAt(source.reader.revision(), SITE)
    choice = resolve(ModelsQuery(SET), source.model_reader, source.reader.view())
    assert choice is not None and at.revision.commit
    entry = choice.entries[0]
    model = model_citation(entry, choice.card, at).plain()
    board = model_board_citation(choice, "./models?set=x", at).plain()
    assert f"{SITE}model?id={IDS[0]}" in model and entry.title in model
    assert f"{SITE}models?set=x" in board and choice.card.revision in board
    assert at.revision.commit in model and at.revision.commit in board

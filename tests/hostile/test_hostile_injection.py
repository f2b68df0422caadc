"""Text of a submission is text wherever it is shown, and says what it said as far as it can be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.errors import SubmitterError
from leaderboard.accounts import Account, Origin
from tests.hostile.case import Case, Category
from tests.hostile.corpus import of
from tests.hostile.corpus.injection import (
    ALL,
    BAD_LINKS,
    BAD_NAMES,
    HTML,
    UNSEEN,
    manifest_describing,
    manifest_linking,
    manifest_named,
)
from tests.hostile.corpus.texts import honest
from tests.hostile.judgement import let_loose
from tests.hostile.proving_ground import BENCHMARK, Ground
from tests.hostile.rendered import (
    formulas,
    pages,
    read_as_html,
    spreadsheet,
    terminals,
    unseen_characters,
)

pytestmark = [pytest.mark.isolation, pytest.mark.slow]

MALLORY = Account(origin=Origin.LOCAL, name="mallory")


@pytest.mark.parametrize("case", of(Category.INJECTION), ids=lambda case: case.name)
def test_text_of_a_submission_stays_text(ground: Ground, case: Case) -> None:
    outcome = let_loose(ground, case)
    submission_id = outcome.status.submission.submission_id
    for name, page in pages(ground, submission_id).items():
        lively, _ = read_as_html(page)
        assert not lively, (name, lively)
        assert not unseen_characters(page), (name, unseen_characters(page))
        assert not any(mark in page for mark in ("{{", "{%", "${")), name
    for name, printed in terminals(ground, submission_id).items():
        assert not unseen_characters(printed), (name, unseen_characters(printed))
        forged = [line for line in printed.splitlines() if line.startswith("1999-")]
        assert not forged, (name, forged)
    assert not list(formulas(spreadsheet(ground)))


def test_an_error_can_be_read_as_it_was_written(ground: Ground) -> None:
    (case,) = (c for c in of(Category.INJECTION) if c.name == "HTML in an error")
    outcome = ground.run(case)
    submission_id = outcome.status.submission.submission_id
    for name in ("history", "queue"):
        _, text = read_as_html(pages(ground, submission_id)[name])
        assert HTML in text
    assert HTML[:40] in terminals(ground, submission_id)["logs"]


def test_terminal_markup_in_an_error_is_printed_and_not_obeyed(ground: Ground) -> None:
    (case,) = (c for c in of(Category.INJECTION) if c.name == "terminal markup in an error")
    outcome = ground.run(case)
    printed = terminals(ground, outcome.status.submission.submission_id)["logs"]
    assert "[link=https://example.org]click[/link] [red] [/no such tag]" in printed


@pytest.mark.parametrize("what", BAD_NAMES)
def test_a_metric_is_not_named_by_what_a_board_cannot_show(
    ground: Ground, tmp_path: Path, what: str
) -> None:
    head = ground.store.public.head()
    (tmp_path / "assay.toml").write_text(manifest_named(BAD_NAMES[what]))
    (tmp_path / "scorer.py").write_text(honest(0.0))
    with pytest.raises(SubmitterError) as caught:
        ground.submit(tmp_path)
    assert caught.value.code == "bad_manifest"
    assert "name" in caught.value.message
    assert ground.store.public.head() == head


@pytest.mark.parametrize("what", UNSEEN)
def test_unseen_characters_in_a_manifest_are_named_and_not_repeated(
    ground: Ground, tmp_path: Path, what: str
) -> None:
    (tmp_path / "assay.toml").write_text(manifest_describing(ALL[what]))
    (tmp_path / "scorer.py").write_text(honest(0.0))
    with pytest.raises(SubmitterError) as caught:
        ground.submit(tmp_path)
    assert caught.value.code == "several_problems"
    assert "invisible character U+" in caught.value.message
    assert not unseen_characters(str(caught.value))


@pytest.mark.parametrize("what", BAD_LINKS)
def test_a_link_leads_to_a_web_page_or_is_refused(
    ground: Ground, tmp_path: Path, what: str
) -> None:
    (tmp_path / "assay.toml").write_text(manifest_linking(BAD_LINKS[what]))
    (tmp_path / "scorer.py").write_text(honest(0.0))
    with pytest.raises(SubmitterError) as caught:
        ground.submit(tmp_path)
    assert caught.value.code == "bad_manifest"
    assert "links" in caught.value.message


def _scores(header: str) -> bytes:
    return f"pair_id,{header}\na,1\nb,2\nc,3\n".encode()


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


REFUSED_SCORES: dict[str, tuple[bytes, str]] = {
    **{
        f"a column named by {what}": (_scores(f"{_quoted(name)},b"), "")
        for what, name in BAD_NAMES.items()
    },
    **{f"a title of {what}": (_scores("score"), name) for what, name in BAD_NAMES.items() if name},
    "a cell of HTML": (f"pair_id,m\na,{_quoted(HTML)}\nb,1\nc,2\n".encode(), ""),
    "a formula for a score": (b"pair_id,m\na,=1+1\nb,1\nc,2\n", ""),
    "an infinite score": (b"pair_id,m\na,inf\nb,1\nc,2\n", ""),
}
"""Content of a file and the title it is given."""


@pytest.mark.parametrize("what", REFUSED_SCORES)
def test_a_scores_file_with_odd_names_or_cells_is_refused(
    ground: Ground, tmp_path: Path, what: str
) -> None:
    content, title = REFUSED_SCORES[what]
    path = tmp_path / "scores.csv"
    path.write_bytes(content)
    head = ground.store.public.head()
    with pytest.raises(SubmitterError) as caught:
        ground.desk.submit_scores(path, benchmark=BENCHMARK, account=MALLORY, name=title)
    assert caught.value.hint
    assert ground.store.public.head() == head


@pytest.mark.parametrize("what", ALL)
def test_the_name_of_a_file_is_no_way_in(ground: Ground, tmp_path: Path, what: str) -> None:
    name = "".join(c for c in ALL[what] if c not in "/\0")[:60]
    path = tmp_path / f"{name}.csv"
    path.write_bytes(_scores("score"))
    status = ground.desk.submit_scores(path, benchmark=BENCHMARK, account=MALLORY).status
    assert ground.worker.run_next()
    shown = pages(ground, status.submission.submission_id)
    assert [read_as_html(page)[0] for page in shown.values()] == [[], [], []]
    assert not list(formulas(spreadsheet(ground)))

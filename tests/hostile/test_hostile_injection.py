"""Text of a submission is text wherever it is shown, and says what it said as far as it can be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.errors import SubmitterError
from leaderboard.accounts import Account, Origin
from leaderboard.submission_service import ScoresForm
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


READ_AS = {
    "HTML in an error": {"history": HTML, "queue": HTML, "logs": HTML[:40]},
    "terminal markup in an error": {
        "logs": "[link=https://example.org]click[/link] [red] [/no such tag]"
    },
}
"""Cases to what a page or a command must show of them, as it was written."""


@pytest.mark.parametrize("case", of(Category.INJECTION), ids=lambda case: case.name)
def test_text_of_a_submission_stays_text_and_can_be_read(ground: Ground, case: Case) -> None:
    outcome = let_loose(ground, case)
    submission_id = outcome.status.submission.submission_id
    read = dict(terminals(ground, submission_id))
    for name, printed in read.items():
        assert not unseen_characters(printed), (name, unseen_characters(printed))
        forged = [line for line in printed.splitlines() if line.startswith("1999-")]
        assert not forged, (name, forged)
    for name, page in pages(ground, submission_id).items():
        lively, read[name] = read_as_html(page)
        assert not lively, (name, lively)
        assert not unseen_characters(page), (name, unseen_characters(page))
        assert not any(mark in page for mark in ("{{", "{%", "${")), name
    assert not list(formulas(spreadsheet(ground)))
    for name, text in READ_AS.get(case.name, {}).items():
        assert text in read[name]


REFUSED_MANIFESTS = {
    **{f"a name: {k}": (manifest_named(v), "bad_manifest", "name") for k, v in BAD_NAMES.items()},
    **{
        f"a description: {kind}": (
            manifest_describing(ALL[kind]), "several_problems", "invisible character U+",
        )
        for kind in UNSEEN
    },
    **{
        f"a link: {kind}": (manifest_linking(address), "bad_manifest", "links")
        for kind, address in BAD_LINKS.items()
    },
}  # fmt: skip
"""Manifest, the code of its refusal, and what the message says."""


@pytest.mark.parametrize("what", REFUSED_MANIFESTS)
def test_a_manifest_that_a_board_cannot_show_is_refused_and_not_repeated(
    ground: Ground, tmp_path: Path, what: str
) -> None:
    manifest, code, says = REFUSED_MANIFESTS[what]
    head = ground.store.public.head()
    (tmp_path / "assay.toml").write_text(manifest)
    (tmp_path / "scorer.py").write_text(honest(0.0))
    with pytest.raises(SubmitterError) as caught:
        ground.submit(tmp_path)
    assert caught.value.code == code
    assert says in caught.value.message
    assert not unseen_characters(str(caught.value))
    assert ground.store.public.head() == head


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
        ground.desk.submit_scores(path, ScoresForm(BENCHMARK, title), account=MALLORY)
    assert caught.value.hint
    assert ground.store.public.head() == head


@pytest.mark.parametrize("what", ALL)
def test_the_name_of_a_file_is_no_way_in(ground: Ground, tmp_path: Path, what: str) -> None:
    name = "".join(c for c in ALL[what] if c not in "/\0")[:60]
    path = tmp_path / f"{name}.csv"
    path.write_bytes(_scores("score"))
    status = ground.desk.submit_scores(path, ScoresForm(BENCHMARK), account=MALLORY).status
    assert ground.worker.run_next()
    shown = pages(ground, status.submission.submission_id)
    assert [read_as_html(page)[0] for page in shown.values()] == [[], [], []]
    assert not list(formulas(spreadsheet(ground)))

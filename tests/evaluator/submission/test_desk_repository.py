"""The desk fetches a repository of the Hub that somebody names, and sends no token for them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.errors import SubmitterError
from evaluator.submission.archives.limits import ArchiveLimits
from evaluator.submission.receiving import desk as desk_module
from evaluator.submission.receiving.desk import SubmissionDesk
from leaderboard.governance.bans import Ban, bans_file
from leaderboard.ledger.ledger import Ledger
from tests.evaluator.rig import ADA, BOB, MODULE, Rig
from tests.evaluator.scorers.model_repositories import hub_of_models
from tests.hub.server import HubServer

REPO = "ada/metric"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    with hub_of_models(monkeypatch) as state:
        yield state


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


def desk_of(rig: Rig, hub: HubServer) -> SubmissionDesk:
    scratch = rig.folder / "unpacked"
    scratch.mkdir()
    return replace(rig.desk, hub=hub.endpoint, scratch=scratch)


def fetched(hub: HubServer) -> list[str]:
    """What was asked of the Hub."""
    return [request.target for request in hub.served]


@pytest.mark.parametrize("named", [REPO, f"{REPO}@main", f"hub:{REPO}", f"datasets/{REPO}"])
def test_a_repository_is_queued_and_its_commit_recorded(
    rig: Rig, hub: HubServer, named: str
) -> None:
    sha = hub.add(REPO, MODULE).branches["main"]
    desk = desk_of(rig, hub)
    status = desk.submit_repository(named, account=ADA, submitter="A group").status
    kind = "datasets/" if named.startswith("datasets/") else ""
    own = Ledger(rig.store).whole(status.submission.submission_id)
    assert (own.source, own.account, own.submitter) == (
        f"hub:{kind}{REPO}@{sha}", ADA.key, "A group",
    )  # fmt: skip
    assert list((rig.folder / "unpacked").iterdir()) == []


def test_a_repository_and_the_same_archive_are_the_same_content(rig: Rig, hub: HubServer) -> None:
    hub.add(REPO, MODULE)
    first = rig.send()
    again = desk_of(rig, hub).submit_repository(REPO, account=ADA)
    assert again.recognised
    assert again.status.submission.submission_id == first.submission.submission_id


def test_a_check_lists_what_is_wrong_with_a_repository_and_keeps_nothing(
    rig: Rig, hub: HubServer
) -> None:
    hub.add(REPO, {"assay.toml": b'name = "grey"\nnonsense = 1\n', "model.pkl": b"x"})
    desk, before = desk_of(rig, hub), rig.store.private.head()
    problems = desk.examine_repository(REPO).problems
    assert {problem.file for problem in problems} >= {"assay.toml", "model.pkl"}
    assert rig.store.private.head() == before
    hub.add("ada/good", MODULE)
    assert desk.examine_repository("ada/good").problems == ()


def test_what_is_private_to_the_operators_token_is_not_fetched(
    rig: Rig, hub: HubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.add(REPO, MODULE).private = True
    monkeypatch.setenv("HF_TOKEN", hub.token)
    desk = desk_of(rig, hub)
    for act in (
        lambda: desk.examine_repository(REPO),
        lambda: desk.submit_repository(REPO, account=BOB),
    ):
        with pytest.raises(SubmitterError) as caught:
            act()
        assert caught.value.code == "repository_missing"
    assert {request.token for request in hub.served} == {""}


def test_who_may_send_nothing_has_nothing_fetched(rig: Rig, hub: HubServer) -> None:
    hub.add(REPO, MODULE)
    desk = desk_of(rig, hub)
    ban = Ban(account=ADA.key, reason="Spam.", by="hub:root", at=rig.clock())
    rig.store.public.commit(
        bans_file({ADA.key: ban}), parent=rig.store.public.head(), message="ban"
    )
    with pytest.raises(SubmitterError) as caught:
        desk.submit_repository(REPO, account=ADA)
    assert caught.value.code == "banned"
    rig.isolated = False
    with pytest.raises(SubmitterError) as caught:
        replace(rig.desk, hub=hub.endpoint).submit_repository(REPO, account=BOB)
    assert caught.value.code == "code_refused"
    assert fetched(hub) == []


def test_the_limits_of_archives_hold_before_anything_is_fetched(
    rig: Rig, hub: HubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desk_module, "ArchiveLimits", lambda: ArchiveLimits(entries=1))
    hub.add(REPO, MODULE)
    with pytest.raises(SubmitterError) as caught:
        desk_of(rig, hub).submit_repository(REPO, account=ADA)
    assert caught.value.code == "too_many_files"
    assert not [target for target in fetched(hub) if "/resolve/" in target]


@pytest.mark.parametrize("named", ["", "grey", "../etc", "https://example.org/a/b", "a/b@x y"])
def test_what_names_no_repository_is_refused_with_the_way_to_write_one(
    rig: Rig, hub: HubServer, named: str
) -> None:
    with pytest.raises(SubmitterError, match="does not name a repository") as caught:
        desk_of(rig, hub).examine_repository(named)
    assert caught.value.code == "bad_source"
    assert fetched(hub) == []

"""Nothing of a private submission is public: who, what, how it went wrong."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from pydantic import BaseModel

from benchmarks.errors import PlatformError
from leaderboard.ledger.audit_log import read_lines, verify
from leaderboard.ledger.ledger import Ledger
from leaderboard.ledger.private_records import (
    BANNED,
    PRIVATE_ID,
    private_id,
    public_events,
    public_record,
    whole_events,
)  # fmt: skip
from leaderboard.records import ImagesSeen, ModelCard, Receipt, Submission
from leaderboard.states import State
from tests.kit.governed import ADA, OLGA, T0, House, everything
from tests.kit.records import an_event
from tests.kit.store import counted, memory_store

SECRETS: dict[str, object] = {
    "name": "secretmetric",
    "version": "7.7.7-secretversion",
    "metrics": ("secretmetric",),
    "metric_benchmarks": {"secretmetric": ("open", "closed")},
    "submitter": "Secret Submitter",
    "description": "A secretdescription.",
    "authors": ("Secret Author",),
    "licence": "secretlicence",
    "links": {"code": "https://secretlink.example"},
    "lower_is_better": ("secretmetric",),
    "trained_on": ("secrettraining",),
    "method": "compare",
    "environment": f"secretenvironment@{'c' * 64}",
    "flops_per_pair": {"secretmetric": 5.551212e10},
    "same_content_as": ("secretother-0000000000",),
    "models": (f"secretowner/secretmodel@{'a' * 40}",),
    "template": "secrettemplate",
    "released_with": "Secret: A secretpaper. 2026.",
    "source": f"hub:secretowner/secretrepo@{'b' * 40}",
    "entry_point": "secretfile:SecretClass",
    "weights": "secretweights.safetensors",
    "archive": "uploads/secretarchive.zip",
    "content_sha256": "5ec7e7" * 10 + "5ec7",
    "receipt": Receipt(
        content_sha256="5ec7e7" * 10 + "5ec7",
        versions={"secretpackage": "1.2.3"},
        isolation=("secretlayer",),
        benchmark="secretbenchmark",
        pairs=987654,
        scores_sha256="5ec7e7" * 10 + "5ec7",
        checked_at=T0,
    ),
    "model_card": ModelCard(model="secretowner/secretpainter", selected_by="secretjudge"),
    "images": ImagesSeen(
        prompt_set="secretprompts", revision="secretrevision", seeds=(555121,), wanted=1, present=1
    ),
}


def leaks(content: bytes) -> list[str]:
    lower = content.lower()
    words = [word for word in ("secret", "5ec7e7", "7.7.7", "987654") if word.encode() in lower]
    return [*words, *(["ada"] if b'"ada' in lower or b"hub:ada" in lower else [])]


def send(house: House, *, claimed: bool = True) -> str:
    more: dict[str, Any] = {key: value for key, value in SECRETS.items() if key != "name"}
    name = house.send(name="secretmetric", private=True, **more)
    if claimed:
        house.claim(name)
    return name


def failed(house: House, reason: str = "It broke.", **more: str) -> str:
    name = house.send(private=True)
    house.claim(name)
    house.fail(name, reason, **more)
    return name


def test_every_field_that_tells_of_an_author_is_a_secret_of_the_test() -> None:
    plain = {"schema_version", "submission_id", "kind", "benchmarks", "account", "private"}
    assert set(SECRETS) == set(Submission.model_fields) - plain - {"received_at"}


def test_the_public_repository_says_nothing_of_a_private_submission_in_any_state() -> None:
    store, recorder, _ = counted(memory_store())
    house = House(store)
    name = send(house)
    more = {"reason": "secretreason", "hint": "secret", "code": "disk_full", "fault": "world"}
    house.ledger.append(name, [an_event(State.QUEUED, "w1", house.clock(), **more)])
    house.claim(name)
    house.fail(name, "Traceback: secretfile.py", log="secretlog")
    house.acts.rerun(name, OLGA, "secretrerun")
    house.claim(name)
    house.finish(name, log="secretlog")
    house.acts.hide(name, OLGA, "secrethide")
    house.acts.show(name, OLGA, "secretshow")
    house.acts.withdraw(name, ADA, "secretwithdrawal")
    second = send(house, claimed=False)
    house.acts.ban(ADA.key, OLGA, "For reasons.")
    assert house.state(second) is State.QUEUED
    house.claim(second)
    house.fail(second, "hub:ada was banned: For reasons.", code=BANNED)
    house.acts.unban(ADA.key, OLGA, "For others.")
    public, messages = everything(store.public), " ".join(recorder.messages).encode()
    for text in (public, messages):
        assert leaks(text.replace(b"hub:ada", b"")) == []  # The ban itself is public.
    own = [store.public.read(p) for p in store.public.list(f"submissions/{second}/")]
    assert b"banned" not in b"".join(own)
    assert name.encode() in public
    assert b"disk_full" in public  # What a reader of the queue is told.
    assert verify(house.store.public) == ()


def test_the_same_search_finds_all_of_it_once_its_author_publishes(house: House) -> None:
    name = send(house)
    house.finish(name)
    assert leaks(everything(house.store.public)) == []
    house.acts.publish(name, ADA)
    assert leaks(everything(house.store.public)) == ["secret", "5ec7e7", "7.7.7", "987654", "ada"]


def test_what_was_said_while_it_was_private_stays_so_when_it_is_published(house: House) -> None:
    name = failed(house, "secretreason", log="secretlog")
    house.acts.rerun(name, OLGA, "Once more.")
    house.claim(name)
    house.finish(name, log="secretlog")
    house.acts.publish(name, ADA)
    assert leaks(everything(house.store.public)) == ["ada"]
    assert [e.log for e in house.ledger.whole_events(name) if e.log] == ["secretlog"] * 2
    assert verify(house.store.public) == ()


def test_how_its_authors_work_failed_is_not_public(house: House) -> None:
    name = failed(house, "Out of memory.", code="out_of_memory")
    assert [e.code for e in house.ledger.events(name)] == [""] * 5
    assert house.ledger.whole_status(name).code == "out_of_memory"


def test_a_failure_whose_code_was_public_once_still_has_its_reason(house: House) -> None:
    name = failed(house)
    whole, record = house.ledger.whole_events(name), house.ledger.whole(name)
    *before, last = public_events(record, whole)
    older = [*before, last.model_copy(update={"code": "scorer_failed"})]
    assert whole_events(record, older, [whole[-1]])[-1].reason == "It broke."


def test_whoever_may_see_it_whole_finds_every_field_and_reason_again(house: House) -> None:
    name = send(house)
    house.fail(name, "It broke.", log="Traceback")
    fresh = Ledger(house.store)
    plain = {k: v.model_dump() if isinstance(v, BaseModel) else v for k, v in SECRETS.items()}
    assert fresh.whole(name).model_dump(include=set(SECRETS)) == plain
    status, events = fresh.whole_status(name), fresh.whole_events(name)
    assert (status.submission.account, status.reason) == (ADA.key, "It broke.")
    assert events[-1].log == "Traceback"
    assert [e.state for e in events] == [e.state for e in fresh.events(name)]
    assert fresh.upload(fresh.whole(name)).startswith(b"upload")


def test_details_of_an_attempt_that_lost_its_race_are_not_shown(house: House) -> None:
    name = house.send(private=True)
    house.claim(name)
    lost = an_event(State.FAILED, "w2", house.clock(), reason="Another's.")
    house.ledger._held.keep_details(house.ledger.whole(name), house.ledger.events(name), [lost])
    house.fail(name, "Its own.")
    assert [e.reason for e in house.ledger.whole_events(name) if e.reason] == ["Its own."]


def test_a_worker_finds_its_own_lease_in_the_public_state(house: House) -> None:
    name = house.send(private=True)
    house.claim(name)
    status = house.ledger.status(name)
    assert (status.by, status.lease_until is None) == ("w1", False)
    assert [status.expired(T0 + timedelta(hours=hours)) for hours in (1, 9)] == [False, True]


def test_ids_are_random_and_of_one_form_and_tell_nothing(house: House) -> None:
    ids = {private_id() for _ in range(100)}
    assert len(ids) == 100
    assert all(PRIVATE_ID.fullmatch(one) for one in ids)
    assert private_id(lambda n: "ab" * n) == "private-ababababab"
    with pytest.raises(PlatformError, match="no id"):
        house.send(private=True, submission_id="secretmetric-0123456789")
    assert house.store.public.list() == house.store.private.list() == ()


def test_a_public_record_is_itself(house: House) -> None:
    public = house.ledger.whole(house.send())
    assert public_record(public) is public
    assert {line.by for line in read_lines(house.store.public, public.submission_id)} == {"ada"}

"""What any release wrote can be read: a file of each kind and version, and whole stores."""

from __future__ import annotations

import json
import zipfile
from datetime import timedelta
from pathlib import Path

import pytest
from pydantic import BaseModel

from benchmarks.errors import SubmitterError
from leaderboard.ledger.audit_log import read_lines, verify
from leaderboard.ledger.cleanup import tidy_all
from leaderboard.ledger.ledger import Ledger
from leaderboard.ledger.policy import read_bans, read_policy
from leaderboard.ledger.private_records import read_marks
from leaderboard.publication.results import read_results
from leaderboard.states import State
from leaderboard.store.folder import folder_store
from tests.kit.governed import ADA, BOB, OLGA, House, Ticking
from tests.leaderboard.golden.kinds import FIELDS, KINDS, golden_files

RECORDED = json.loads(FIELDS.read_text())
EVERY = [(kind, path) for kind in KINDS for path in golden_files(kind)]
WHAT_TO_DO = """Stores have records without that change of what is stored, so:
1. Give a new field a default. For any other change raise `schema_version`, and read older ones too.
2. Give the field a value of its own in tests/leaderboard/golden/samples.py.
3. Write the new golden file: python -m tests.leaderboard.golden.write LABEL
   (the label of the release). Never change a file of an earlier release.
"""
each_kind = pytest.mark.parametrize("kind", KINDS)


# Records
@pytest.mark.parametrize(("kind", "path"), EVERY, ids=[f"{k}-{p.stem}" for k, p in EVERY])
def test_what_any_release_wrote_is_read(kind: str, path: Path) -> None:
    content = path.read_bytes()
    records = KINDS[kind].read(content)
    assert records
    assert all(isinstance(record, KINDS[kind].model) for record in records)
    read = [record.model_dump(mode="json") for record in records]
    assert said(as_json(path, content)) - said(read) == set()  # Nothing of it is passed over.


@each_kind
def test_no_model_changes_without_a_golden_file_of_it(kind: str) -> None:
    assert KINDS[kind].fields() == RECORDED[kind]["fields"], WHAT_TO_DO


@each_kind
def test_the_newest_golden_file_is_what_is_written_now(kind: str) -> None:
    newest = golden_files(kind)[-1]
    assert newest.name == RECORDED[kind]["file"]
    written = KINDS[kind].write(KINDS[kind].a_record())
    assert KINDS[kind].legible(written) == KINDS[kind].legible(newest.read_bytes())


@each_kind
def test_each_field_of_a_sample_says_something(kind: str) -> None:
    assert silent(KINDS[kind].a_record()) == []


def as_json(path: Path, content: bytes) -> object:
    """The file as JSON; nothing of a table, which is compared elsewhere."""
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in content.splitlines()]
    return json.loads(content) if path.suffix == ".json" else []


def said(value: object) -> set[str]:
    """All plain values within a value, as text."""
    if isinstance(value, dict | list):
        inner = value.values() if isinstance(value, dict) else value
        return set().union(*map(said, inner))
    return {str(value).replace("+00:00", "Z")} - {"", "None"}


def silent(record: BaseModel, within: str = "") -> list[str]:
    """Fields that are as if nobody had given them."""
    found: list[str] = []
    for name, field in type(record).model_fields.items():
        value, at = getattr(record, name), f"{within}{type(record).__name__}.{name}"
        optional = not field.is_required() and name not in ("schema_version", "private")
        if optional and value == field.get_default(call_default_factory=True):
            found.append(at)
        inner = value if isinstance(value, tuple | list) else [value]
        inner = [*value.values()] if isinstance(value, dict) else inner
        found += [s for each in inner if isinstance(each, BaseModel) for s in silent(each, at)]
    return found


# Whole stores
BEFORE_HUB = {
    "grey-f42ac9eceb": State.SUPERSEDED,
    "grey-5dece6e577": State.PUBLISHED,
    "private-0000000001": State.HELD,
    "private-0000000002": State.PUBLISHED,
    "black-7c6ff8a6e8": State.FAILED,
    "white-c1bba102c2": State.HIDDEN,
    "red-d0254a1642": State.WITHDRAWN,
    "sent-b8f71269ec": State.QUEUED,
    "work-c1ffd68b0e": State.SCORING,
}
"""As the release before stores on the Hub left it: its queue and its snapshot are JSON."""


@pytest.fixture
def house(tmp_path: Path) -> House:
    with zipfile.ZipFile(Path(__file__).parent / "stores/before-hub.zip") as archive:
        archive.extractall(tmp_path)
    clock = Ticking()
    clock.time += timedelta(days=1)
    return House(store=folder_store(tmp_path), clock=clock)


def states(house: House) -> dict[str, State]:
    return {s.submission.submission_id: s.state for s in house.ledger.statuses()}


def test_everything_submitted_found_banned_and_marked_is_there(house: House) -> None:
    assert states(house) == BEFORE_HUB
    assert verify(house.store.public) == ()
    whole = house.ledger.whole("private-0000000001")
    assert (whole.name, whole.account) == ("blue", BOB.key)
    assert "Traceback" in house.ledger.whole_events("black-7c6ff8a6e8")[-1].log
    for name in ("grey-5dece6e577", "private-0000000001", "private-0000000002"):
        results = read_results(house.store, house.ledger.whole(name))
        assert [result.benchmark for result in results] == ["open", "closed"]
        assert {row["value"] for result in results for row in result.rows} == {0.5}
    assert [ban.reason for ban in read_bans(house.store.public).values()] == ["Spam «again»."]
    assert read_policy(house.store.public).period_days == 3
    assert list(read_marks(house.store.private)) == ["uploads/left.zip"]
    sent = "sent-b8f71269ec"
    with pytest.raises(SubmitterError, match="exists"):  # still refused a second time
        house.ledger.receive(house.ledger.whole(sent), b"upload", house.ledger.events(sent))


def test_its_boards_are_shown_as_they_were_and_with_the_next_publication(house: House) -> None:
    before = {"grey-5dece6e577", "private-0000000002"}
    assert house.shown() == before
    house.done(BOB, "new")
    assert house.store.public.list("snapshot") == ("snapshot.parquet",)
    (new,) = house.shown() - before
    assert new == house.ledger.statuses()[-1].submission.submission_id
    assert house.shown() >= before


def test_what_it_had_begun_goes_on(house: House) -> None:
    lines = len(read_lines(house.store.public))
    house.claim("sent-b8f71269ec")
    assert house.store.public.list("queue") == ("queue.parquet",)
    assert [s.state for s in Ledger(house.store).statuses()].count(State.SCORING) == 2
    house.finish("work-c1ffd68b0e")
    house.acts.publish("private-0000000001", BOB)
    house.acts.show("white-c1bba102c2", OLGA)
    house.acts.withdraw("grey-5dece6e577", ADA)
    tidy_all(house.store)
    published = ("work-c1ffd68b0e", "private-0000000001", "white-c1bba102c2", "grey-f42ac9eceb")
    found = states(house)
    assert found == {
        **BEFORE_HUB,
        **dict.fromkeys(published, State.PUBLISHED),
        "sent-b8f71269ec": State.SCORING,
        "grey-5dece6e577": State.WITHDRAWN,
    }
    assert house.shown() == {n for n, state in found.items() if state is State.PUBLISHED}
    assert len(read_lines(house.store.public)) == lines + 9
    assert verify(house.store.public) == ()

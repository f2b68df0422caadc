"""What any release wrote can be read: one file of each kind and version stands for all of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic import BaseModel, ConfigDict

from tests.leaderboard.golden.kinds import FIELDS, KINDS, Kind, golden_files

RECORDED = json.loads(FIELDS.read_text())
EVERY = [(kind, path) for kind in KINDS for path in golden_files(kind)]
WHAT_TO_DO = """
{what} of what is stored as {kind!r}. Stores have records without that change, so:
1. Give a new field a default. For any other change raise `schema_version`, and read older ones too.
2. Give the field a value of its own in tests/leaderboard/golden/samples.py.
3. Write the new golden file: python -m tests.leaderboard.golden.write LABEL
   (the label of the release). Never change a file of an earlier release.
"""


def changes(kind: str, recorded: dict[str, object], now: dict[str, object]) -> str:
    """What has changed since the newest golden file, and what to do; empty if nothing has."""
    new, gone = sorted(now.keys() - recorded.keys()), sorted(recorded.keys() - now.keys())
    other = sorted(name for name in now.keys() & recorded.keys() if now[name] != recorded[name])
    said = [
        f"{', '.join(names)} {word}"
        for word, names in (("is new", new), ("is gone", gone), ("has changed", other))
        if names
    ]
    return WHAT_TO_DO.format(what="; ".join(said), kind=kind) if said else ""


@pytest.mark.parametrize(("kind", "path"), EVERY, ids=[f"{k}-{p.stem}" for k, p in EVERY])
def test_what_any_release_wrote_is_read(kind: str, path: Path) -> None:
    content = path.read_bytes()
    records = KINDS[kind].read(content)
    assert records
    assert all(isinstance(record, KINDS[kind].model) for record in records)
    read = [record.model_dump(mode="json") for record in records]
    assert said(as_json(path, content)) - said(read) == set()  # Nothing of it is passed over.


@pytest.mark.parametrize("kind", KINDS)
def test_no_model_changes_without_a_golden_file_of_it(kind: str) -> None:
    message = changes(kind, RECORDED[kind]["fields"], KINDS[kind].fields())
    assert not message, message


@pytest.mark.parametrize("kind", KINDS)
def test_the_newest_golden_file_is_what_is_written_now(kind: str) -> None:
    newest = golden_files(kind)[-1]
    assert newest.name == RECORDED[kind]["file"]
    written = KINDS[kind].write(KINDS[kind].a_record())
    assert KINDS[kind].legible(written) == KINDS[kind].legible(newest.read_bytes())


@pytest.mark.parametrize("kind", KINDS)
def test_each_field_of_a_sample_says_something(kind: str) -> None:
    assert silent(KINDS[kind].a_record()) == []


def test_a_changed_model_is_told_with_what_to_do() -> None:
    class Before(BaseModel):
        kept: int
        gone: str
        other: int

    class Now(BaseModel):
        model_config = ConfigDict(title="Before")

        kept: int
        other: str
        new: int = 0

    before, now = (Kind(model, {}, bytes, lambda _: []).fields() for model in (Before, Now))
    renamed = {name.replace("Now.", "Before."): field for name, field in now.items()}
    message = changes("event", before, renamed)
    assert "Before.new is new; Before.gone is gone; Before.other has changed" in message
    assert "tests.leaderboard.golden.write" in message
    assert changes("event", before, before) == ""


# Helpers.


def as_json(path: Path, content: bytes) -> object:
    """The file as JSON; nothing of a table, which is compared elsewhere."""
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in content.splitlines()]
    return json.loads(content) if path.suffix == ".json" else []


def said(value: object) -> set[str]:
    """All plain values within a value, as text."""
    if isinstance(value, dict):
        return set().union(*map(said, value.values())) if value else set()
    if isinstance(value, list):
        return set().union(*map(said, value)) if value else set()
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

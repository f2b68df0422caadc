"""The snapshot: who has a rank, what a board never mixes, and the file: exact, read by slices."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.errors import PlatformError
from benchmarks.rows import Row
from benchmarks.schema import Card, Selector
from leaderboard.publication import snapshot as snapshots
from leaderboard.publication.publisher import build_snapshot
from leaderboard.publication.results import Origin, Published, RunOrigin
from leaderboard.publication.snapshot import (
    OLD_PATH,
    PATH,
    Board,
    Snapshot,
    parse_old_snapshot,
    parse_snapshot,
    read_snapshot,
    snapshot_bytes,
    snapshot_changes,
)
from leaderboard.ranking.cells import Cell, best_first
from leaderboard.ranking.draws import Draws
from leaderboard.records import Kind, RunResult
from leaderboard.trust import Check, TrustReport
from tests.kit.boards import cards, snapshot
from tests.kit.records import a_submission
from tests.kit.refusals import refused
from tests.kit.store import memory_store
from tests.kit.toy import Toy

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CARD: Card = Toy.card


def run(
    name: str, value: float, revision: str = "1", *,
    n_clusters: int = 50, n_missing: int = 0, trust: TrustReport | None = None,
) -> Published:  # fmt: skip
    counts = {"n_items": 100, "n_clusters": n_clusters, "n_missing": n_missing}
    told = {"benchmark": "toy", "revision": revision}
    row = Row(**told, **counts, metric=name, measure="mean", value=value)  # type: ignore[arg-type]
    submission = a_submission(name, kind=Kind.SCORES, submission_id=f"{name}-00000000")
    result = RunResult(
        submission_id=submission.submission_id, benchmark="toy", revision=revision,
        rows=(row.to_json(),), resampling_seed=1, n_resamples=10, isolation=(), versions={},
        trust=trust, judged_at=NOW,
    )  # fmt: skip
    draws = Draws(np.full((1, 10), value), np.full((1, 5), value / 5))
    return Published(submission, result, draws)


def ranks(*runs: Published) -> dict[str, int | None]:
    board = build_snapshot(runs, {"toy": CARD}, NOW).boards["toy"]
    cells: tuple[Cell, ...] = board.slice(Selector(measure="mean"), None)
    return {cell.entry_id.rpartition("/")[2]: cell.rank for cell in cells}


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (run("b", 0.9), {"b": 1, "a": 2}),
        # Without a rank it takes nobody's place.
        (run("b", 0.9, n_clusters=7), {"a": 1, "b": None}),
        (run("b", 0.9, n_missing=3), {"a": 1, "b": None}),
        (run("b", 0.9, n_missing=2), {"b": 1, "a": 2}),
        # Of another revision.
        (run("b", 0.9, revision="2"), {"a": 1}),
    ],
    ids=["best", "few clusters", "many missing", "few missing", "revision"],
)
def test_who_is_on_a_board_and_ranked(other: Published, expected: dict[str, int | None]) -> None:
    assert ranks(run("a", 0.1), other) == expected


def test_a_metric_that_failed_a_trust_check_keeps_its_value_and_gets_no_rank() -> None:
    check = Check(name="order", n_pairs=20, mean=0.1, largest=0.4, passed=False)
    failed = TrustReport(
        benchmark="toy", n_pairs=20, n_images=10, spread=0.2, limit=0.01, checks=(check,)
    )
    runs = [run("good", 0.5), run("worse", 0.4), run("tricky", 0.9, trust=failed)]
    snapshot = build_snapshot(runs, {"toy": CARD}, NOW)
    cells = {cell.entry_id.partition("-")[0]: cell for cell in snapshot.boards["toy"].cells}
    tricky = cells["tricky"]
    assert (tricky.value, tricky.rank) == (0.9, None)
    assert "order" in tricky.why_unranked
    assert [cells[name].rank for name in ("good", "worse")] == [1, 2]
    assert snapshot.entries["tricky-00000000/tricky"].trust == {"toy": failed}


_CARDS = cards()
_TEXT = st.text(max_size=12)
_MAYBE = st.none() | _TEXT
_KINDS = {
    "entry_id note distrust": _TEXT,
    "variant split ci_method": _MAYBE,
    "measure": st.sampled_from(["srcc", "rank", ""]),
    "facet": st.none() | st.sampled_from(["", "forward_text"]),
    "skill": st.none() | st.sampled_from(["", "counting"]),
    "value ci_low ci_high best_share": st.none() | st.floats(allow_nan=True, allow_infinity=True),
    "n_items n_clusters n_missing row": st.integers(-1, 2**62),
    "rank rank_low rank_high tier": st.none() | st.integers(1, 10_000),
}
_CELLS = st.builds(Cell, **{name: of for names, of in _KINDS.items() for name in names.split()})


def exact(cell: Cell) -> tuple[object, ...]:
    """All fields, with numbers by their bits."""
    values = (getattr(cell, name) for name in Cell.model_fields)
    return tuple(struct.pack("<d", v) if isinstance(v, float) else v for v in values)


def of_boards(boards: dict[str, list[Cell]]) -> Snapshot:
    made = {name: Board(_CARDS[name], cells) for name, cells in boards.items()}
    run = RunOrigin(revision="1", sha256="a" * 64)
    return Snapshot(NOW, {}, made, "v7", {"made-up-0000": Origin(since=NOW, runs={"ratings": run})})


_BOARDS = st.fixed_dictionaries({name: st.lists(_CELLS, max_size=12) for name in _CARDS})


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(_BOARDS)
def test_every_cell_comes_back_to_the_bit_and_in_its_order(boards: dict[str, list[Cell]]) -> None:
    given_snapshot = of_boards(boards)
    again = parse_snapshot(snapshot_bytes(given_snapshot))
    assert list(again.boards) == list(boards)
    for name, cells in boards.items():
        assert [exact(c) for c in again.boards[name].cells] == [exact(c) for c in cells]
    assert (again.built_at, again.built_from) == (NOW, "v7")
    assert again.origins == given_snapshot.origins


@settings(max_examples=60, deadline=None)
@given(st.lists(_CELLS, max_size=12))
def test_a_slice_has_the_cells_of_that_slice_and_no_others(cells: list[Cell]) -> None:
    board = parse_snapshot(snapshot_bytes(of_boards({"ratings": cells}))).boards["ratings"]
    rises = _CARDS["ratings"].higher_is_better
    for cell in cells:
        own = [c for c in cells if (c.selector, c.skill) == (cell.selector, cell.skill)]
        expected = best_first(own, higher_is_better=rises(cell.measure))
        found = board.slice(cell.selector, cell.skill)
        assert sorted(map(repr, map(exact, found))) == sorted(map(repr, map(exact, expected)))
    keys = dict.fromkeys((c.measure, c.variant, c.split, c.facet, c.skill) for c in cells)
    assert board.keys == tuple(keys)


@pytest.mark.parametrize("rows", [snapshots._ROWS, 7], ids=["one row group", "many"])
def test_entries_cards_and_boards_come_back(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    monkeypatch.setattr(snapshots, "_ROWS", rows)
    before = snapshot()
    after = parse_snapshot(snapshot_bytes(before))
    assert list(after.entries.items()) == list(before.entries.items())
    for name, board in before.boards.items():
        own = after.boards[name]
        assert (own.card, own.cells, own.seed) == (board.card, board.cells, board.seed)


def test_equal_snapshots_make_equal_bytes_however_they_were_read() -> None:
    content = snapshot_bytes(snapshot())
    assert snapshot_bytes(snapshot()) == snapshot_bytes(parse_snapshot(content)) == content


def test_the_table_names_whose_each_value_is_with_a_row_group_for_each_board() -> None:
    content = io.BytesIO(snapshot_bytes(snapshot()))
    table = pq.read_table(content)
    assert table.schema.names == snapshots.SCHEMA.names
    frame = table.to_pandas().set_index(["benchmark", "entry_id"])
    one = frame.loc["tiny", "made-up-0000/CLIPScore"]
    told = one[["submission_id", "metric", "measure"]].tolist()
    assert told == ["made-up-0000", "CLIPScore", "rmse"]
    file = pq.ParquetFile(content)
    groups = (file.read_row_group(i)["benchmark"] for i in range(file.num_row_groups))
    assert [set(one.to_pylist()) for one in groups] == [{"graphs"}, {"ratings"}, {"tiny"}]


@pytest.fixture
def tables_read(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[int, int]]]:
    """Row groups that were read, as they are."""
    read: list[tuple[int, int]] = []
    table = snapshots._table

    def noted(content: bytes, first: int, groups: int) -> Any:
        read.append((first, groups))
        return table(content, first, groups)

    monkeypatch.setattr(snapshots, "_table", noted)
    yield read


def test_opening_reads_no_board_and_a_look_at_one_reads_that_one(
    tables_read: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    content = snapshot_bytes(snapshot())
    built: list[int] = []
    make = snapshots._cells

    def counted(table: Any) -> tuple[Cell, ...]:
        built.append(len(table))
        return make(table)

    monkeypatch.setattr(snapshots, "_cells", counted)
    opened = parse_snapshot(content)
    assert tables_read == []
    board = opened.boards["ratings"]
    found = board.slice(board.card.headline, None)
    assert len(tables_read) == 1
    assert built == [len(found)]


def test_a_damaged_file_is_told_as_such() -> None:
    content = snapshot_bytes(snapshot())
    newer = content.replace(b'"schema_version":2', b'"schema_version":9')
    for broken in (b"", content[:-9], newer, with_other_columns(content)):
        with refused("snapshot_damaged", "doctor"):
            parse_snapshot(broken)
    with pytest.raises(PlatformError, match=r"snapshot\.json"):
        parse_old_snapshot(b"{}")


def test_a_column_by_its_earlier_name_is_read() -> None:
    content = snapshot_bytes(snapshot())
    buffer = io.BytesIO()
    names = ["p_best" if name == "best_share" else name for name in snapshots.SCHEMA.names]
    file = pq.ParquetFile(io.BytesIO(content))
    metadata = file.metadata.metadata
    fields = zip(names, snapshots.SCHEMA, strict=True)
    earlier = pa.schema([field.with_name(name) for name, field in fields])
    with pq.ParquetWriter(buffer, earlier) as writer:
        for group in range(file.num_row_groups):
            writer.write_table(file.read_row_group(group).rename_columns(names).cast(earlier))
        own = (snapshots.METADATA, snapshots.ENTRIES)
        writer.add_key_value_metadata({key: metadata[key] for key in own})
    found, expected = parse_snapshot(buffer.getvalue()), parse_snapshot(content)
    assert found.boards["ratings"].cells == expected.boards["ratings"].cells


def with_other_columns(content: bytes) -> bytes:
    buffer = io.BytesIO()
    metadata = pq.read_metadata(io.BytesIO(content)).metadata
    with pq.ParquetWriter(buffer, pa.schema([("value", pa.float64())])) as writer:
        own = (snapshots.METADATA, snapshots.ENTRIES)
        writer.add_key_value_metadata({key: metadata[key] for key in own})
    return buffer.getvalue()


OLD = b"""{"schema_version": 1, "built_at": "2026-01-01T00:00:00Z", "entries": {}, "boards": {"tiny":
{"card": %s, "cells": [{"entry_id": "a-0/a", "measure": "rmse", "variant": null, "split": null,
"facet": null, "skill": null, "value": 0.25, "ci_low": null, "ci_high": null, "ci_method": null,
"n_items": 4, "n_clusters": 5, "n_missing": 0, "note": "", "distrust": "", "row": 0, "rank": null,
"rank_low": null, "rank_high": null, "best_share": null, "tier": null}]}}}""" % (
    _CARDS["tiny"].model_dump_json().encode()
)


def test_a_store_with_a_snapshot_of_the_form_before_is_served_and_then_rid_of_it() -> None:
    public = memory_store().public
    assert read_snapshot(public) is None
    public.commit({OLD_PATH: OLD}, parent=public.head(), message="an older version")
    shown = read_snapshot(public)
    assert shown is not None
    assert shown.built_at == datetime(2026, 1, 1, tzinfo=UTC)
    assert [cell.value for cell in shown.boards["tiny"].cells] == [0.25]
    assert shown.origins == {}

    changes = snapshot_changes(public, snapshot())
    assert changes[OLD_PATH] is None
    public.commit(changes, parent=public.head(), message="publish")
    assert public.list("snapshot") == (PATH,)
    assert set(snapshot_changes(public, snapshot())) == {PATH}


def test_another_version_of_the_ranking_takes_nothing_over(monkeypatch: pytest.MonkeyPatch) -> None:
    content = snapshot_bytes(of_boards({"tiny": []}))
    assert parse_snapshot(content).origins
    monkeypatch.setattr(snapshots, "RANKED_BY", 999)
    assert parse_snapshot(content).origins == {}

"""Sinks of a watch: what each was sent is kept, what it missed is sent after, nothing twice."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from benchmarks.errors import PlatformError
from evaluator.ab.sinks import (
    RECORD,
    Deliveries,
    ScoredCheckpoint,
    Sink,
    SinkError,
    TensorBoard,
    Webhook,
    WeightsAndBiases,
)
from evaluator.ab.watching import TABLE, Curves
from tests.evaluator.raw_server import dripping_body, dripping_header, endless_body, raw_server
from tests.kit.refusals import refused


class Recorder:
    """Keeps the names of what it was sent, and fails at those of a set."""

    title = "the recorder"

    def __init__(self, address: str = "https://example.org/?key=secret") -> None:
        self.address = address
        self.sent: list[str] = []
        self.failing = {"none"}

    def send(self, checkpoint: ScoredCheckpoint) -> None:
        if checkpoint.name in self.failing:
            raise SinkError("no answer")
        self.sent.append(checkpoint.name)

    def close(self) -> None:
        """Nothing is open."""


def rows(name: str, step: int | None, **more: Any) -> list[dict[str, Any]]:
    of = {
        "checkpoint": name, "step": step, "at": datetime(2026, 1, 1, tzinfo=UTC), "images": "x",
        "metric": "m", "skill": "", "mean": 0.5, "ci_low": 0.4, "ci_high": 0.6, "n": 9, "n_missing": 1,
    }  # fmt: skip
    return [of | more, of | more | {"skill": "color", "mean": math.nan}]


@pytest.fixture
def curves(tmp_path: Path) -> Curves:
    found = Curves(tmp_path)
    for name, step in (("b", None), ("a-900", 900), ("c", None)):
        found.add(rows(name, step), 9)
    return found


def test_a_sink_is_sent_each_checkpoint_once_over_restarts(curves: Curves, tmp_path: Path) -> None:
    sink = Recorder()
    for _ in range(2):
        assert Deliveries(tmp_path).send(sink, curves.checkpoints) == ""
    assert sink.sent == ["b", "a-900", "c"]
    curves.add(rows("d", None), 9)
    other = Recorder("elsewhere")
    for one in (sink, other):
        Deliveries(tmp_path).send(one, curves.checkpoints)
    assert sink.sent == other.sent == ["b", "a-900", "c", "d"]
    assert "secret" not in (tmp_path / RECORD).read_text()


def test_a_large_step_keeps_its_digits_beside_names_without_one(tmp_path: Path) -> None:
    large = (1 << 53) + 1
    made = Curves(tmp_path)
    for name, step in (("a", large), ("b", None), ("c", (1 << 63) - 1)):
        made.add(rows(name, step), 9)
    for one in (made, Curves(tmp_path)):
        assert [of.rows[0]["step"] for of in one.checkpoints] == [large, None, (1 << 63) - 1]


def test_curves_that_were_made_anew_are_sent_anew(curves: Curves, tmp_path: Path) -> None:
    sink = Recorder()
    Deliveries(tmp_path).send(sink, curves.checkpoints)
    (tmp_path / TABLE).unlink()
    anew = Curves(tmp_path)
    anew.add(rows("b", None, at=datetime(2026, 1, 2, tzinfo=UTC), metric="other"), 9)
    for known in (anew, Curves(tmp_path)):
        assert Deliveries(tmp_path).send(sink, known.checkpoints) == ""
    assert sink.sent == ["b", "a-900", "c", "b"]


def test_what_a_sink_missed_is_sent_after_in_its_order(curves: Curves, tmp_path: Path) -> None:
    sink, deliveries = Recorder(), Deliveries(tmp_path)
    sink.failing = {"a-900"}
    why = deliveries.send(sink, curves.checkpoints)
    assert "a-900" in why and "the recorder" in why and "no answer" in why
    assert sink.sent == ["b"]
    sink.failing = set()
    assert deliveries.send(sink, curves.checkpoints) == ""
    assert sink.sent == ["b", "a-900", "c"]


def test_a_checkpoint_has_its_step_or_its_place_and_scalars_that_are_numbers(
    curves: Curves, tmp_path: Path
) -> None:
    for found in (curves, Curves(tmp_path)):  # in memory, and read anew
        assert [(one.name, one.step) for one in found.checkpoints] == [
            ("b", 0), ("a-900", 900), ("c", 2),
        ]  # fmt: skip
        assert found.checkpoints[1].scalars == {
            "m/all prompts/mean": 0.5, "m/all prompts/ci_low": 0.4, "m/all prompts/ci_high": 0.6,
            "m/all prompts/n_missing": 1.0, "m/color/ci_low": 0.4, "m/color/ci_high": 0.6,
            "m/color/n_missing": 1.0,
        }  # fmt: skip
        assert {row["step"] for row in found.checkpoints[0].rows} == {None}


@pytest.mark.parametrize(
    "content", ["no record", "[1]", '{"a": 1}', '{"a": ["b"]}', '{"a": {"b": null}}']
)
def test_a_record_that_is_none_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / RECORD).write_text(content)
    with refused("bad_curves"):
        Deliveries(tmp_path)


@pytest.mark.parametrize(
    "address",
    [
        "secret", "ftp://host/secret", "http:///secret", "http://[::1/secret",
        "http://host:99999/secret", "http://host:0/secret", "http://host:-1/secret", "http://host:secret/",
        "http://secret\udc80/", "http://host/secret\udc80", "http://host/?secret=\udc80",
        "http://☃.example/secret", "http://host/secret\n", "http://host/secret" + 70_000 * "a",
    ],
    ids=ascii,
)  # fmt: skip
def test_an_address_that_cannot_be_asked_is_refused_when_it_is_given(address: str) -> None:
    with refused("bad_webhook") as error:
        Webhook(address)
    assert "secret" not in f"{error.value.message} {error.value.hint}"


def test_the_address_of_a_webhook_is_never_said(curves: Curves, tmp_path: Path) -> None:
    why = Deliveries(tmp_path).send(Webhook("http://127.0.0.1:1/secret"), curves.checkpoints)
    assert "ConnectError" in why and "secret" not in why


def test_a_sink_may_have_any_name_that_a_folder_may_have(curves: Curves, tmp_path: Path) -> None:
    sink = Recorder("tensorboard /runs/\udcff")
    for _ in range(2):
        assert Deliveries(tmp_path).send(sink, curves.checkpoints) == ""
    assert sink.sent == ["b", "a-900", "c"]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (dripping_body, ""),
        (endless_body, ""),
        (dripping_header, "TimeoutException"),
        (partial(dripping_body, b"HTTP/1.1 404 Not Found\r\n"), "it answered 404"),
        (partial(dripping_body, b"HTTP/1.1 302 Found\r\nLocation: /\r\n"), "it answered 302"),
    ],
    ids=["slow", "endless", "slow header", "unknown", "moved"],
)
def test_a_webhook_is_waited_for_no_longer_than_its_status_takes(
    curves: Curves, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: Any, said: str
) -> None:
    monkeypatch.setattr("evaluator.ab.sinks._TIMEOUT_S", 0.5 if answer is dripping_header else 60)
    with raw_server(answer) as address:
        why = Deliveries(tmp_path).send(Webhook(f"{address}/secret"), curves.checkpoints)
    assert (said in why, bool(why), "secret" in why) == (True, bool(said), False)


@pytest.mark.parametrize(
    "sink", [TensorBoard, lambda folder: WeightsAndBiases("project", "", "title", folder)]
)
def test_a_library_that_is_not_installed_is_named_with_its_extra(
    sink: Callable[[Path], Sink], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("tensorboard", "wandb"):
        monkeypatch.setitem(sys.modules, module, None)
    with refused("libraries_missing", "assay[watch]", kind=PlatformError):
        sink(tmp_path)


class Library(ModuleType):
    """Stands in for `wandb` with a service that may be away, and has points already."""

    def __init__(self, step: int) -> None:
        super().__init__("wandb")
        self.errors = SimpleNamespace(Error=ConnectionAbortedError)
        self.Settings = dict
        self.logged: list[int] = []
        self.ids: list[object] = []
        self.finished = 0
        self.away = False
        self.step = step

    def init(self, *, id: object, **_: object) -> Library:  # noqa: A002 (the library's name)
        if self.away:
            raise ConnectionAbortedError("away")
        self.ids.append(id)
        return self

    def define_metric(self, *_: object, **__: object) -> None:
        """Nothing is drawn."""

    def log(self, _: object, *, step: int, commit: bool) -> None:
        assert commit and step >= self.step
        self.logged.append(step)
        self.step = step + 1

    def finish(self) -> None:
        self.finished += 1


@pytest.mark.parametrize(("step", "logged"), [(0, [0, 1, 2]), (1, [1, 2]), (2, [])])
def test_a_run_that_has_points_from_elsewhere_is_refused(
    curves: Curves, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int, logged: list[int]
) -> None:
    """One point more than was sent may be of a watch that was killed: the service takes it once."""
    library = Library(step)
    monkeypatch.setitem(sys.modules, "wandb", library)
    sink = WeightsAndBiases("project", "run", "title", tmp_path)
    why = Deliveries(tmp_path).send(sink, curves.checkpoints)
    assert (library.logged, bool(why)) == (logged, not logged)
    sink.close()
    assert library.finished == 1


@pytest.mark.parametrize(("step", "logged"), [(1, [1, 2]), (2, [2]), (3, [])])
def test_the_run_of_a_table_goes_on_with_what_it_lacks_without_a_record(
    curves: Curves, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int, logged: list[int]
) -> None:
    library = Library(step)
    monkeypatch.setitem(sys.modules, "wandb", library)
    sink = WeightsAndBiases("project", "", "title", tmp_path)
    assert Deliveries(tmp_path).send(sink, curves.checkpoints) == ""
    assert library.logged == logged


def test_each_table_of_a_folder_has_a_run_of_its_own(
    curves: Curves, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = Library(0)
    monkeypatch.setitem(sys.modules, "wandb", library)
    anew = Curves(tmp_path / "anew")
    anew.add(rows("b", None, at=datetime(2026, 1, 2, tzinfo=UTC)), 9)
    for known in (curves.checkpoints, Curves(tmp_path).checkpoints[1:], anew.checkpoints):
        WeightsAndBiases("project", "", "title", tmp_path).send(known[0])
    first, again, other = library.ids
    assert first == again != other


def test_a_service_that_is_away_is_asked_again(
    curves: Curves, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = Library(0)
    library.away = True
    monkeypatch.setitem(sys.modules, "wandb", library)
    sink, deliveries = WeightsAndBiases("project", "", "title", tmp_path), Deliveries(tmp_path)
    assert "away" in deliveries.send(sink, curves.checkpoints)
    library.away = False
    assert deliveries.send(sink, curves.checkpoints) == ""
    assert library.logged == [0, 1, 2]

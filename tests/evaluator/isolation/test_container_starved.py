"""An engine that learns a moment later why a container ended is asked again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from evaluator.isolation.containers import box
from evaluator.isolation.containers.box import ContainerBox
from evaluator.isolation.containers.engine import Container, Engine


@dataclass
class _Client:
    returncode: int = 137

    def poll(self) -> int:
        return self.returncode


@dataclass
class _Late:
    """Says that a container was starved from the given time it is asked on."""

    from_ask: int
    asked: list[str] = field(default_factory=list)

    def container(self, name: str) -> Container | None:
        self.asked.append(name)
        return Container(0, 137, len(self.asked) >= self.from_ask)


def _box(engine: _Late, client: _Client) -> ContainerBox:
    return ContainerBox(cast(Any, client), engine=cast(Engine, engine), name="one")


def test_what_the_engine_learns_late_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(box, "_LOOK_EVERY_S", 0.0)
    engine = _Late(3)
    assert _box(engine, _Client()).out_of_memory()
    assert len(engine.asked) == 3


def test_it_is_not_asked_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(box, "_STARVED_TOLD_WITHIN_S", 0.05)
    assert not _box(_Late(10**9), _Client()).out_of_memory()


def test_who_was_not_killed_was_not_starved() -> None:
    engine = _Late(1)
    assert not _box(engine, _Client(1)).out_of_memory()
    assert engine.asked == []

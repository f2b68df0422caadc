"""A submitted module on its way into a box: which box, with which models, on which machine."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.errors import PlatformError
from evaluator.bundled import bundled_hashes
from evaluator.hub.model_cache import ModelCache
from evaluator.isolation import containers
from evaluator.isolation.availability import IsolationChoice, PlainProcess, choice_of, unsandboxed
from evaluator.isolation.backend import Backend, IsolationStatus, Probe
from evaluator.isolation.bubblewrap import Bubblewrap
from evaluator.isolation.failures import box_not_ended
from evaluator.isolation.job import Job, Limits
from evaluator.submission.archives.archive import content_hash
from evaluator.worker.scorer_role import OWN_CODE, PackedModule, Sandboxes, ScorerRole, unpacked
from leaderboard.ranking.cells import UNSANDBOXED, kept_from_ranking
from leaderboard.records import Submission
from leaderboard.states import State
from tests.evaluator.submission.archives import FILES, folder_of, zipped
from tests.kit import toy
from tests.kit.refusals import refused
from tests.kit.worker import (
    BOB,
    MODULE,
    SCORES,
    FakeBackend,
    FakeSession,
    Rig,
    named,
    submission,
)

NOTHING = IsolationStatus(
    None, (("bubblewrap", Probe(ok=False, reason="Not here.", remedy="Do.")),)
)


def module(content_sha256: str = "0" * 64, **more: Any) -> Submission:
    return submission(content_sha256=content_sha256, **more)


# The upload -----------------------------------------------------------------------------------


@pytest.fixture
def upload(tmp_path: Path) -> Path:
    return zipped(tmp_path / "upload.zip", FILES)


@pytest.fixture
def sent(tmp_path: Path) -> Submission:
    return module(content_hash(folder_of(tmp_path / "folder", FILES)))


def test_a_module_is_unpacked_for_others_to_read_and_removed_afterwards(
    upload: Path, sent: Submission, tmp_path: Path
) -> None:
    scratch = tmp_path / "scratch"
    for given in (upload, upload.read_bytes()):
        with unpacked(sent, given, scratch) as folder:
            found = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
            assert found == set(FILES)
            ways = [p for p in (folder, *folder.parents) if scratch in p.parents]
            assert all(p.stat().st_mode & 0o055 == 0o055 for p in ways)
            assert "grey" not in str(folder.relative_to(scratch))
        assert not list(scratch.iterdir())


@pytest.mark.parametrize("change", ["other", "damaged", "refused"])
def test_a_stored_upload_that_changed_is_our_fault(
    sent: Submission, tmp_path: Path, change: str
) -> None:
    upload = zipped(tmp_path / "u.zip", {**FILES, "x.pkl" if change == "refused" else "x": b""})
    if change == "damaged":
        upload.write_bytes(upload.read_bytes()[:-5])
    scratch = tmp_path / "scratch"
    with refused("upload_changed", kind=PlatformError), unpacked(sent, upload, scratch):
        raise AssertionError
    assert not list(scratch.iterdir())


def test_a_module_takes_its_upload_along_to_another_machine(upload: Path, sent: Submission) -> None:
    packed = PackedModule(sent, upload, PlainProcess(), Limits(), ())
    data, there = upload.read_bytes(), pickle.dumps(packed)
    upload.unlink()
    assert pickle.loads(there).upload == data
    assert pickle.loads(there).fingerprint == packed.fingerprint


# Which box ------------------------------------------------------------------------------------


def test_without_isolation_strangers_code_is_refused() -> None:
    with pytest.raises(PlatformError) as caught:
        Sandboxes(NOTHING, PlainProcess(), Limits()).choose(module())
    assert (caught.value.code, caught.value.hint) == ("isolation_unavailable", "Do.")


@pytest.mark.parametrize(
    ("status", "ours", "layer"),
    [(unsandboxed(), False, UNSANDBOXED), (unsandboxed(), True, OWN_CODE), (NOTHING, True, OWN_CODE)],
    ids=["strangers", "ours-off", "ours-none"],
)  # fmt: skip
def test_what_runs_in_no_box_is_ranked_only_if_it_is_ours(
    status: IsolationStatus, ours: bool, layer: str
) -> None:
    sent = module(min(bundled_hashes())) if ours else module()
    backend, layers = Sandboxes(status, PlainProcess(), Limits()).choose(sent)
    assert (backend.name, layers) == ("plain", (layer,))
    assert bool(kept_from_ranking("", layers)) is not ours


@pytest.mark.parametrize(
    ("account", "operator", "may"),
    [("local:ada", "local:ada", True), ("hub:eve", "local:ada", False), ("", "", False)],
)
def test_without_isolation_a_worker_runs_the_code_of_its_own_operator_only(
    tmp_path: Path, account: str, operator: str, may: bool
) -> None:
    def can_run(status: IsolationStatus) -> bool:
        role = ScorerRole(status, PlainProcess(), tmp_path, Limits(), operator=operator)
        return role.can_run(module(account=account))

    assert (can_run(unsandboxed()), can_run(NOTHING)) == (may, False)


def test_another_machine_is_to_isolate_as_this_one_does() -> None:
    assert choice_of(unsandboxed()) is IsolationChoice.NONE
    assert choice_of(NOTHING) is IsolationChoice.AUTO
    engines = (containers.docker({}), containers.podman({}), containers.gvisor({}))
    there: list[Backend] = [Bubblewrap(), *engines]
    for backend in there:
        status = IsolationStatus(backend, ((backend.name, Probe(ok=True, layers=("pid",))),))
        assert choice_of(status) is IsolationChoice(backend.name)


def test_a_machine_that_isolates_less_than_the_worker_runs_nothing(upload: Path) -> None:
    ours = module(min(bundled_hashes()))
    packed = PackedModule(ours, upload, PlainProcess(), Limits(), ("unheard-of-walls",))
    with pytest.raises(PlatformError, match="unheard-of-walls"), packed.open():
        raise AssertionError


# Models that a module names: fetched by the worker, for its box has no network -----------------

SHA = "0123456789" * 4
NAMING = {**MODULE, "assay.toml": f'name = "grey"\nmodels = ["owner/name@{SHA}"]'.encode()}


@dataclass
class Noting(FakeBackend):
    """Notes the jobs it is given."""

    jobs: list[Job] = field(default_factory=list)

    def start(self, *words: Any, **more: Any) -> Any:
        self.jobs.append(words[0])
        return super().start(*words, **more)


def test_the_box_gets_the_models_its_module_names_and_none_are_fetched_otherwise(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.backend = backend = Noting()
    here = rig.folder / "models" / f"owner--name@{SHA}"
    here.mkdir(parents=True)
    name = rig.ran(NAMING)
    assert rig.status(name).submission.models == (f"owner/name@{SHA}",)
    ((model,),) = {job.models for job in backend.jobs}
    assert (model.repo, model.revision, model.folder) == ("owner/name", SHA, here)
    assert rig.state(name) is State.PUBLISHED

    monkeypatch.delattr(ModelCache, "bring")
    backend.jobs.clear()
    assert rig.state(rig.ran(named("other"))) is State.PUBLISHED
    assert {job.models for job in backend.jobs} == {()}


def test_a_machine_without_a_place_for_models_says_so(rig: Rig) -> None:
    named, role = rig.send(NAMING).submission, rig.worker().scorers
    boxes = Sandboxes(role.isolation, role.own, role.limits)
    with (
        pytest.raises(PlatformError, match="models"),
        boxes.boxed(named, rig.module(NAMING), rig.folder / "scratch"),
    ):
        raise AssertionError


# A box of which something lives on ------------------------------------------------------------


class Surviving(FakeSession):
    """Something of it cannot be ended."""

    def close(self) -> None:
        super().close()
        raise box_not_ended()


class SurvivingBackend(FakeBackend):
    """Hands out boxes that cannot be ended."""

    def start(self, *_: Any, **__: Any) -> Any:
        return Surviving(self)


def test_no_code_is_run_beside_what_could_not_be_ended_and_scores_are_judged(rig: Rig) -> None:
    rig.backend = backend = SurvivingBackend()
    first, worker = rig.sent(), rig.worker()
    assert worker.availability.ok
    assert worker.run_next()
    assert rig.ended(first) == (State.FAILED, "box_not_ended", "platform")

    second, asked = rig.sent(account=BOB), len(backend.asked)
    assert not worker.run_next()
    assert not worker.run(second)
    assert len(backend.asked) == asked
    third = rig.send_scores(SCORES).submission.submission_id
    assert worker.run_next()
    assert rig.state(third) is State.PUBLISHED

    worker.heart.beat()
    (pulse,) = rig.store.live.pulses()
    assert (pulse.isolation_ok, pulse.submission_id, worker.availability.ok) == (False, "", False)
    assert "Restart" in pulse.isolation, "it says what to do"
    rig.backend = FakeBackend()
    assert rig.worker("w2").run_next(), "another worker takes what this one leaves"
    assert rig.state(second) is State.PUBLISHED


# The trust checks are made in a box of their own, so that the run knows nothing of them --------

N = 200
TRIED = 12 * 7


@dataclass
class Cunning(FakeSession):
    """Honest while it takes itself to be tested, and about all that it was shown then."""

    seen: set[bytes] = field(default_factory=set)
    asked: int = 0

    def score(self, images: Sequence[bytes], pairs: Sequence[tuple[int, str]]) -> Any:
        honest = super().score(images, pairs)
        if self.asked < TRIED:
            self.seen.update(images)
        self.asked += len(pairs)
        known = np.array([images[image] in self.seen for image, _ in pairs])
        return np.where(known, honest, 1000.0 - honest)


@dataclass
class Cunnings(FakeBackend):
    def start(self, *_: Any, **__: Any) -> Any:
        return Cunning(self)


@pytest.mark.parametrize("backend", [FakeBackend(), Cunnings()], ids=["honest", "cunning"])
def test_a_scorer_that_is_honest_only_about_what_it_was_tried_on_gets_no_rank(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, backend: FakeBackend
) -> None:
    monkeypatch.setattr(toy, "PAIRS", tuple(f"pair {n}" for n in range(N)))
    rig.backend = backend
    rig.ran()
    (cell,) = rig.cells()
    assert bool(cell.distrust) is isinstance(backend, Cunnings)
    assert backend.entered == 2
    assert backend.closed >= 2

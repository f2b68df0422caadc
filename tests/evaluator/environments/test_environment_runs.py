"""Modules run with the packages they were locked with, in a box and nowhere else."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from benchmarks.registry import load_registry
from evaluator.environments.building import PackageSource
from evaluator.environments.cache import EnvironmentCache, key_of
from evaluator.environments.naming import OWN
from evaluator.isolation.availability import PlainProcess, machine_isolation
from evaluator.isolation.backend import IsolationStatus
from evaluator.isolation.job import Limits
from evaluator.metric import load_metric
from evaluator.scoring.asking import Item, PairRequest
from evaluator.submission.receipts import environment_versions
from evaluator.submission.runs import fingerprint_of
from evaluator.submission.validate import examine_source, validated_source
from evaluator.worker.scorer_role import PackedModule, ScorerRole
from evaluator.worker.worker import Worker
from leaderboard.states import State
from tests.evaluator.environments.wheels import Wheel, locked, pillow, wheel
from tests.evaluator.isolation.boxes import png
from tests.kit.worker import Rig, module_folder, submission

SCORER = b"""
import sys
import shade

class Scorer:
    def score(self, images, prompts):
        assert not {"numpy", "sitecustomize"} & set(sys.modules)
        assert all(image.stub for image in images)
        return [float(shade.VERSION) for _ in prompts]
"""
SHADE = """
VERSION = {version!r}
try:
    open({mark!r}, "w")
except OSError:
    pass
"""


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    """A file that packages make wherever they run and can write."""
    return tmp_path / "ran outside"


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    return tmp_path / "wheels"


@pytest.fixture
def shades(wheels: Path, mark: Path) -> Mapping[str, tuple[Wheel, Wheel]]:
    """Two versions of one package, each with what a box reads images with."""
    needed, starts = pillow(wheels), f"open({str(mark)!r}, 'w')"
    found = {}
    for version in ("1.0", "2.0"):
        code = SHADE.format(version=version, mark=str(mark))
        files = {"shade.py": code, "shade.pth": f"import os; {starts}", "sitecustomize.py": starts}
        found[version] = (needed, wheel(wheels, "shade", version, files))
    return found


def lock_of(wheels: tuple[Wheel, ...]) -> bytes:
    return "\n".join(one.line for one in wheels).encode()


def module(name: str, wheels: tuple[Wheel, ...], more: str = "") -> Mapping[str, bytes]:
    lock = {OWN: lock_of(wheels)} if wheels else {}
    toml = f'name = "{name}"\n{more}'.encode()
    return {"assay.toml": toml, "scorer.py": SCORER, **lock}


def worker(rig: Rig, cache: EnvironmentCache, isolation: IsolationStatus | None = None) -> Worker:
    """One that builds environments; it boxes code as this machine can."""
    role = ScorerRole(
        isolation or machine_isolation(),
        PlainProcess(),
        rig.folder / "scratch",
        Limits(start_s=30.0, batch_s=30.0, job_s=60.0),
        environments=cache,
    )
    return Worker("w1", rig.store, data=None, scorers=role, registry={"toy": rig.toy})


@pytest.mark.isolation
def test_metrics_with_conflicting_pins_run_side_by_side(
    rig: Rig, wheels: Path, shades: Mapping[str, tuple[Wheel, Wheel]], mark: Path
) -> None:
    cache = EnvironmentCache(rig.folder / "environments", PackageSource(wheels))
    sent = {version: rig.sent(module(f"m{version[0]}", pair)) for version, pair in shades.items()}
    worker(rig, cache).run_all()
    for version, name in sent.items():
        assert rig.state(name) is State.PUBLISHED, rig.ended(name)
        result, lock = rig.result(name), locked(*shades[version])
        assert [row["value"] for row in result.rows] == [float(version)]
        assert result.findings is not None
        environment = f"{OWN}@{lock.sha256}"
        assert result.findings.environment["environment"] == environment
        assert rig.status(name).submission.environment == environment
        assert (cache.folder / key_of(lock)).is_dir()
    assert not mark.exists(), "nothing of an environment runs outside a box"


@pytest.mark.slow
@pytest.mark.isolation
def test_a_module_takes_its_environment_along_to_another_machine(
    rig: Rig, wheels: Path, shades: Mapping[str, tuple[Wheel, Wheel]]
) -> None:
    files = module("grey", shades["2.0"])
    sent = rig.send(files).submission
    cache = EnvironmentCache(rig.folder / "environments", PackageSource(wheels))
    packed = PackedModule(sent, rig.module(files), PlainProcess(), Limits(), (), environments=cache)
    there = pickle.loads(pickle.dumps(packed))
    with there.open() as client:
        assert client.environment["environment"] == sent.environment
        ready = client.ready(png())
        reply = client.ask([Item("i", ready, (PairRequest("p", "t", "text"),))])
    assert [verdict.score for (verdict,) in reply.verdicts] == [2.0]


def test_a_machine_without_a_place_for_environments_says_so(
    rig: Rig, shades: Mapping[str, tuple[Wheel, Wheel]]
) -> None:
    name = rig.sent(module("grey", shades["1.0"]))
    rig.worker().run_all()
    assert rig.ended(name) == (State.FAILED, "no_environments_here", "platform")


@pytest.mark.parametrize(
    ("has_wheels", "told"),
    [(True, ("package_hash_mismatch", "submitter")), (False, ("no_packages_here", "platform"))],
)
def test_what_cannot_be_built_fails_with_whose_fault_it_is(
    rig: Rig,
    wheels: Path,
    shades: Mapping[str, tuple[Wheel, Wheel]],
    has_wheels: bool,
    told: tuple[str, str],
) -> None:
    needed, shade = shades["1.0"]
    name = rig.sent(module("grey", (needed, replace(shade, sha256="a" * 64))))
    packages = PackageSource(wheels if has_wheels else None)
    cache = EnvironmentCache(rig.folder / "environments", packages)
    worker(rig, cache, rig.worker().scorers.isolation).run_all()
    assert rig.ended(name)[1:] == told


def test_an_operators_environment_is_named_and_kept_to(
    rig: Rig,
    wheels: Path,
    shades: Mapping[str, tuple[Wheel, Wheel]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lock = rig.folder / "locks" / "shaded.lock"
    lock.parent.mkdir()
    lock.write_bytes(lock_of(shades["1.0"]))
    monkeypatch.setenv("ASSAY_LOCKS", str(lock.parent))
    name = rig.sent(module("grey", (), 'environment = "shaded"'))
    record = f"shaded@{locked(*shades['1.0']).sha256}"
    assert rig.status(name).submission.environment == record
    lock.write_bytes(lock_of(shades["2.0"]))
    cache = EnvironmentCache(rig.folder / "environments", PackageSource(wheels))
    worker(rig, cache, rig.worker().scorers.isolation).run_all()
    assert rig.ended(name)[1:] == ("environment_changed", "platform")


def test_another_environment_never_answers_from_kept_scores() -> None:
    runs = [submission(environment=of) for of in ("", "a@1", "a@2", "b@1")]
    assert len({fingerprint_of(run) for run in runs}) == len(runs)
    assert fingerprint_of(runs[0]) == runs[0].content_sha256


@pytest.mark.parametrize(
    ("lock", "manifest", "codes"),
    [
        (b"", "", [("bad_lock", OWN, None)]),
        (b"numpy\n\n-e .", "", [("bad_lock", OWN, 1), ("bad_lock", OWN, 3)]),
        (None, 'environment = "absent"', [("unknown_environment", "assay.toml", 2)]),
        (b"numpy", 'environment = "x"',
         [("bad_lock", OWN, 1), ("two_environments", "assay.toml", 2)]),
    ],
)  # fmt: skip
def test_what_is_wrong_with_an_environment_is_told_before_it_is_sent(
    tmp_path: Path, lock: bytes | None, manifest: str, codes: list[tuple[str, str, int | None]]
) -> None:
    folder = module_folder(tmp_path / "m", SCORER, f'name = "mine"\n{manifest}\n')
    if lock is not None:
        (folder / OWN).write_bytes(lock)
    seen = examine_source(folder, load_registry())
    assert [(one.code, one.file, one.line) for one in seen.problems] == codes


def test_a_receipt_names_the_versions_that_were_locked(
    tmp_path: Path, shades: Mapping[str, tuple[Wheel, Wheel]]
) -> None:
    folder = module_folder(tmp_path / "m", SCORER)
    (folder / OWN).write_bytes(lock_of(shades["1.0"]))
    with validated_source(folder, load_registry()) as module:
        versions = environment_versions(module.environment)
    assert {name: versions.get(name) for name in ("pillow", "numpy")} == {
        "pillow": "99.0",
        "numpy": None,
    }


@pytest.mark.isolation
def test_a_metric_in_use_has_its_environment(
    tmp_path: Path,
    wheels: Path,
    shades: Mapping[str, tuple[Wheel, Wheel]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ASSAY_WHEELS", str(wheels))
    monkeypatch.setenv("ASSAY_ENVIRONMENTS", str(tmp_path / "environments"))
    folder = module_folder(tmp_path / "m", SCORER)
    (folder / OWN).write_bytes(lock_of(shades["2.0"]))
    with load_metric(folder) as metric:
        assert metric.score([Image.new("RGB", (8, 8))] * 2, ["a", "b"]).tolist() == [2.0, 2.0]
    (folder / OWN).write_bytes(lock_of(shades["1.0"]))
    with load_metric(folder) as metric:
        assert metric.score([Image.new("RGB", (8, 8))], ["a"]).tolist() == [1.0]

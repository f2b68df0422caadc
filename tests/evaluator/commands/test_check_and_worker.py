"""What `check` says of a module is what a worker says of it: same code, same words, same scores."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from benchmarks.errors import SubmitterError
from benchmarks.registry import load_registry
from evaluator.__main__ import command_line
from evaluator.isolation.backend import IsolationStatus, Probe
from evaluator.isolation.limits import Limits
from evaluator.isolation.plain import PlainProcess
from evaluator.submission.receiving.desk import SubmissionDesk
from evaluator.worker.running.scorer_role import ScorerRole
from evaluator.worker.worker import Worker
from leaderboard.desk import Gate
from leaderboard.ledger.ledger import Ledger
from leaderboard.records import Status
from leaderboard.states import State
from leaderboard.store.memory import memory_store
from tests.evaluator.rig import ADA
from tests.tiers import all_slow_but_one

NAME = "demo_ts2"
MANIFEST = f'name = "mine"\nbenchmarks = ["{NAME}"]\n'
LONG = Limits(start_s=60.0, batch_s=60.0, job_s=300.0)


def _scorer(body: str, before: str = "") -> str:
    return f"{before}\nclass Scorer:\n    def score(self, images, prompts):\n        {body}\n"


FAULTS = {
    "too few scores": ("wrong_count", _scorer("return [1.0]")),
    "no list": ("wrong_type", _scorer("return 1.0")),
    "nothing returned": ("wrong_type", _scorer("pass")),
    "words": ("wrong_type", _scorer("return ['1'] * len(prompts)")),
    "infinite": ("not_finite", _scorer("return [float('inf')] * len(prompts)")),
    "a name that was not imported": ("scorer_raised", _scorer("return [np.e] * len(prompts)")),
    "another signature": ("scorer_raised", "class Scorer:\n    def score(self, one): return 1.0\n"),
    "an end of the process": ("scorer_raised", _scorer("raise SystemExit(0)")),
    "a crash": ("crashed", _scorer("import os; os.kill(os.getpid(), 11)")),
    "a package that is not there": ("import_failed", _scorer("...", "import no_such_package")),
    "a relative import": ("import_failed", _scorer("...", "from .helper import x")),
    "a syntax error": ("import_failed", "class Scorer:\n    def score(self, images, prompts)\n"),
    "tabs and spaces": ("import_failed", "class Scorer:\n\tdef score(self):\n        pass\n"),
    "another class": (
        "import_failed",
        "class Metric:\n    def score(self, images, prompts): ...\n",
    ),
    "no method": ("import_failed", "class Scorer:\n    def scores(self, images, prompts): ...\n"),
    "a file that is not there": (
        "init_failed",
        "class Scorer:\n    def __init__(self): open('weights.txt')\n"
        "    def score(self, images, prompts): ...\n",
    ),
}


def _module(folder: Path, source: str, manifest: str = MANIFEST) -> Path:
    folder.mkdir()
    (folder / "assay.toml").write_text(manifest)
    (folder / "scorer.py").write_text(source)
    return folder


def _checked(folder: Path, *words: str) -> dict[str, Any]:
    command = ["check", str(folder), "--benchmark", NAME, "--isolation", "none", "--json", *words]
    done = CliRunner().invoke(command_line(), command)
    assert done.exit_code in (0, 1), done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _worked(folder: Path, scratch: Path, receipt: bytes | None = None) -> tuple[Status, Any]:
    """The status after a worker had it, and its result."""
    store, registry = memory_store(), load_registry()
    desk = SubmissionDesk(store, registry, None, lambda: Gate(True), store.clock)
    sent = desk.submit_metric(folder, account=ADA, receipt=receipt).status.submission
    probe = Probe(ok=True, layers=("process",))
    isolation = IsolationStatus(PlainProcess(), (("plain", probe),))
    role = ScorerRole(isolation, PlainProcess(), scratch / "scratch", LONG)
    worker = Worker("w", store, registry=registry, data=None, scorers=role)
    assert worker.run(sent.submission_id)
    ledger = Ledger(store)
    status = ledger.whole_status(sent.submission_id)
    return status, ledger


@pytest.mark.parametrize("fault", all_slow_but_one(FAULTS))
def test_a_module_that_fails_in_a_worker_fails_alike_in_check(fault: str, tmp_path: Path) -> None:
    code, source = FAULTS[fault]
    folder = _module(tmp_path / "mine", source)
    error = _checked(folder, "--pairs", "40")["error"]
    status, _ = _worked(folder, tmp_path)
    assert error["code"] == code
    assert status.state is State.FAILED
    assert (status.code, status.reason, status.hint) == (
        error["code"],
        error["message"],
        error["hint"],
    )


@pytest.mark.parametrize(
    ("manifest", "file"),
    [
        ("name = 3\n", ""),
        ('name = "mine"\nnmae = "x"\n', ""),
        ('name = "mine"\nentry_point = "other:Scorer"\n', ""),
        ('name = "mine"\nweights = "w.safetensors"\n', ""),
        ('name = "mine"\nbenchmarks = ["none"]\n', ""),
        ('name = "mine"\n', "weights.pkl"),
    ],
)
def test_what_the_desk_refuses_check_lists(manifest: str, file: str, tmp_path: Path) -> None:
    folder = _module(tmp_path / "mine", _scorer("..."), manifest)
    if file:
        (folder / file).write_bytes(b"\x80\x04K\x01.")
    (problem,) = _checked(folder)["problems"]
    with pytest.raises(SubmitterError) as refused:
        _worked(folder, tmp_path)
    assert (problem["code"], problem["hint"]) == (refused.value.code, refused.value.hint)
    assert problem["message"] in str(refused.value)


@pytest.mark.slow
def test_a_module_that_passes_check_gets_the_same_scores_from_a_worker(tmp_path: Path) -> None:
    source = textwrap.dedent("""
        class Scorer:
            def score(self, images, prompts):
                return [len(p) + im.getpixel((3, 3))[0] / 7 for im, p in zip(images, prompts)]
    """)
    folder, receipt = _module(tmp_path / "mine", source), tmp_path / "r.json"
    checked = _checked(folder, "--all", "--receipt", str(receipt))
    assert checked["error"] is None
    status, ledger = _worked(folder, tmp_path, receipt.read_bytes())
    assert status.state is State.PUBLISHED
    said = [event.reason for event in ledger.whole_events(status.submission.submission_id)]
    assert any("gave the same scores on its 295 pairs" in one for one in said), said

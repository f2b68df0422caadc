"""`check`: every problem at once, the dry run in words and for programs, and what a worker says."""

from __future__ import annotations

import json
import shutil
import textwrap
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import Result

from benchmarks.command_line import run
from benchmarks.demo.load import gecko_answers
from benchmarks.errors import SubmitterError
from benchmarks.prompt_sets.prompt_set import image_file
from benchmarks.registry import load_registry
from evaluator.__main__ import command_line
from evaluator.commands import check as command
from evaluator.commands import progress as sources
from evaluator.hub.source import HubSource
from evaluator.isolation.availability import PlainProcess, machine_isolation
from evaluator.isolation.backend import IsolationStatus, Probe
from evaluator.isolation.job import Limits
from evaluator.submission.receipts import read_receipt
from evaluator.submission.validate import examine_source
from evaluator.worker.scorer_role import ScorerRole
from evaluator.worker.worker import Worker
from leaderboard.ledger.ledger import Ledger
from leaderboard.records import RunResult, Status
from leaderboard.states import State
from leaderboard.store.interface import Store
from tests.evaluator.commands.submitting import code_of, record, typed
from tests.evaluator.submission.generations.made_images import made_of_demo, picture
from tests.kit.hub.server import HubServer
from tests.kit.pictures import encoded
from tests.kit.store import memory_store
from tests.kit.worker import ADA, desk_of, module_folder

NAME = "demo_ts2"
SMALL = ("--benchmark", NAME, "--pairs", "20")
OURS = ("--isolation", "none", *SMALL)
MANIFEST = f'name = "mine"\nbenchmarks = ["{NAME}"]\n'


def check(*words: object) -> Result:
    return typed("check", *words)


def scoring(body: str, before: str = "") -> str:
    lines = textwrap.indent(textwrap.dedent(body), "        ")
    return f"{before}\nclass Scorer:\n    def score(self, images, prompts):\n{lines}\n"


def module(place: Path, source: str, manifest: str = MANIFEST) -> Path:
    return module_folder(place / "m", source, manifest)


def plain(folder: Path) -> Path:
    assert typed("init", "plain", folder).exit_code == 0
    return folder


def told(*words: object, code: int = 0) -> dict[str, Any]:
    """What `check --json` says."""
    found: dict[str, Any] = record("check", *words, code=code)
    return found


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    """A skeleton that was checked, once for all tests that read what was said."""
    folder = plain(tmp_path_factory.mktemp("checked") / "my-metric")
    return folder, check(folder, *OURS)


@pytest.mark.slow
def test_all_that_an_author_asks_is_answered(good: tuple[Path, Result]) -> None:
    _, done = good
    assert done.exit_code == 0, done.output
    said = (
        "my-metric 1: 3 files", "plain template", "unsandboxed", "Scores", "Rank (Spearman ρ)",
        "Highest", "trust check", "Ready after", "1024 px", "croc_hum", "card", "6 h 00 min",
    )  # fmt: skip
    assert [one for one in said if one not in done.output] == []


def test_its_receipt_is_of_it_in_whatever_form(good: tuple[Path, Result], tmp_path: Path) -> None:
    folder, _ = good
    receipt = read_receipt((folder.parent / "my-metric.receipt.json").read_bytes())
    archive = shutil.make_archive(str(tmp_path / "packed"), "zip", folder)
    for source in (folder, Path(archive)):
        assert receipt.content_sha256 == examine_source(source, load_registry()).content_sha256
    assert (receipt.isolation, receipt.benchmark) == (("unsandboxed",), NAME)
    assert {"python", "assay", "numpy", "torch"} <= set(receipt.versions)


@pytest.mark.slow
def test_programs_are_told_the_same(tmp_path: Path) -> None:
    place = tmp_path / "elsewhere" / "r.json"
    said = told(plain(tmp_path / "my-metric"), *OURS, "--receipt", place)
    assert (said["name"], said["problems"], said["error"]) == ("my-metric", [], None)
    (run,) = said["runs"]
    assert (run["benchmark"], run["missing"], run["of"]) == (NAME, 0, 295)
    assert 0 <= run["lowest"] <= run["median"] <= run["highest"] <= 1
    assert said["can"] == ["score"]
    assert {one["benchmark"] for one in said["projections"]} == set(load_registry())
    assert said["receipt"] == json.loads(place.read_text())


def test_every_problem_is_listed_with_its_place_and_nothing_is_run(tmp_path: Path) -> None:
    manifest = 'name = "mine"\nversion = "1"\nrange = [2, 1]\nbenchmarks = ["none"]\nnmae = "x"\n'
    folder = module(tmp_path, "import os; os.mkdir('ran')", manifest)
    (folder / "old.pkl").write_bytes(b"\x80\x04K\x01.")
    (folder / "\x1b[2Jevil.py").write_text("")
    done = check(folder, *OURS)
    assert done.exit_code == 1
    assert len([line for line in done.output.splitlines() if line.endswith("]")]) >= 5
    assert [n for n in (3, 4, 5) if f"assay.toml:{n}: " in done.output] == [3, 4, 5]
    assert "old.pkl" in done.output and "\x1b" not in done.output
    problems = told(folder, *OURS, code=1)["problems"]
    assert {"assay.toml", "old.pkl"} < {problem["file"] for problem in problems}
    assert not (folder / "ran").exists() and not list(tmp_path.glob("*.receipt.json"))


@pytest.mark.parametrize(
    "line",
    ["range = [0.0]", 'range = "0-1"', "range = [true, 2]", "version = 2", 'version = "a b"',
     'authors = "Ada"', 'links = "example.org"'],
)  # fmt: skip
def test_a_value_of_the_wrong_kind_is_told_with_its_key_and_line(line: str, tmp_path: Path) -> None:
    folder = module(tmp_path, "", f'name = "mine"\n{line}\n')
    (problem,) = told(folder, *OURS, code=1)["problems"]
    assert (problem["file"], problem["line"]) == ("assay.toml", 2)
    assert problem["message"].startswith(f"{line.partition(' = ')[0]}: ")


@pytest.mark.slow
def test_an_error_of_the_code_is_told_with_its_line_and_the_end_of_the_log(tmp_path: Path) -> None:
    body = """
        print("[bold]on the way[/bold] \\x1b[31m")
        raise ValueError("[red]nothing[/red]")
    """
    done = check(module(tmp_path, scoring(body)), *OURS)
    assert done.exit_code == 1
    for said in ("[red]nothing[/red]", "scorer.py:6", "[scorer_raised]", "    | [bold]on the way"):
        assert said in done.output
    assert "\x1b" not in done.output and "evaluator submit" not in done.output
    assert not list(tmp_path.glob("*.receipt.json"))


@pytest.mark.slow
def test_what_might_not_rank_or_would_fail_at_a_worker_fails_the_check(tmp_path: Path) -> None:
    body = "import random\nreturn [random.random() for _ in prompts]"
    found = told(module(tmp_path, scoring(body)), *OURS, code=1)
    assert (found["error"], found["may_rank"], found["remarks"]) == (None, False, [])
    assert "repeated" in found["verdict"]
    (tmp_path / "m" / "scorer.py").write_text(scoring("return [None for _ in prompts]"))
    found = told(tmp_path / "m", *OURS, code=1)
    assert (found["error"]["code"], found["may_rank"]) == ("mostly_missing", False)


@pytest.mark.slow
def test_a_share_of_missing_scores_that_keeps_it_from_ranking_is_named(tmp_path: Path) -> None:
    body = """
        means = [im.convert("L").resize((1, 1)).getpixel((0, 0)) for im in images]
        return [None if mean % 4 == 0 else float(mean) for mean in means]
    """
    found = told(module(tmp_path, scoring(body)), *OURS, "--all", code=1)
    (run,) = found["runs"]
    share = run["missing"] / run["pairs"]
    assert 0.05 < share < 0.5
    assert (found["error"], found["may_rank"]) == (None, False)
    assert f"{100 * share:.0f} % of the scores on {NAME} are missing" in found["verdict"]


@pytest.mark.slow
def test_odd_scores_are_remarked_on_and_the_log_is_shown(tmp_path: Path) -> None:
    body = 'print("[b]still here[/b]" + "x" * 5000)\nreturn [2.0 for _ in prompts]'
    folder = module(tmp_path, scoring(body), f"{MANIFEST}range = [0.0, 1.0]\n")
    done = check(folder, *OURS)
    assert done.exit_code == 0, done.output
    for said in ("is the same", "range 0 to 1", "    | [b]still here[/b]x", "evaluator submit"):
        assert said in done.output
    assert "x" * 600 not in done.output.replace("\n", "")


def test_without_isolation_nothing_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refusal = Probe(ok=False, reason="No bubblewrap.", remedy="Install it.")
    nothing = IsolationStatus(None, (("bubblewrap", refusal),))
    monkeypatch.setattr("evaluator.metric.machine_isolation", lambda *_, **__: nothing)
    done = check(module(tmp_path, "import os; os.mkdir('ran')"), *SMALL)
    assert code_of(done) == "isolation_unavailable"
    assert all(said in str(done.exception) for said in ("bubblewrap", "--isolation none"))
    assert not (tmp_path / "m" / "ran").exists()


def test_a_stop_by_hand_ends_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "dry_run", stopped)
    done = check(plain(tmp_path / "m"), *OURS)
    assert done.exit_code == 130 and "Stopped." in done.output
    assert not list(tmp_path.glob("*.receipt.json"))


@pytest.mark.parametrize("name", ["nothing", "croc_hum"])
def test_a_benchmark_that_cannot_be_asked_is_named(name: str, tmp_path: Path) -> None:
    done = check(plain(tmp_path / "m"), "--isolation", "none", "--benchmark", name)
    assert isinstance(done.exception, SubmitterError)
    assert name in done.exception.message


@pytest.mark.slow
def test_a_repository_of_the_hub_is_checked(
    hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = scoring("return [float(len(p)) for p in prompts]").encode()
    hub.add("ada/metric", {"assay.toml": b'name = "mine"', "scorer.py": source}, kind="models")
    parse = partial(HubSource.parse, endpoint=hub.endpoint)
    monkeypatch.setattr(sources, "HubSource", SimpleNamespace(parse=parse))
    monkeypatch.chdir(tmp_path)
    seen = told("hub:ada/metric", *OURS)
    assert (seen["name"], seen["files"], seen["error"]) == ("mine", 2, None)
    assert (tmp_path / "mine.receipt.json").exists()


@pytest.mark.slow
@pytest.mark.isolation
def test_it_runs_in_a_real_box(tmp_path: Path) -> None:
    status = machine_isolation()
    if not status.ok:
        pytest.skip(status.reason)
    body = """
        try:
            socket.create_connection(("192.0.2.1", 80), timeout=1)
            there = 1.0
        except OSError:
            there = 0.0
        return [there + len(p) / 1000 for p in prompts]
    """
    said = told(module(tmp_path, scoring(body, "import socket")), *SMALL)
    assert said["runs"][0]["highest"] < 1
    assert set(said["isolation"]) == set(status.layers)
    assert "unsandboxed" not in said["isolation"]


# Generations --------------------------------------------------------------------------------------


def test_missing_generations_are_listed(tmp_path: Path) -> None:
    prompts, folder = tmp_path / "prompts.csv", tmp_path / "sd"
    prompts.write_text("prompt_id,prompt\na,a red cup\nb,two cups\n")
    assert typed("init", "generations", folder, "--prompts", prompts).exit_code == 0
    (folder / image_file("a", 42)).write_bytes(encoded(picture(1)))
    done = check(folder)
    assert done.exit_code == 1
    assert "1 of 2" in done.output and f"{image_file('b', 42)}: " in done.output
    (folder / image_file("b", 42)).write_bytes(encoded(picture(2)))
    assert told(folder)["usable"] == 2
    assert typed("init", "generations", tmp_path / "none").exit_code == 0
    assert "[no_images]" in check(tmp_path / "none").output


@pytest.mark.parametrize("packing", ["zip", "parquet"])
def test_generations_are_checked_in_whatever_form(packing: str, tmp_path: Path) -> None:
    prompts = list(gecko_answers().prompts["prompt_id"])
    one = made_of_demo()
    del one.files[one.rows[prompts[0], 1]["file"]]
    one.rows[prompts[0], 1].update(file=None, problem="nsfw")
    one.put((prompts[1], 1), encoded(picture(2)))
    if packing == "parquet":
        path = one.parquet(tmp_path / "a.parquet")
        words: tuple[str, ...] = ("--name", "p", "--benchmark", "demo_prompts")
    else:
        path, words = one.zipped(tmp_path / "a.zip"), ()
    said = told(path, *words, code=1)
    n = len(prompts)
    assert (said["wanted"], said["usable"], said["withheld"]) == (n, n - 2, {"nsfw": 1})
    assert said["counts"] == {"duplicate": 1}
    assert "[duplicate]" in check(path, *words).output


# What a worker says of a module is what `check` says: same code, same words, same scores ------------

FAULTS = {
    "too few scores": ("wrong_count", scoring("return [1.0]")),
    "nothing returned": ("wrong_type", scoring("pass")),
    "words": ("wrong_type", scoring("return ['1'] * len(prompts)")),
    "infinite": ("not_finite", scoring("return [float('inf')] * len(prompts)")),
    "another signature": ("scorer_raised", "class Scorer:\n    def score(self, one): return 1.0\n"),
    "an end of the process": ("scorer_raised", scoring("raise SystemExit(0)")),
    "a crash": ("crashed", scoring("import os; os.kill(os.getpid(), 11)")),
    "a package that is not there": ("import_failed", scoring("...", "import no_such_package")),
    "a syntax error": ("import_failed", "class Scorer:\n    def score(self, images, prompts)\n"),
    "another class": ("import_failed", scoring("...").replace("Scorer", "Metric")),
    "no method": ("import_failed", scoring("...").replace("score(", "scores(")),
    "a file that is not there": (
        "init_failed", scoring("...") + "    def __init__(self): open('weights.txt')\n",
    ),
}  # fmt: skip


def checked(folder: Path, *words: object, code: int = 1) -> dict[str, Any]:
    return told(folder, "--benchmark", NAME, "--isolation", "none", *words, code=code)


def worked(folder: Path, receipt: bytes | None = None) -> tuple[Status, Store]:
    """The status after a worker had it, and its store."""
    store, registry = memory_store(), load_registry()
    sent = (
        desk_of(store, registry)
        .submit_metric(folder, account=ADA, receipt=receipt)
        .status.submission
    )
    isolation = IsolationStatus(PlainProcess(), (("plain", Probe(ok=True, layers=("process",))),))
    limits = Limits(start_s=60.0, batch_s=60.0, job_s=300.0)
    role = ScorerRole(isolation, PlainProcess(), folder.parent / "scratch", limits)
    assert Worker("w", store, registry=registry, data=None, scorers=role).run(sent.submission_id)
    return Ledger(store).whole_status(sent.submission_id), store


@pytest.mark.parametrize("path", ["dir/" * 1000 + "x", "a" * 4000, "a" * 4000 + ".csv"])
def test_a_path_of_thousands_of_characters_is_cut(
    path: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["evaluator", "check", path, "--benchmark", NAME])
    try:
        code: object = run(command_line())
    except SystemExit as end:
        code = end.code
    assert code == 1
    printed = capfd.readouterr()
    told = printed.out + printed.err
    assert "Traceback" not in told and len(told) < 1000
    assert f"{path[:100]}" in told and "…" in told


@pytest.mark.slow
def test_names_with_emoji_codes_and_markup_are_printed_as_they_are(tmp_path: Path) -> None:
    folder = tmp_path / ":smile: [red]"
    folder.mkdir()
    source = scoring("return [float(len(p)) for p in prompts]", 'print(":smile: [red]x[/red]")')
    done = check(module(folder, source), *OURS)
    assert done.exit_code == 0, done.output
    assert done.output.count(":smile: [red]") >= 3, "log, receipt and command"
    (folder / "m" / "[bold]:fire:.pkl").write_bytes(b"")
    assert "[bold]:fire:.pkl" in check(folder / "m", *OURS).output


def test_the_limits_are_those_of_the_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSAY_SCORER_BATCH_S", "1")
    found = checked(module(tmp_path, scoring("import time; time.sleep(60)")), "--pairs", "8")
    assert found["error"]["code"] == "timeout"
    assert "longer than 1 s" in found["error"]["message"]


@pytest.mark.parametrize("command", ["check", "worker"])
def test_limits_that_contradict_each_other_are_refused_at_the_start(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSAY_SCORER_JOB_S", "60")
    words = {
        "check": (module(tmp_path, scoring("return [0.5 for _ in prompts]")), *OURS),
        "worker": ("--once", "--store", tmp_path / "store"),
    }
    done = typed(command, *words[command])
    assert (done.exit_code, code_of(done)) == (1, "bad_setting")


@pytest.mark.first_quick
@pytest.mark.parametrize("fault", FAULTS)
def test_a_module_that_fails_in_a_worker_fails_alike_in_check(fault: str, tmp_path: Path) -> None:
    code, source = FAULTS[fault]
    folder = module(tmp_path, source)
    error = checked(folder, "--pairs", "40")["error"]
    status, _ = worked(folder)
    assert (status.state, status.code) == (State.FAILED, code)
    assert error == error | {"code": code, "message": status.reason, "hint": status.hint}


REMADE = {
    "weights without a seed": "import numpy; self.shift = 1e6 * numpy.random.default_rng().random()",
    "the order of hashes": "self.shift = hash('a red circle') % 1_000_003",
    "the number of its process": "import os; self.shift = 100 * os.getpid()",
}
"""Constructors of scorers that are another each time that they are made."""


@pytest.mark.slow
@pytest.mark.parametrize("kind", REMADE)
def test_what_is_another_each_time_that_it_is_made_ranks_neither_in_check_nor_in_a_worker(
    kind: str, tmp_path: Path
) -> None:
    source = scoring(
        "return [len(p) + self.shift for p in prompts]",
        before=f"class Made:\n    def __init__(self):\n        {REMADE[kind]}\n",
    ).replace("class Scorer:", "class Scorer(Made):")
    folder = module(tmp_path, source)
    found = checked(folder, "--all")
    assert (found["error"], found["may_rank"]) == (None, False)
    status, store = worked(folder)
    assert status.state is State.PUBLISHED
    path = f"results/{status.submission.submission_id}/{NAME}.json"
    trust = RunResult.model_validate_json(store.public.read(path)).trust
    assert trust is not None
    failed = [one["name"] for one in found["trust"]["checks"] if one["passed"] is False]
    assert failed == [one.name for one in trust.failed] == ["run"]
    assert trust.why_not in found["verdict"]


@pytest.mark.parametrize(
    ("manifest", "file"),
    [
        ("name = 3", ""), ('name = "m"\nnmae = "x"', ""), ('name = "m"', "weights.pkl"),
        ('name = "m"\nentry_point = "other:Scorer"', ""), ('name = "m"\nbenchmarks = ["none"]', ""),
        ('name = "m"\nweights = "w.safetensors"', ""),
    ],
)  # fmt: skip
def test_what_the_desk_refuses_check_lists(manifest: str, file: str, tmp_path: Path) -> None:
    folder = module(tmp_path, scoring("..."), manifest)
    if file:
        (folder / file).write_bytes(b"\x80\x04K\x01.")
    (problem,) = checked(folder)["problems"]
    with pytest.raises(SubmitterError) as refused:
        worked(folder)
    assert (problem["code"], problem["hint"]) == (refused.value.code, refused.value.hint)
    assert problem["message"] in str(refused.value)


@pytest.mark.slow
def test_a_module_that_passes_check_gets_the_same_scores_from_a_worker(tmp_path: Path) -> None:
    body = "return [len(p) + im.getpixel((3, 3))[0] / 7 for im, p in zip(images, prompts)]"
    folder, receipt = module(tmp_path, scoring(body)), tmp_path / "r.json"
    assert checked(folder, "--all", "--receipt", receipt, code=0)["error"] is None
    status, store = worked(folder, receipt.read_bytes())
    assert status.state is State.PUBLISHED
    said = [event.reason for event in Ledger(store).whole_events(status.submission.submission_id)]
    assert any("same scores" in one and "295" in one for one in said), said


OUTPUTS = f"{MANIFEST}[outputs.good]\nrange = [0, 9]\n[outputs.odd]\nkinds = ['alignment']\n"


@pytest.mark.slow
def test_every_output_is_checked_and_a_receipt_is_of_all_of_them(tmp_path: Path) -> None:
    body = "return [(im.getpixel((3, 3))[0] / 7, len(p)) for im, p in zip(images, prompts)]"
    folder, receipt = module(tmp_path, scoring(body), OUTPUTS), tmp_path / "r.json"
    found = checked(folder, "--all", "--receipt", receipt, code=0)
    assert [run["metric"] for run in found["runs"]] == ["mine-good", "mine-odd"]
    assert {row["metric"] for row in found["runs"][1]["rows"]} == {"mine-odd"}
    assert (found["trust"], set(found["trust_of_outputs"])) == (None, {"mine-good", "mine-odd"})
    remarks = " ".join(found["remarks"])
    assert "mine-good: " in remarks and "range 0 to 9" in remarks
    assert "mine-odd: " not in remarks or "range" not in remarks.partition("mine-odd: ")[2]
    status, store = worked(folder, receipt.read_bytes())
    assert status.state is State.PUBLISHED
    said = [event.reason for event in Ledger(store).whole_events(status.submission.submission_id)]
    assert any("same scores" in one and "295" in one for one in said), said


@pytest.mark.slow
def test_what_one_output_fails_is_said_of_that_one(tmp_path: Path) -> None:
    body = "import random\nreturn [(len(p), random.random()) for p in prompts]"
    found = told(module(tmp_path, scoring(body), OUTPUTS), *OURS, code=1)
    assert not found["may_rank"]
    assert "mine-odd: score changes" in found["verdict"] and "mine-good" not in found["verdict"]
    done = check(tmp_path / "m", *OURS)
    assert "Trust of mine-good" in done.output and "Trust of mine-odd" in done.output

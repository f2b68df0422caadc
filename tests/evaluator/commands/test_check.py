"""`check`: every problem at once, the dry run in words and for programs, and how it ends."""

from __future__ import annotations

import json
import shutil
import textwrap
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from benchmarks.demo.load import gecko_answers
from benchmarks.errors import PlatformError, SubmitterError
from benchmarks.prompt_sets.prompt_set import image_file
from benchmarks.registry import load_registry
from evaluator.__main__ import command_line
from evaluator.commands import check as command
from evaluator.commands import source as sources
from evaluator.hub.source import HubSource
from evaluator.isolation.backend import IsolationStatus, Probe
from evaluator.isolation.gate import machine_isolation
from evaluator.submission.receipts import read_receipt
from evaluator.submission.validate import examine_source
from tests.evaluator.scorers.model_repositories import hub_of_models
from tests.evaluator.submission.generations.made_images import encoded, made_of_demo, picture

SMALL = ("--benchmark", "demo_ts2", "--pairs", "20")
OURS = ("--isolation", "none", *SMALL)


def _check(*words: object) -> Result:
    runner = CliRunner(env={"COLUMNS": "200"})
    return runner.invoke(command_line(), ["check", *map(str, words)])


def _module(folder: Path, source: str, manifest: str = 'name = "mine"\n') -> Path:
    folder.mkdir()
    (folder / "assay.toml").write_text(manifest)
    (folder / "scorer.py").write_text(textwrap.dedent(source))
    return folder


def _plain(folder: Path) -> Path:
    assert CliRunner().invoke(command_line(), ["init", "plain", str(folder)]).exit_code == 0
    return folder


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    """A skeleton that was checked, once for all tests that read what was said."""
    folder = _plain(tmp_path_factory.mktemp("checked") / "my-metric")
    return folder, _check(folder, *OURS)


@pytest.mark.slow
def test_all_that_an_author_asks_is_answered(good: tuple[Path, Result]) -> None:
    _, done = good
    assert done.exit_code == 0, done.output
    for said in (
        "my-metric 1: 3 files",
        "Its code is that of the plain template, unchanged.",
        "Isolated by: unsandboxed",
        "Scores",
        "Rank (Spearman ρ)",
        "Highest and lowest scores",
        "Passed every trust check",
        "Ready after",
        "1024 px",
        "croc_hum",
        "from the card",
        "neither data here nor counts in its card",
        "a worker gives a submission 6.0 h",
    ):
        assert said in done.output, said


def test_its_receipt_lies_beside_it_and_is_of_it(good: tuple[Path, Result]) -> None:
    folder, _ = good
    receipt = read_receipt((folder.parent / "my-metric.receipt.json").read_bytes())
    assert receipt.content_sha256 == examine_source(folder, load_registry()).content_sha256
    assert receipt.isolation == ("unsandboxed",)
    assert receipt.benchmark == "demo_ts2"
    assert {"python", "assay", "numpy", "torch"} <= set(receipt.versions)


@pytest.mark.slow
def test_programs_are_told_the_same(tmp_path: Path) -> None:
    folder = _plain(tmp_path / "my-metric")
    place = tmp_path / "elsewhere" / "r.json"
    done = _check(folder, *OURS, "--json", "--receipt", place)
    assert done.exit_code == 0, done.output
    said: dict[str, Any] = json.loads(done.stdout)
    assert (said["name"], said["problems"], said["error"]) == ("my-metric", [], None)
    (run,) = said["runs"]
    assert (run["benchmark"], run["missing"], run["of"]) == ("demo_ts2", 0, 295)
    assert 0 <= run["lowest"] <= run["median"] <= run["highest"] <= 1
    assert said["can"] == ["score"]
    assert {one["benchmark"] for one in said["projections"]} == set(load_registry())
    assert said["receipt"] == json.loads(place.read_text())


def test_every_problem_is_listed_with_its_place_and_nothing_is_run(tmp_path: Path) -> None:
    folder = _module(
        tmp_path / "m",
        "print(1)",
        'name = "mine"\nversion = "1"\nrange = [2.0, 1.0]\nbenchmarks = ["nothing"]\nnmae = "x"\n',
    )
    (folder / "old.pkl").write_bytes(b"\x80\x04K\x01.")
    (folder / "\x1b[2Jevil.py").write_text("")
    done = _check(folder, *OURS)
    assert done.exit_code == 1
    lines = [line for line in done.output.splitlines() if line.endswith("]")]
    assert len(lines) >= 5, done.output
    assert [n for n in (3, 4, 5) if f"assay.toml:{n}: " in done.output] == [3, 4, 5]
    assert "old.pkl" in done.output
    assert "\x1b" not in done.output
    assert "nothing was run" in done.output
    assert not (tmp_path / "mine.receipt.json").exists()


def test_problems_are_told_to_programs(tmp_path: Path) -> None:
    folder = _module(tmp_path / "m", "", "name = 3\n")
    done = _check(folder, *OURS, "--json")
    assert done.exit_code == 1
    (problem,) = json.loads(done.stdout)["problems"]
    assert problem["file"] == "assay.toml"


def test_an_error_of_the_code_is_told_with_its_line_and_the_end_of_the_log(tmp_path: Path) -> None:
    folder = _module(
        tmp_path / "m",
        """
        class Scorer:
            def score(self, images, prompts):
                print("[bold]on the way[/bold] \\x1b[31m")
                raise ValueError("[red]no such thing[/red]")
        """,
    )
    done = _check(folder, *OURS)
    assert done.exit_code == 1
    assert "[red]no such thing[/red]" in done.output
    assert "scorer.py:5" in done.output
    assert "[scorer_raised]" in done.output
    assert "    | [bold]on the way[/bold]" in done.output
    assert "\x1b" not in done.output
    assert not (tmp_path / "mine.receipt.json").exists()


@pytest.mark.slow
def test_what_might_not_rank_ends_with_one_and_says_why(tmp_path: Path) -> None:
    folder = _module(
        tmp_path / "m",
        """
        import random
        class Scorer:
            def score(self, images, prompts):
                return [random.random() for _ in prompts]
        """,
    )
    done = _check(folder, *OURS)
    assert done.exit_code == 1
    assert "Would not rank: score changes when repeated" in done.output


def test_an_archive_has_the_receipt_of_its_folder(
    good: tuple[Path, Result], tmp_path: Path
) -> None:
    folder, _ = good
    archive = shutil.make_archive(str(tmp_path / "packed"), "zip", folder)
    seen = examine_source(Path(archive), load_registry())
    receipt = read_receipt((folder.parent / "my-metric.receipt.json").read_bytes())
    assert seen.content_sha256 == receipt.content_sha256


def test_without_isolation_nothing_is_run_and_the_way_out_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusal = Probe(ok=False, reason="There is no bubblewrap.", remedy="Install bubblewrap.")
    nothing = IsolationStatus(None, (("bubblewrap", refusal),))
    monkeypatch.setattr(command, "machine_isolation", lambda *_, **__: nothing)
    folder = _module(tmp_path / "m", "import os; os.mkdir('ran')")
    done = _check(folder, *SMALL)
    assert isinstance(done.exception, PlatformError)
    assert done.exception.code == "isolation_unavailable"
    assert "There is no bubblewrap." in str(done.exception)
    assert "--isolation none" in str(done.exception)


def test_a_stop_by_hand_ends_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "dry_run", stopped)
    done = _check(_plain(tmp_path / "m"), *OURS)
    assert done.exit_code == 130
    assert "Stopped." in done.output
    assert not list(tmp_path.glob("*.receipt.json"))


@pytest.mark.parametrize("name", ["nothing", "croc_hum"])
def test_a_benchmark_that_cannot_be_asked_is_an_error_in_words(name: str, tmp_path: Path) -> None:
    done = _check(_plain(tmp_path / "m"), "--isolation", "none", "--benchmark", name)
    assert isinstance(done.exception, SubmitterError)
    assert name in done.exception.message


def test_missing_generations_are_listed(tmp_path: Path) -> None:
    prompts = tmp_path / "prompts.csv"
    prompts.write_text("prompt_id,prompt\na,a red cup\nb,two cups\n")
    folder = tmp_path / "sd"
    words = ["init", "generations", str(folder), "--prompts", str(prompts)]
    assert CliRunner().invoke(command_line(), words).exit_code == 0
    (folder / image_file("a", 42)).write_bytes(encoded(picture(1)))
    done = _check(folder)
    assert done.exit_code == 1
    assert "1 of 2 images are there and right" in done.output
    assert f"{image_file('b', 42)}: " in done.output
    (folder / image_file("b", 42)).write_bytes(encoded(picture(2)))
    done = _check(folder, "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["usable"] == 2


def test_generations_without_a_wanted_image_are_refused(tmp_path: Path) -> None:
    words = ["init", "generations", str(tmp_path / "sd")]
    assert CliRunner().invoke(command_line(), words).exit_code == 0
    done = _check(tmp_path / "sd")
    assert done.exit_code == 1
    assert "[no_images]" in done.output


@pytest.mark.parametrize("packing", ["folder", "zip", "tar", "parquet"])
def test_generations_are_checked_in_whatever_form(packing: str, tmp_path: Path) -> None:
    prompts, seeds = list(gecko_answers().prompts["prompt_id"]), (1,)
    one = made_of_demo(seeds)
    del one.files[one.rows[prompts[0], 1]["file"]]
    one.rows[prompts[0], 1].update(file=None, problem="nsfw")
    one.files[image_file(prompts[1], 1)] = encoded(picture(2))
    words: tuple[str, ...] = ()
    if packing == "folder":
        path = one.folder(tmp_path / "f")
    elif packing == "zip":
        path = one.zipped(tmp_path / "a.zip")
    elif packing == "tar":
        path = one.tarred(tmp_path / "a.tgz")
    else:
        path = one.parquet(tmp_path / "a.parquet")
        words = ("--name", "p", "--benchmark", "demo_prompts")
    done = _check(path, "--json", *words)
    assert done.exit_code == 1
    told = json.loads(done.stdout)
    n = len(prompts) * len(seeds)
    assert (told["wanted"], told["usable"], told["withheld"]) == (n, n - 2, {"nsfw": 1})
    assert told["counts"] == {"duplicate": 1}
    done = _check(path, *words)
    assert "[duplicate]" in done.output
    assert "Draw each prompt and seed by itself" in done.output


@pytest.mark.slow
@pytest.mark.isolation
def test_it_runs_in_a_real_box(tmp_path: Path) -> None:
    status = machine_isolation()
    if not status.ok:
        pytest.skip(status.reason)
    folder = _module(
        tmp_path / "m",
        """
        import socket
        class Scorer:
            def score(self, images, prompts):
                try:
                    socket.create_connection(("192.0.2.1", 80), timeout=1)
                    there = 1.0
                except OSError:
                    there = 0.0
                return [there + len(p) for p in prompts]
        """,
    )
    done = _check(folder, *SMALL, "--json")
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert said["runs"][0]["lowest"] % 1 == 0
    assert set(said["isolation"]) == set(status.layers)
    assert "unsandboxed" not in said["isolation"]


@pytest.mark.slow
def test_missing_scores_stand_in_the_way_of_a_rank(tmp_path: Path) -> None:
    folder = _module(
        tmp_path / "m",
        """
        class Scorer:
            def score(self, images, prompts):
                return [None for _ in prompts]
        """,
    )
    done = _check(folder, *OURS, "--json")
    assert done.exit_code == 1
    said = json.loads(done.stdout)
    assert (said["error"], said["may_rank"], said["remarks"]) == (None, False, [])
    assert "100 % of the scores on demo_ts2 are missing" in said["verdict"]
    assert "at most 2 %" in said["verdict"]


@pytest.mark.slow
def test_scores_that_are_all_the_same_are_remarked_on_and_the_log_is_shown(tmp_path: Path) -> None:
    folder = _module(
        tmp_path / "m",
        """
        class Scorer:
            def score(self, images, prompts):
                print("[b]still here[/b]" + "x" * 5000)
                return [1.0 for _ in prompts]
        """,
    )
    done = _check(folder, *OURS)
    assert done.exit_code == 0, done.output
    assert "Every score on demo_ts2 is the same" in done.output
    assert "    | [b]still here[/b]x" in done.output
    assert "x" * 600 not in done.output.replace("\n", "")
    assert "python -m evaluator submit" in done.output


@pytest.mark.slow
def test_scores_outside_the_range_of_the_manifest_are_counted(tmp_path: Path) -> None:
    folder = _module(
        tmp_path / "m",
        """
        class Scorer:
            def score(self, images, prompts):
                return [float(len(prompt)) for prompt in prompts]
        """,
        'name = "mine"\nrange = [0.0, 1.0]\n',
    )
    said = json.loads(_check(folder, *OURS, "--json").stdout)
    pairs = said["runs"][0]["pairs"]
    assert said["remarks"] == [
        f"{pairs} of {pairs} scores lie outside the range 0 to 1 that assay.toml states: correct it, "
        "or leave it out."
    ]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("range = [0.0]", "range: must be two finite numbers in a list"),
        ("range = [0, 1, 2]", "range: must be two finite numbers in a list"),
        ('range = "0-1"', "range: must be two finite numbers in a list"),
        ("range = [true, 2]", "range: must be two finite numbers in a list"),
        ("version = 2", "version: must be text, in quotes"),
        ('version = "a b"', "version: must be 1 to 32 letters, digits and . _ + -"),
        ('authors = "Ada"', "authors: must be a list, in square brackets"),
        ('links = "example.org"', "links: must be a table"),
    ],
)
def test_a_value_of_the_wrong_kind_is_told_in_the_words_of_the_file(
    line: str, said: str, tmp_path: Path
) -> None:
    done = _check(_module(tmp_path / "m", "", f'name = "mine"\n{line}\n'), *OURS)
    assert done.exit_code == 1
    assert f"assay.toml:2: {said}" in done.output


def test_a_failure_ends_with_what_it_means(tmp_path: Path) -> None:
    done = _check(_module(tmp_path / "m", "class Scorer"), *OURS)
    assert done.exit_code == 1
    assert "It failed: Importing scorer raised SyntaxError" in done.output
    assert "would fail in a worker" in done.output
    assert "submit" not in done.output


@pytest.mark.slow
def test_a_repository_of_the_hub_is_checked_like_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = (
        "class Scorer:\n  def score(self, images, prompts): return [float(len(p)) for p in prompts]"
    )
    with hub_of_models(monkeypatch) as hub:
        files = {"assay.toml": b'name = "mine"', "scorer.py": source.encode()}
        hub.add("ada/metric", files)
        monkeypatch.setattr(
            sources,
            "HubSource",
            SimpleNamespace(parse=partial(HubSource.parse, endpoint=hub.endpoint)),
        )
        monkeypatch.chdir(tmp_path)
        done = _check("hub:ada/metric", *OURS, "--json")
    assert done.exit_code == 0, done.output
    seen = json.loads(done.stdout)
    assert (seen["name"], seen["files"], seen["error"]) == ("mine", 2, None)
    assert (tmp_path / "mine.receipt.json").exists()

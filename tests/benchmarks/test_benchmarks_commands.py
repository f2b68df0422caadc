"""`python -m benchmarks`: what people and programs get, and how each command ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest

from benchmarks.__main__ import main
from benchmarks.errors import AssayError, PlatformError, TransientError
from benchmarks.schema import Benchmark
from benchmarks.sources.folder import DataFile
from benchmarks.sources.remote import Hub
from tests.benchmarks.sources.fetching import REPO, Remote, on_hub
from tests.benchmarks.toy import Toy
from tests.hub.server import HubServer, running_hub

ANSWERS = b'pair_id,prompt\na,"a cat, sitting"\nb,ein gro\xc3\x9fer Hund\n'
FILES = (
    on_hub("remote/answers.csv", role="answers"),
    on_hub("remote/images", folder=True, size=4000),
    DataFile(path="remote/s.csv", role="answers", supplied="Ask the authors.", optional=True),
)
WORDS = ("remote ", "toy ")


@pytest.fixture
def hub() -> Iterator[HubServer]:
    with running_hub() as server:
        server.add(REPO, {"answers.csv": ANSWERS, "images/a.png": b"A", "images/b.png": b"BB"})
        yield server


@dataclass
class Ended:
    code: int
    out: str
    err: str


Call = Callable[..., Ended]


@pytest.fixture
def call(
    hub: HubServer, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Call:
    """Run the command line with two small benchmarks and the test Hub."""
    remote = Remote(FILES)
    remote.card = remote.card.model_copy(update={"counts": {"pairs": 3}, "skills": {"s": "Skill"}})
    registry: dict[str, Benchmark] = {"remote": remote, "toy": Toy()}
    monkeypatch.setattr("benchmarks.commands.common.load_registry", lambda: registry)
    monkeypatch.setattr("benchmarks.commands.common.load_prompt_sets", dict)
    monkeypatch.setattr(
        "benchmarks.commands.fetch.Hub", lambda: Hub(hub.endpoint, sleep=lambda seconds: None)
    )
    monkeypatch.delenv("ASSAY_DATA", raising=False)
    monkeypatch.setenv("COLUMNS", "200")

    def run(*words: object) -> Ended:
        monkeypatch.setattr("sys.argv", ["benchmarks", *map(str, words)])
        try:
            code = main()
        except SystemExit as end:
            code = int(end.code or 0)
        return Ended(code, *capfd.readouterr())

    return run


def test_a_subset_is_said_to_be_one(call: Call, tmp_path: Path) -> None:
    end = call("fetch", "remote", "--data", tmp_path, "--subset", 1)
    assert "1 images to try out" in end.err
    assert "remote itself still needs all of them" in end.err
    assert (tmp_path / "remote/subset/images/a.png").read_bytes() == b"A"
    both = call("fetch", "remote", "--data", tmp_path, "--subset", 1, "--answers-only")
    assert both.code == 2


@pytest.mark.parametrize(
    ("spoilt", "code", "says"),
    [
        ({"status": 404, "headers": {"X-Error-Code": "RepoNotFound"}}, 1, "unknown_repository"),
        ({"status": 403, "headers": {"X-Error-Code": "GatedRepo"}}, 1, "gated_repository"),
        ({"status": 403}, 1, "no_access"),
        ({"status": 502, "times": 6}, 3, "server_unavailable"),
    ],
)
def test_an_error_is_one_message_and_the_right_code(
    call: Call, hub: HubServer, tmp_path: Path, spoilt: dict[str, object], *, code: int, says: str
) -> None:
    hub.spoil("/api/", **spoilt)
    end = call("fetch", "remote", "--data", tmp_path)
    assert end.code == code
    assert f"error [{says}]" in end.err
    assert "Traceback" not in end.err
    assert not (tmp_path / "remote").exists()


@pytest.mark.slow
def test_the_whole_program_fetches_and_describes(
    hub: HubServer, tmp_path: Path, assay_data: Path
) -> None:
    """In a process of its own, with the address of the Hub from the environment."""
    metadata = (assay_data / "ts2/metadata.csv").read_bytes()
    (tmp_path / "ts2").mkdir()
    (tmp_path / "ts2/metadata.csv").write_bytes(metadata)
    hub.add("saxon/T2IScoreScore", {"images/000-00.jpg": b"picture"})
    environment = {**os.environ, "HF_ENDPOINT": hub.endpoint, "ASSAY_DATA": str(tmp_path)}
    words = [sys.executable, "-m", "benchmarks"]
    done = subprocess.run(
        [*words, "fetch", "ts2"], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == ""
    assert "ts2/metadata.csv: there" in done.stderr
    assert (tmp_path / "ts2/images/000-00.jpg").read_bytes() == b"picture"
    told = subprocess.run(
        [*words, "describe", "ts2", "--json"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    described = json.loads(told.stdout)
    assert [file["state"] for file in described["files"]] == ["there", "there"]
    assert described["problem"] is None


def test_describe_works_without_data(call: Call) -> None:
    end = call("describe", "remote")
    assert end.code == 0
    assert "Not at hand: remote needs remote/answers.csv in a folder of data" in end.out
    assert "The board is ordered by Mean" in end.out
    assert "Skill" in end.out


def test_describe_shows_each_file_and_the_counts(call: Call, tmp_path: Path) -> None:
    before = json.loads(call("describe", "remote", "--data", tmp_path, "--json").out)
    assert [f["state"] for f in before["files"]] == ["missing"] * 3
    assert before["files"][1]["declared_bytes"] == 4000
    assert before["files"][2]["how"] == "Ask the authors."
    assert before["counts"] == {"pairs": {"found": None, "expected": 3}}
    assert before["problem"]["code"] == "data_missing"

    call("fetch", "remote", "--data", tmp_path)
    after = json.loads(call("describe", "remote", "--data", tmp_path, "--json").out)
    assert [f["state"] for f in after["files"]] == ["there", "there", "missing"]
    assert [f["bytes"] for f in after["files"]] == [len(ANSWERS), 3, None]
    assert after["counts"] == {
        "pairs": {"found": 2, "expected": 3},
        "clusters": {"found": 2, "expected": None},
    }
    assert after["problem"] is None
    shown = call("describe", "remote", "--data", tmp_path).out
    assert "remote/answers.csv" in shown
    assert "53 bytes" in shown


def test_describe_of_broken_data_ends_with_an_error(call: Call, tmp_path: Path) -> None:
    (tmp_path / "remote").mkdir()
    (tmp_path / "remote/answers.csv").write_text("x\n1\n")
    end = call("describe", "remote", "--data", tmp_path)
    assert end.code == 1
    assert "has no column pair_id" in end.out
    assert "error [data_malformed]" in end.err


def test_prompts_are_written_in_each_format(call: Call, tmp_path: Path) -> None:
    call("fetch", "remote", "--data", tmp_path)
    csv = call("prompts", "remote", "--data", tmp_path)
    assert csv.code == 0
    assert csv.out == ('prompt_id,prompt,split,skills\na,"a cat, sitting",,\nb,ein großer Hund,,\n')
    lines = call("prompts", "remote", "--data", tmp_path, "--format", "jsonl").out.splitlines()
    assert json.loads(lines[1]) == {
        "prompt_id": "b",
        "prompt": "ein großer Hund",
        "split": "",
        "skills": "",
    }
    out = tmp_path / "p.parquet"
    assert call("prompts", "remote", "--data", tmp_path, "--out", out).code == 0
    assert list(pd.read_parquet(out)["prompt"]) == ["a cat, sitting", "ein großer Hund"]


def test_prompts_overwrite_only_when_told(call: Call, tmp_path: Path) -> None:
    call("fetch", "remote", "--data", tmp_path)
    out = tmp_path / "prompts.csv"
    out.write_text("mine")
    end = call("prompts", "remote", "--data", tmp_path, "--out", out)
    assert (end.code, out.read_text()) == (1, "mine")
    assert "error [file_exists]" in end.err
    given = tmp_path / "remote/answers.csv"
    end = call("prompts", "remote", "--data", tmp_path, "--out", given, "--force")
    assert (end.code, given.read_bytes()) == (1, ANSWERS)
    assert "error [output_is_input]" in end.err
    end = call("prompts", "remote", "--data", tmp_path, "--out", out, "--force")
    assert end.code == 0
    assert f"2 prompts in {out}" in end.err
    assert out.read_text().startswith("prompt_id,")


def test_list_says_what_is_at_hand(call: Call, tmp_path: Path) -> None:
    call("fetch", "remote", "--data", tmp_path)
    remote, toy = json.loads(call("list", "--data", tmp_path, "--json").out)
    assert (remote["answers"], remote["images"], remote["prompts"]) == (True, True, True)
    assert (toy["name"], toy["prompts"]) == ("toy", False)
    assert "prompts" in call("list").out


def test_a_broken_benchmark_stands_in_the_list_beside_the_others(
    call: Call, tmp_path: Path
) -> None:
    (tmp_path / "remote").mkdir()
    (tmp_path / "remote/answers.csv").write_text("x\n1\n")
    end = call("list", "--data", tmp_path)
    assert end.code == 0
    remote, toy = (
        next(n for n in map(str.strip, end.out.splitlines()) if n.startswith(w)) for w in WORDS
    )
    assert remote.split()[1:4:2] == ["broken", "broken"]
    assert toy.split()[1] == "yes"
    assert end.out.count("has no column pair_id") == 1
    lines = json.loads(call("list", "--data", tmp_path, "--json").out)
    assert lines[0]["answers"] is False
    assert lines[0]["problems"]["answers"]["code"] == "data_malformed"
    assert "has no column pair_id" in lines[0]["problems"]["answers"]["text"]
    assert lines[1]["problems"] == {}


@pytest.mark.parametrize("kind", [PlatformError, TransientError])
def test_whatever_error_of_ours_a_benchmark_raises_stays_with_it(
    call: Call, monkeypatch: pytest.MonkeyPatch, kind: type[AssayError]
) -> None:
    def fail(*_: object) -> None:
        raise kind("odd", "Something odd.")

    monkeypatch.setattr(Toy, "answers", fail)
    assert call("list").code == 0
    assert json.loads(call("list", "--json").out)[1]["problems"]["answers"] == {
        "code": "odd",
        "text": "Something odd.",
    }


@pytest.mark.parametrize("command", ["list", "describe", "fetch", "prompts", "questions"])
def test_every_help_text_has_an_example(call: Call, command: str) -> None:
    end = call(command, "--help")
    assert end.code == 0
    assert f"Example: python -m benchmarks {command}" in end.out


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["fetch", "remote"], 1, "error [no_folder]"),
        (["fetch", "nope", "--data", "."], 1, "error [unknown_benchmark]"),
        (["fetch", "toy", "--data", "."], 0, "toy needs no files."),
        (["list", "--data", "nowhere"], 1, "error [no_folder]"),
        (["prompts", "toy"], 1, "error [no_prompts]"),
        (["prompts", "remote", "--data", "."], 1, "error [data_missing]"),
        (["prompts", "remote", "--format", "parquet"], 2, ""),
    ],
)
def test_what_cannot_be_had_says_why(
    call: Call,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    words: list[str],
    code: int,
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    end = call(*words)
    assert (end.code, end.out) == (code, "")
    assert said in end.err


def test_fetch_tells_people_and_programs_what_it_did(
    call: Call, hub: HubServer, tmp_path: Path
) -> None:
    end = call("fetch", "remote", "--data", tmp_path / "a")
    assert (end.code, end.out) == (0, "")
    lines = end.err.splitlines()
    assert sorted(lines[:2]) == [
        "remote/answers.csv: fetched, 53 bytes",
        "remote/images: fetched, 2 files, 3 bytes",
    ]
    assert lines[2].startswith("authors/data at commit ")
    assert lines[3] == "May be supplied: remote/s.csv. Ask the authors."
    done = json.loads(call("fetch", "remote", "--data", tmp_path / "b", "--json").out)
    assert done["downloaded"] == {"remote/answers.csv": len(ANSWERS), "remote/images": 3}
    assert done["commits"] == {REPO: hub.repositories[REPO].branches["main"]}
    again = json.loads(call("fetch", "remote", "--data", tmp_path / "b", "--json").out)
    assert again["there"] == ["remote/answers.csv", "remote/images"]
    assert call("fetch", "remote", "--data", tmp_path / "c", "--answers-only").code == 0
    names = sorted(p.name for p in (tmp_path / "c/remote").iterdir())
    assert names == ["answers.csv", "pins.json"]

"""`python -m benchmarks`: what people and programs get, and how each command ends."""

from __future__ import annotations

import json
import os
import pickle
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import typer
from rich.text import Text

from benchmarks.__main__ import main
from benchmarks.command_line import NOBODY_READS, errors, run, with_help_as_started
from benchmarks.errors import AssayError, PlatformError, SubmitterError, TransientError
from benchmarks.schema import Answers, Benchmark
from benchmarks.sources.folder import DataFile
from benchmarks.sources.remote import Hub
from tests.benchmarks.sources.fetching import REPO, Remote, on_hub
from tests.kit.hub.server import HubServer, running_hub
from tests.kit.toy import Toy

REPOSITORY = Path(__file__).resolve().parents[2]
ANSWERS = b'pair_id,prompt\na,"a cat, sitting"\nb,ein gro\xc3\x9fer Hund\n'
FILES = (
    on_hub("remote/answers.csv", role="answers"),
    on_hub("remote/images", folder=True, size=4000),
    DataFile(path="remote/s.csv", role="answers", supplied="Ask the authors.", optional=True),
)
MODELS = ("DALLE_3", "SDXL_Turbo", "DeepFloyd_I_XL_v1", "Midjourney_6")
COLUMNS = ("t", "t_p", "w", "w_p", "a_wins", "b_wins")
PAIRS = pd.DataFrame(
    [
        (a, b, -17.5684 - n, 1.3e-119 * (n + 1), 154780.5 + n, 2.4e-87, 0.6294, 0.1831)
        for n, (a, b) in enumerate((a, b) for a in MODELS for b in MODELS if a < b)
    ],
    columns=["a", "b", *COLUMNS],
)
NAMES_ONLY = pd.DataFrame({"rater": ["anna", "bob"], "[group]": ["one [x]", "two"]})


class Told(Toy):
    """The toy, with facts."""

    def facts(self, answers: Any) -> Mapping[str, pd.DataFrame]:
        return {"Paired tests": PAIRS, "Raters [all]": NAMES_ONLY}


class Blind(Toy):
    """Its images are not at hand; its answers and cases are, worst first."""

    def answers(self, data: Path | None) -> Answers:
        return Answers(pair_ids=("c", "a", "b"), clusters=("c", "a", "b"))

    def has_questions(self, data: Path | None) -> bool:
        return False

    def cases(self, answers: Any, data: Path | None) -> pd.DataFrame:
        told = {"pair_id": ["a", "a", "b"], "image_id": ["1", "1", "2"], "prompt": ["x", "x", ""]}
        return pd.DataFrame({**told, "expected": [5.0, 5.0, 1.0], "said": ["5 of 5", "", ""]})


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

    @property
    def problem(self) -> str:
        """The code of the one error."""
        found = re.findall(r"error \[(\w+)\]", self.err)
        assert len(found) <= 1 and "Traceback" not in self.err
        return "".join(found)

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Call = Callable[..., Ended]


@pytest.fixture
def call(
    hub: HubServer, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Call:
    """Run the command line with two small benchmarks and the test Hub."""
    remote = Remote(FILES)
    remote.card = remote.card.model_copy(update={"counts": {"pairs": 3}, "skills": {"s": "Skill"}})
    registry: dict[str, Benchmark] = {"remote": remote, "toy": Told()}
    monkeypatch.setattr("benchmarks.commands.common.load_registry", lambda: registry)
    monkeypatch.setattr("benchmarks.commands.common.load_prompt_sets", dict)
    monkeypatch.setattr(
        "benchmarks.commands.files.Hub", lambda: Hub(hub.endpoint, sleep=lambda seconds: None)
    )
    monkeypatch.delenv("ASSAY_DATA", raising=False)

    def run(*words: object, width: int = 200) -> Ended:
        monkeypatch.setenv("COLUMNS", str(width))
        monkeypatch.setattr("sys.argv", ["benchmarks", *map(str, words)])
        try:
            code = main()
        except SystemExit as end:
            code = int(end.code or 0)
        return Ended(code, *capfd.readouterr())

    return run


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """A folder of data whose answers cannot be read."""
    (tmp_path / "remote").mkdir()
    (tmp_path / "remote/answers.csv").write_text("x\n1\n")
    return tmp_path


# pairs
PUBLIC = [("c", "", ""), ("a", "1", "x"), ("b", "2", "")]
"""Without images: in the order of the benchmark, with what its cases tell."""
WITHHELD = [("a", "", ""), ("b", "", ""), ("c", "", "")]
"""Of a benchmark that keeps its answers: sorted, for the order could tell them."""


@pytest.mark.parametrize(("public", "expected"), [(True, PUBLIC), (False, WITHHELD)])
def test_pairs_are_listed_without_images_and_without_what_people_said(
    call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, public: bool, expected: object
) -> None:
    blind = Blind(Toy.card.model_copy(update={"answers_public": public}))
    monkeypatch.setattr("benchmarks.commands.common.load_registry", lambda: {"toy": blind})
    listed = call("pairs", "toy", "--json").json
    assert [(one["pair_id"], one["image_id"], one["prompt"]) for one in listed] == expected
    assert all(len(one) == 3 for one in listed)
    end = call("pairs", "toy", "--out", tmp_path / "pairs.csv")
    assert (end.code, end.out) == (0, "")
    written = pd.read_csv(tmp_path / "pairs.csv", keep_default_na=False, dtype=str)
    assert list(written.itertuples(index=False, name=None)) == expected
    assert call("pairs", "toy", "--out", tmp_path / "pairs.csv").problem == "file_exists"


def test_pairs_whose_questions_are_at_hand_have_their_image_and_prompt(call: Call) -> None:
    lines = call("pairs", "toy").out.splitlines()
    assert lines[:2] == ["pair_id,image_id,prompt", "a,image a,a grey pixel"]
    assert call("pairs", "nothing").problem == "unknown_benchmark"
    assert call("pairs", "toy", "--json", "--out", "x.csv").code == 2


# fetch
def test_fetch_tells_people_and_programs_of_it(call: Call, hub: HubServer, tmp_path: Path) -> None:
    end = call("fetch", "remote", "--data", tmp_path / "a")
    assert (end.code, end.out) == (0, "")
    *fetched, source, supplied = end.err.splitlines()
    sizes = {line.split(":")[0]: re.findall(r"\d+ (?:files|bytes)", line) for line in fetched}
    assert sizes == {"remote/answers.csv": ["53 bytes"], "remote/images": ["2 files", "3 bytes"]}
    assert source.startswith(REPO) and "remote/s.csv" in supplied
    done = call("fetch", "remote", "--data", tmp_path / "b", "--json").json
    assert done["downloaded"] == {"remote/answers.csv": len(ANSWERS), "remote/images": 3}
    assert done["commits"] == {REPO: hub.repositories[REPO].branches["main"]}
    again = call("fetch", "remote", "--data", tmp_path / "b", "--json").json
    assert again["there"] == ["remote/answers.csv", "remote/images"]
    assert call("fetch", "remote", "--data", tmp_path / "c", "--answers-only").code == 0
    names = sorted(p.name for p in (tmp_path / "c/remote").iterdir())
    assert names == ["answers.csv", "pins.json"]


def test_a_subset_is_said_to_be_one(call: Call, tmp_path: Path) -> None:
    end = call("fetch", "remote", "--data", tmp_path, "--subset", 1)
    assert "1 images" in end.err and "all of them" in end.err
    assert (tmp_path / "remote/subset/images/a.png").read_bytes() == b"A"
    both = call("fetch", "remote", "--data", tmp_path, "--subset", 1, "--answers-only")
    assert both.code == 2


@pytest.mark.parametrize(
    ("spoilt", "code", "problem"),
    [
        ({"status": 404, "headers": {"X-Error-Code": "RepoNotFound"}}, 1, "unknown_repository"),
        ({"status": 403, "headers": {"X-Error-Code": "GatedRepo"}}, 1, "gated_repository"),
        ({"status": 403}, 1, "no_access"),
        ({"status": 502, "times": 6}, 3, "server_unavailable"),
    ],
)
def test_an_error_is_one_message_and_the_right_code(
    call: Call, hub: HubServer, tmp_path: Path, spoilt: dict[str, Any], *, code: int, problem: str
) -> None:
    hub.spoil("/api/", **spoilt)
    end = call("fetch", "remote", "--data", tmp_path)
    assert (end.code, end.problem) == (code, problem)
    assert not (tmp_path / "remote").exists()


@pytest.mark.slow
def test_the_program_fetches_and_describes(
    hub: HubServer, tmp_path: Path, assay_data: Path
) -> None:
    """In a process of its own, with the address of the Hub from the environment."""
    (tmp_path / "ts2").mkdir()
    (tmp_path / "ts2/metadata.csv").write_bytes((assay_data / "ts2/metadata.csv").read_bytes())
    hub.add("saxon/T2IScoreScore", {"images/000-00.jpg": b"picture"})
    environment = {**os.environ, "HF_ENDPOINT": hub.endpoint, "ASSAY_DATA": str(tmp_path)}

    def run(*words: str) -> Ended:
        command = [sys.executable, "-m", "benchmarks", *words]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return Ended(done.returncode, done.stdout, done.stderr)

    fetched = run("fetch", "ts2")
    assert fetched.out == "" and "ts2/metadata.csv" in fetched.err
    assert (tmp_path / "ts2/images/000-00.jpg").read_bytes() == b"picture"
    told = run("describe", "ts2", "--json").json
    assert [file["state"] for file in told["files"]] == ["there", "there"]
    assert told["problem"] is None


# describe
def test_describe_shows_the_card_each_file_and_the_counts(call: Call, tmp_path: Path) -> None:
    bare = call("describe", "remote")
    assert bare.code == 0 and "remote/answers.csv" in bare.out
    assert "ordered by Mean" in bare.out and "Skill" in bare.out
    before = call("describe", "remote", "--data", tmp_path, "--json").json
    assert [f["state"] for f in before["files"]] == ["missing"] * 3
    assert before["files"][1]["declared_bytes"] == 4000
    assert before["files"][2]["how"] == FILES[2].supplied
    assert before["counts"] == {"pairs": {"found": None, "expected": 3}}
    assert before["problem"]["code"] == "data_missing"

    call("fetch", "remote", "--data", tmp_path)
    after = call("describe", "remote", "--data", tmp_path, "--json").json
    assert [f["state"] for f in after["files"]] == ["there", "there", "missing"]
    assert [f["bytes"] for f in after["files"]] == [len(ANSWERS), 3, None]
    pairs, clusters = {"found": 2, "expected": 3}, {"found": 2, "expected": None}
    assert after["counts"] == {"pairs": pairs, "clusters": clusters}
    assert after["problem"] is None
    assert "53 bytes" in call("describe", "remote", "--data", tmp_path).out


def test_describe_of_broken_data_ends_with_an_error(call: Call, broken: Path) -> None:
    end = call("describe", "remote", "--data", broken)
    assert (end.code, end.problem) == (1, "data_malformed")
    assert "column pair_id" in end.out


@pytest.mark.parametrize("width", [*range(30, 200, 13), 80, 200])
def test_no_fact_is_cut_at_any_width(call: Call, width: int) -> None:
    out = call("describe", "toy", "--facts", width=width).out
    text = out[out.index("Paired tests") :]
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= width
    for n in range(len(PAIRS)):
        for number in (f"{-17.5684 - n:.4f}", f"{1.3e-119 * (n + 1):.1e}", f"{154780.5 + n:.4f}"):
            assert len(re.findall(rf"(?<!\S){re.escape(number)}(?!\S)", text)) == 1
    for name in (*COLUMNS, *MODELS, "Raters [all]", "[group]", "one [x]"):
        assert name in text
    headers = [h.split() for h in text.splitlines() if re.match(r" +a +b ", h)]
    if width >= 80:  # a narrow table repeats what its lines are about
        assert len(headers) == 1 or width < 160
        assert [name for header in headers for name in header[2:]] == list(COLUMNS)
    if width < 40:  # each fact has a line
        assert {"DALLE_3, SDXL_Turbo", "  a_wins: 0.6294"} <= set(text.splitlines())


# prompts
def test_prompts_are_written_in_each_format(call: Call, tmp_path: Path) -> None:
    call("fetch", "remote", "--data", tmp_path)
    words = "prompts", "remote", "--data", tmp_path
    csv = call(*words)
    assert csv.code == 0
    header, *lines = csv.out.splitlines()
    assert header == "prompt_id,prompt,split,skills"
    assert lines == ['a,"a cat, sitting",,', "b,ein großer Hund,,"]
    lines = call(*words, "--format", "jsonl").out.splitlines()
    second = {"prompt_id": "b", "prompt": "ein großer Hund", "split": "", "skills": ""}
    assert json.loads(lines[1]) == second
    out = tmp_path / "p.parquet"
    assert call(*words, "--out", out).code == 0
    assert list(pd.read_parquet(out)["prompt"]) == ["a cat, sitting", "ein großer Hund"]


def test_prompts_overwrite_when_told_but_not_their_source(call: Call, tmp_path: Path) -> None:
    call("fetch", "remote", "--data", tmp_path)
    out, given = tmp_path / "prompts.csv", tmp_path / "remote/answers.csv"
    out.write_text("mine")
    words = "prompts", "remote", "--data", tmp_path, "--out"
    end = call(*words, out)
    assert (end.code, end.problem, out.read_text()) == (1, "file_exists", "mine")
    end = call(*words, given, "--force")
    assert (end.code, end.problem, given.read_bytes()) == (1, "output_is_input", ANSWERS)
    end = call(*words, out, "--force")
    assert end.code == 0 and str(out) in end.err
    assert out.read_text().startswith("prompt_id,")


# list
def test_list_says_what_is_at_hand(call: Call, tmp_path: Path) -> None:
    call("fetch", "remote", "--data", tmp_path)
    remote, toy = call("list", "--data", tmp_path, "--json").json
    assert (remote["answers"], remote["images"], remote["prompts"]) == (True, True, True)
    assert (toy["name"], toy["prompts"]) == ("toy", False)
    assert "prompts" in call("list").out


def test_a_broken_benchmark_stands_in_the_list_beside_the_others(call: Call, broken: Path) -> None:
    end = call("list", "--data", broken)
    assert end.code == 0 and end.out.count("column pair_id") == 1
    rows = {row.split()[0]: row.split() for row in end.out.splitlines() if row.split()}
    assert (rows["remote"][1:4:2], rows["toy"][1]) == (["broken", "broken"], "yes")
    remote, toy = call("list", "--data", broken, "--json").json
    assert remote["answers"] is False
    assert remote["problems"]["answers"]["code"] == "data_malformed"
    assert toy["problems"] == {}


@pytest.mark.parametrize("kind", [PlatformError, TransientError])
def test_whatever_error_of_ours_a_benchmark_raises_stays_with_it(
    call: Call, monkeypatch: pytest.MonkeyPatch, kind: type[AssayError]
) -> None:
    def fail(*_: object) -> None:
        raise kind("odd", "Odd.")

    monkeypatch.setattr(Toy, "answers", fail)
    assert call("list").code == 0
    found = call("list", "--json").json[1]["problems"]["answers"]
    assert found == {"code": "odd", "text": "Odd."}


# all commands
@pytest.mark.parametrize("command", ["list", "describe", "fetch", "prompts", "questions"])
def test_every_help_text_has_an_example(call: Call, command: str) -> None:
    end = call(command, "--help")
    assert end.code == 0 and f"python -m benchmarks {command}" in end.out


@pytest.mark.parametrize(
    ("words", "code", "problem"),
    [
        ("fetch remote", 1, "no_folder"), ("fetch nope --data .", 1, "unknown_benchmark"),
        ("fetch toy --data .", 0, ""), ("list --data nowhere", 1, "no_folder"),
        ("prompts toy", 1, "no_prompts"), ("prompts remote --data .", 1, "data_missing"),
        ("prompts remote --format parquet", 2, ""),
    ],
)  # fmt: skip
def test_what_cannot_be_had_says_why(
    call: Call,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: str,
    *,
    code: int,
    problem: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    end = call(*words.split())
    assert (end.code, end.out, end.problem) == (code, "", problem)
    assert end.err


@pytest.mark.parametrize(
    ("started", "named"),
    [
        ("/usr/local/bin/assay", ("assay score", "assay bench list")),
        ("/src/evaluator/__main__.py", ("python -m evaluator score", "python -m benchmarks list")),
    ],
)
def test_help_and_messages_name_commands_as_they_were_started(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    started: str,
    named: tuple[str, str],
) -> None:
    app = typer.Typer()
    app.callback()(lambda: None)

    @app.command()
    def score() -> None:
        """Example: python -m evaluator score"""
        said = "`python -m benchmarks list` shows all; python -m benchmarks.errata does not."
        errors().print(Text(said, style="dim"))
        raise SubmitterError("none", said)

    monkeypatch.setattr(sys, "argv", [started, "score"])
    whole = with_help_as_started(app)
    assert run(whole) == 1
    message = capsys.readouterr().err
    assert message.count(named[1]) == 2
    assert message.count("python -m benchmarks.errata") == 2
    monkeypatch.setattr(sys, "argv", [started, "score", "--help"])
    with pytest.raises(SystemExit):
        run(whole)
    assert f"Example: {named[0]}" in capsys.readouterr().out


COMMAND = """
import sys
import typer
from rich.console import Console
from benchmarks.command_line import run
from benchmarks.errors import SubmitterError

app = typer.Typer(pretty_exceptions_enable=False)

@app.command()
def echo() -> None:
    typer.echo("a line")

@app.command()
def table() -> None:
    Console().print("a line")

@app.command()
def buffered() -> None:
    sys.stdout.write("a line that is not flushed")

@app.command()
def refused() -> None:
    raise SubmitterError("no_such_thing", "There is none.")

@app.command()
def ended() -> None:
    raise typer.Exit(3)

sys.exit(run(app))
"""


def unread(*words: str) -> tuple[int, str]:
    """Run Python with a standard output that nobody reads any more: its code and its errors."""
    reader, writer = os.pipe()
    os.close(reader)
    environment = {name: v for name, v in os.environ.items() if name != "PYTHONUNBUFFERED"}
    command = [sys.executable, *words]
    try:
        ended = subprocess.run(
            command, cwd=REPOSITORY, env=environment, stdout=writer, stderr=subprocess.PIPE,
            text=True, check=False,
        )  # fmt: skip
    finally:
        os.close(writer)
    return ended.returncode, ended.stderr


@pytest.mark.first_quick
@pytest.mark.parametrize("way", ["echo", "table", "buffered", "--help", "ended", "refused"])
def test_a_command_that_nobody_reads_ends_quietly_but_for_its_errors(way: str) -> None:
    code, said = unread("-c", COMMAND, way)
    assert code == {"ended": 3, "refused": 1}.get(way, NOBODY_READS)
    assert ("no_such_thing" in said) if way == "refused" else said == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    "words", ["benchmarks list", "evaluator models", "benchmarks.errata --help"]
)
def test_the_command_lines_of_the_project_end_so(words: str) -> None:
    assert unread("-m", *words.split()) == (NOBODY_READS, "")


@pytest.mark.parametrize("kind", [SubmitterError, TransientError, PlatformError])
def test_an_error_goes_whole_to_another_process(kind: type[AssayError]) -> None:
    for hint in ("Send another.", ""):
        there = pickle.loads(pickle.dumps(kind("bad_file", "Empty.", hint)))
        assert type(there) is kind
        assert (there.code, there.message, there.hint) == ("bad_file", "Empty.", hint)
        assert str(there) == f"Empty. {hint}".strip()

"""`init`: what it writes is valid, whole, as the submit page says, and never over something else."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from benchmarks.errors import SubmitterError
from benchmarks.registry import load_registry
from evaluator.generation.manifest import parse_generations
from evaluator.submission.manifest import parse_manifest
from evaluator.submission.validate import examine_source
from leaderboard.rendering import render
from tests.evaluator.commands.submitting import code_of, typed

COMMIT = "0123456789abcdef0123456789abcdef01234567"
MODULES = ("plain", "dual-encoder", "vlm", "ts2", "croc")


def init(*words: object) -> Result:
    return typed("init", *words)


def made(folder: Path, kind: str, *words: object) -> str:
    done = init(kind, folder, *words)
    assert done.exit_code == 0, done.output
    return done.output


def refused(folder: Path, code: str, kind: str, *words: object) -> SubmitterError:
    done = init(kind, folder, *words)
    assert code_of(done) == code
    assert isinstance(done.exception, SubmitterError)
    return done.exception


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_bytes(
        b"# -*- coding: latin-1 -*-\r\n"
        b"from T2IMetrics.base import T2IMetric\r\n"
        b"import of_my_own\r\n"
        b"class Mine(T2IMetric):\r\n"
        b"    def __init__(self, device=None):\r\n"
        b'        self.model = AutoModel.from_pretrained("me/model")  # \xe9\r\n'
        b"    def calculate_score(self, image, prompt):\r\n"
        b"        return 0.5\r\n"
    )
    return path


@pytest.mark.parametrize("kind", MODULES)
def test_what_is_written_is_valid_and_every_key_explained(kind: str, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "my-metric"
    made(folder, kind)
    seen = examine_source(folder, load_registry())
    assert (seen.problems, seen.name, seen.version) == ((), "my-metric", "1")
    assert "type: ignore" not in "".join(p.read_text() for p in folder.rglob("*.py"))
    lines = (folder / "assay.toml").read_text().splitlines()
    keys = {line.removeprefix("# ").partition(" = ")[0] for line in lines if " = " in line}
    known = set(type(parse_manifest(b'name = "x"')).model_fields)
    assert known - {"links"} <= keys and "# [links]" in lines
    plain = [at for at, line in enumerate(lines) if line and not line.startswith("#")]
    assert all(lines[at - 1].startswith("#") for at in plain)


def test_the_submit_page_says_what_the_command_line_takes_and_writes(tmp_path: Path) -> None:
    blocks = re.findall(r"<pre[^>]*>(.*?)</pre>", render("submit/guide_metric.html"), re.S)
    manifest, scorer, commands = map(html.unescape, blocks)
    (tmp_path / "assay.toml").write_text(manifest)
    (tmp_path / "scorer.py").write_text(scorer)
    seen = examine_source(tmp_path, load_registry())
    assert (seen.problems, seen.name, seen.version) == ((), "my-metric", "1.0")
    begin, check, submit = (line.split() for line in commands.splitlines())
    start = ["python", "-m", "evaluator"]
    *command, name = begin[3:]
    assert (check, submit) == ([*start, "check", name], [*start, "submit", name])
    folder = tmp_path / name
    done = typed(*command, folder)
    assert begin[:3] == start and done.exit_code == 0
    assert f"Try it: python -m evaluator check {folder}" in done.output.splitlines()
    assert (folder / "README.md").read_text().strip()
    assert examine_source(folder, load_registry()).problems == ()


@pytest.mark.slow
def test_the_model_that_is_asked_is_named_with_its_commit(tmp_path: Path) -> None:
    made(tmp_path / "m", "vlm", "--model", f"me/model@{COMMIT}")
    manifest = parse_manifest((tmp_path / "m" / "assay.toml").read_bytes())
    assert manifest.models == (f"me/model@{COMMIT}",)


def test_an_existing_class_is_copied_and_what_it_lacks_named(mine: Path, tmp_path: Path) -> None:
    said = " ".join(made(tmp_path / "m", "ts2", "--from", f"{mine}:Mine").split())
    assert (tmp_path / "m/T2IMetrics/mine.py").read_bytes() == mine.read_bytes()
    assert 'WRAPPED = "T2IMetrics.mine:Mine"' in (tmp_path / "m/scorer.py").read_text()
    assert examine_source(tmp_path / "m", load_registry()).problems == ()
    assert "mine.py:3: imports of_my_own" in said and "loads me/model" in said
    assert "T2IMetrics.base, which" not in said
    assert '# models = ["me/model@COMMIT"]' in (tmp_path / "m/assay.toml").read_text()
    mine.write_text("from ..base import T2IMetric\nclass Mine(T2IMetric): ...\n")
    made(tmp_path / "n", "ts2", "--from", mine)  # Imports from above: it goes one deeper.
    assert (tmp_path / "n/T2IMetrics/correlation/mine.py").exists()
    assert "T2IMetrics.correlation.mine:Mine" in (tmp_path / "n/scorer.py").read_text()


@pytest.mark.parametrize(
    ("name", "source", "asked", "code", "said"),
    [
        ("mine.py", "class A: ...\n", ":B", "no_class", "B"),
        ("mine.py", "class A: ...\nclass B: ...\n", "", "no_class", "A, B"),
        ("mine.py", "", "", "no_class", "no class"),
        ("mine.py", "class A:\n  def f(:\n", "", "bad_source", "mine.py:2:"),
        ("mine.py", "x = '\0'", "", "bad_source", "mine.py"),
        *((name, "class A: ...\n", "", "bad_file_name", name)
          for name in ("BaseMetric.py", "my-metric.py", "__init__.py", "m.txt")),
    ],
)  # fmt: skip
def test_a_file_without_that_class_is_refused(
    *, name: str, source: str, asked: str, code: str, said: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(source)
    error = refused(tmp_path / "m", code, "croc", "--from", f"{tmp_path / name}{asked}")
    assert said in str(error)
    assert not (tmp_path / "m").exists()


def test_what_is_there_is_never_changed(tmp_path: Path) -> None:
    file, folder, link = (tmp_path / name for name in ("file", "folder", "link"))
    file.write_text("mine")
    folder.mkdir()
    link.symlink_to(tmp_path / "nowhere")
    for target in (file, folder, link):
        refused(target, "folder_exists", "plain")
    assert file.read_text() == "mine"
    assert {p.name for p in tmp_path.rglob("*")} == {"file", "folder", "link"}


@pytest.mark.parametrize("name", ["a b", "<b>", "=1+1", "x" * 65, "é"])
def test_names_are_those_of_the_boards(name: str, tmp_path: Path) -> None:
    by_folder, by_option = init("plain", tmp_path / name), init("plain", tmp_path, "--name", name)
    assert code_of(by_folder) == code_of(by_option) != ""
    hint = getattr(by_folder.exception, "hint", "")
    assert "--name" in hint and "letters, digits" in hint
    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_another_name_keeps_it_and_what_to_type_can_be_pasted(tmp_path: Path) -> None:
    folder = tmp_path / "two words"
    said = " ".join(made(folder, "plain", "--name", "good-name").split())
    assert b'name = "good-name"' in (folder / "assay.toml").read_bytes()
    assert f"check '{folder}'" in said


def test_what_cannot_be_written_or_read_is_told_in_words(tmp_path: Path) -> None:
    error = refused(tmp_path / ("a" * 300), "cannot_write", "plain", "--name", "n")
    assert "too long" in error.message
    done = init("ts2", tmp_path / "m", "--from", "a" * 300 + "/mine.py")
    assert code_of(done) in {"file_missing", "file_unreadable"}


@pytest.mark.parametrize(
    "words",
    [
        ("plain", "--from", "x.py:A"), ("plain", "--model", f"me/model@{COMMIT}"),
        ("plain", "--benchmark", "demo_ts2"), ("plain", "--seeds", "1,2"), ("nothing",),
        ("generations", "--benchmark", "genai_527", "--prompts", "x.csv"),
        *(("vlm", "--model", model)
          for model in ("me/model", "me/model@main", f"model@{COMMIT}", 'x"\n@')),
    ],
)  # fmt: skip
def test_options_of_another_kind_are_wrong_use(words: tuple[str, ...], tmp_path: Path) -> None:
    assert init(words[0], tmp_path / "m", *words[1:]).exit_code == 2
    assert not (tmp_path / "m").exists()


# Generations ---------------------------------------------------------------------------------------


def rows_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "images.jsonl").read_text().splitlines()]


def test_generations_have_a_line_for_each_wanted_image(tmp_path: Path) -> None:
    prompts, folder = tmp_path / "prompts.csv", tmp_path / "sd"
    prompts.write_text("prompt_id,prompt\nA/1,a red cup\na-1,two cups\n")
    made(folder, "generations", "--prompts", prompts, "--seeds", "1,2")
    manifest = parse_generations((folder / "assay.toml").read_bytes())
    assert (manifest.name, manifest.seeds) == ("sd", (1, 2))
    keys = [("A/1", 1), ("A/1", 2), ("a-1", 1), ("a-1", 2)]
    assert [(row["prompt_id"], row["seed"]) for row in rows_of(folder)] == keys
    assert len({row["file"].lower() for row in rows_of(folder)}) == 4
    assert (folder / "images").is_dir()


@pytest.mark.parametrize(("words", "seeds"), [((), (1, 2)), (("--seeds", "9"), (9,))])
def test_generations_of_a_prompt_set_begin_with_its_seeds_and_sizes(
    words: tuple[str, ...], seeds: tuple[int, ...], tmp_path: Path
) -> None:
    made(tmp_path / "sd", "generations", "--benchmark", "demo_prompts", *words)
    manifest = parse_generations((tmp_path / "sd" / "assay.toml").read_bytes())
    assert (manifest.benchmark, manifest.seeds) == ("demo_prompts", seeds)
    rows = rows_of(tmp_path / "sd")
    assert len(rows) == 76 * len(seeds)
    assert {(row["least_side"], row["most_side"]) for row in rows} == {(64, 1024)}

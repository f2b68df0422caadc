"""`init`: what it writes is valid, whole, and never over something else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from benchmarks.errors import SubmitterError
from benchmarks.registry import load_registry
from evaluator.__main__ import command_line
from evaluator.generation.manifest import parse_generations
from evaluator.submission.manifest import parse_manifest
from evaluator.submission.validate import examine_source

COMMIT = "0123456789abcdef0123456789abcdef01234567"
MODULES = ("plain", "dual-encoder", "vlm", "ts2", "croc")


def _init(*words: object) -> Result:
    return CliRunner().invoke(command_line(), ["init", *map(str, words)])


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
def test_what_is_written_has_no_problem(kind: str, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "my-metric"
    done = _init(kind, folder)
    assert done.exit_code == 0, done.output
    seen = examine_source(folder, load_registry())
    assert seen.problems == ()
    assert (seen.name, seen.version) == ("my-metric", "1")
    assert "type: ignore" not in "".join(p.read_text() for p in folder.rglob("*.py"))


@pytest.mark.parametrize("kind", MODULES)
def test_every_key_of_the_manifest_is_explained(kind: str, tmp_path: Path) -> None:
    assert _init(kind, tmp_path / "m").exit_code == 0
    lines = (tmp_path / "m" / "assay.toml").read_text().splitlines()
    keys = {line.removeprefix("# ").partition(" = ")[0] for line in lines if " = " in line}
    known = set(type(parse_manifest(b'name = "x"')).model_fields)
    assert known - {"links"} <= keys
    assert "# [links]" in lines
    for at, line in enumerate(lines):
        if line and not line.startswith("#"):
            assert lines[at - 1].startswith("#"), line


def test_the_model_that_is_asked_can_be_named(tmp_path: Path) -> None:
    assert _init("vlm", tmp_path / "m", "--model", f"me/model@{COMMIT}").exit_code == 0
    manifest = parse_manifest((tmp_path / "m" / "assay.toml").read_bytes())
    assert manifest.models == (f"me/model@{COMMIT}",)


@pytest.mark.parametrize("model", ["me/model", "me/model@main", f"model@{COMMIT}", 'x"\n@'])
def test_a_model_without_its_commit_is_a_wrong_use(model: str, tmp_path: Path) -> None:
    assert _init("vlm", tmp_path / "m", "--model", model).exit_code == 2
    assert not (tmp_path / "m").exists()


def test_an_existing_class_is_copied_byte_by_byte(mine: Path, tmp_path: Path) -> None:
    done = _init("ts2", tmp_path / "m", "--from", f"{mine}:Mine")
    assert done.exit_code == 0, done.output
    assert (tmp_path / "m/T2IMetrics/mine.py").read_bytes() == mine.read_bytes()
    assert 'WRAPPED = "T2IMetrics.mine:Mine"' in (tmp_path / "m/scorer.py").read_text()
    assert examine_source(tmp_path / "m", load_registry()).problems == ()


def test_what_an_existing_class_lacks_is_named_with_its_line(mine: Path, tmp_path: Path) -> None:
    said = " ".join(_init("ts2", tmp_path / "m", "--from", mine).output.split())
    assert "mine.py:3: imports of_my_own" in said
    assert "T2IMetrics.base, which" not in said
    assert "loads me/model" in said
    assert '# models = ["me/model@COMMIT"]' in (tmp_path / "m/assay.toml").read_text()


def test_a_class_with_imports_from_above_goes_one_deeper(tmp_path: Path) -> None:
    source = tmp_path / "clip.py"
    source.write_text("from ..base import T2IMetric\nclass Mine(T2IMetric): ...\n")
    assert _init("ts2", tmp_path / "m", "--from", source).exit_code == 0
    assert (tmp_path / "m/T2IMetrics/correlation/clip.py").exists()
    assert "T2IMetrics.correlation.clip:Mine" in (tmp_path / "m/scorer.py").read_text()


@pytest.mark.parametrize(
    ("source", "asked", "code"),
    [
        ("class A: ...\n", ":B", "no_class"),
        ("class A: ...\nclass B: ...\n", "", "no_class"),
        ("", "", "no_class"),
        ("class A:\n  def f(:\n", "", "bad_source"),
        ("x = '\0'", "", "bad_source"),
    ],
)
def test_a_file_without_that_class_is_refused(
    source: str, asked: str, code: str, tmp_path: Path
) -> None:
    path = tmp_path / "mine.py"
    path.write_text(source)
    done = _init("croc", tmp_path / "m", "--from", f"{path}{asked}")
    assert isinstance(done.exception, SubmitterError)
    assert done.exception.code == code
    assert not (tmp_path / "m").exists()


def test_a_syntax_error_is_told_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("class A:\n    def f(:\n")
    done = _init("croc", tmp_path / "m", "--from", path)
    assert f"{path}:2:" in str(done.exception)


@pytest.mark.parametrize("name", ["BaseMetric.py", "my-metric.py", "__init__.py", "m.txt"])
def test_a_file_that_could_not_be_imported_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("class A: ...\n")
    done = _init("croc", tmp_path / "m", "--from", tmp_path / name)
    assert isinstance(done.exception, SubmitterError)
    assert done.exception.code == "bad_file_name"


@pytest.mark.parametrize("there", ["file", "folder", "link"])
def test_what_is_there_is_never_changed(there: str, tmp_path: Path) -> None:
    target = tmp_path / "m"
    if there == "file":
        target.write_text("mine")
    elif there == "folder":
        target.mkdir()
    else:
        target.symlink_to(tmp_path / "nowhere")
    done = _init("plain", target)
    assert isinstance(done.exception, SubmitterError)
    assert done.exception.code == "folder_exists"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m"]


@pytest.mark.parametrize("name", ["a b", "<b>", "=1+1", "x" * 65, "é"])
def test_names_are_those_of_the_boards(name: str, tmp_path: Path) -> None:
    by_option = _init("plain", tmp_path / "m", "--name", name)
    by_folder = _init("plain", tmp_path / name)
    assert isinstance(by_option.exception, SubmitterError)
    assert isinstance(by_folder.exception, SubmitterError)
    assert "--name" in by_folder.exception.hint
    assert list(tmp_path.iterdir()) == []


def test_a_folder_with_another_name_keeps_its_own(tmp_path: Path) -> None:
    assert _init("plain", tmp_path / "some folder", "--name", "good-name").exit_code == 0
    assert b'name = "good-name"' in (tmp_path / "some folder/assay.toml").read_bytes()


def test_generations_have_a_line_for_each_wanted_image(tmp_path: Path) -> None:
    prompts = tmp_path / "prompts.csv"
    prompts.write_text("prompt_id,prompt\nA/1,a red cup\na-1,two cups\n")
    folder = tmp_path / "sd"
    done = _init("generations", folder, "--prompts", prompts, "--seeds", "1,2")
    assert done.exit_code == 0, done.output
    manifest = parse_generations((folder / "assay.toml").read_bytes())
    assert (manifest.name, manifest.seeds) == ("sd", (1, 2))
    rows = [json.loads(line) for line in (folder / "images.jsonl").read_text().splitlines()]
    assert [(r["prompt_id"], r["seed"]) for r in rows] == [
        ("A/1", 1),
        ("A/1", 2),
        ("a-1", 1),
        ("a-1", 2),
    ]
    assert len({r["file"].lower() for r in rows}) == 4
    assert (folder / "images").is_dir()


def test_generations_of_a_prompt_set_begin_with_its_seeds_and_sizes(tmp_path: Path) -> None:
    folder = tmp_path / "sd"
    done = _init("generations", folder, "--benchmark", "demo_prompts")
    assert done.exit_code == 0, done.output
    manifest = parse_generations((folder / "assay.toml").read_bytes())
    assert (manifest.benchmark, manifest.seeds) == ("demo_prompts", (1, 2))
    rows = [json.loads(line) for line in (folder / "images.jsonl").read_text().splitlines()]
    assert len(rows) == 2 * 76
    assert {(row["least_side"], row["most_side"]) for row in rows} == {(64, 1024)}
    other = tmp_path / "other"
    done = _init("generations", other, "--benchmark", "demo_prompts", "--seeds", "9")
    assert done.exit_code == 0, done.output
    assert parse_generations((other / "assay.toml").read_bytes()).seeds == (9,)


@pytest.mark.parametrize(
    "words",
    [
        ("plain", "--from", "x.py:A"),
        ("plain", "--model", f"me/model@{COMMIT}"),
        ("plain", "--benchmark", "demo_ts2"),
        ("plain", "--seeds", "1,2"),
        ("generations", "--benchmark", "genai_527", "--prompts", "x.csv"),
        ("nothing",),
    ],
)
def test_options_of_another_kind_are_wrong_use(words: tuple[str, ...], tmp_path: Path) -> None:
    assert _init(words[0], tmp_path / "m", *words[1:]).exit_code == 2
    assert not (tmp_path / "m").exists()


def test_a_folder_whose_name_is_too_long_is_refused_in_words(tmp_path: Path) -> None:
    done = _init("plain", tmp_path / ("a" * 300), "--name", "n")
    assert isinstance(done.exception, SubmitterError)
    assert done.exception.code == "cannot_write"
    assert "File name too long" in done.exception.message


def test_a_file_that_cannot_be_read_is_told_in_words(tmp_path: Path) -> None:
    done = _init("ts2", tmp_path / "m", "--from", "a" * 300 + "/mine.py")
    assert isinstance(done.exception, SubmitterError)
    assert done.exception.code in {"file_missing", "file_unreadable"}


def test_a_file_without_classes_and_one_with_many_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("x = 1\n")
    assert "has no class" in str(_init("ts2", tmp_path / "m", "--from", path).exception)
    path.write_text("class A: ...\nclass B: ...\n")
    said = str(_init("ts2", tmp_path / "m", "--from", path).exception)
    assert "has 2 classes" in said
    assert "one of A, B" in said


def test_a_refused_name_of_a_folder_says_what_a_name_may_be(tmp_path: Path) -> None:
    done = _init("plain", tmp_path / "two words")
    assert isinstance(done.exception, SubmitterError)
    assert "letters, digits" in done.exception.hint


def test_the_next_command_can_be_pasted(tmp_path: Path) -> None:
    done = _init("plain", tmp_path / "two words", "--name", "n")
    assert f"check '{tmp_path / 'two words'}'" in " ".join(done.output.split())

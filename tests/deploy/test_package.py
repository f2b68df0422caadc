"""The package: what a wheel holds and asks for, and its command where no checkout is."""

from __future__ import annotations

import json
import os
import shutil
import sys
import sysconfig
import tomllib
from collections.abc import Callable
from email import message_from_bytes
from pathlib import Path
from subprocess import CompletedProcess
from venv import EnvBuilder
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement

from evaluator.isolation import layout
from leaderboard.web.guides import guides
from supply.locks import LOCKS
from tests.conftest import REPOSITORY
from tests.docs.markdown_text import project_files
from tests.kit.processes import finished

GUIDES = ".data/data/share/doc/assay/"
OURS = ("app.py", "benchmarks/", "evaluator/", "leaderboard/")
NEEDED = {
    "": ("requirements-app.in", "requirements-sandbox.in"),
    "metrics": ("requirements-metrics.in",),
    "ray": ("requirements-ray.in",),
    "watch": ("requirements-watch.in",),
}
Assay = Callable[..., CompletedProcess[str]]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from the project's files alone, by the environment's own setuptools."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in project_files():
        place = source / name
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(REPOSITORY / name, place)
    options = ["--no-deps", "--no-build-isolation", "--quiet", "--wheel-dir", target]
    done = finished([sys.executable, "-m", "pip", "wheel", source, *options], cwd=source)
    assert done.returncode == 0, done.stderr
    (built,) = target.iterdir()
    return built


@pytest.fixture(scope="module")
def assay(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Assay:
    """A program of the environment that it is installed in, run in a folder far from the checkout."""
    home, folder = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("empty")
    EnvBuilder(symlinks=True).create(home)
    (site,) = home.glob("lib/python*/site-packages")
    (site / "needed.pth").write_text(sysconfig.get_path("purelib"))
    pip = [sys.executable, "-m", "pip", "--python", home / "bin/python", "install"]
    done = finished([*pip, "--no-deps", "--no-index", "--quiet", wheel], cwd=folder)
    assert done.returncode == 0, done.stderr
    own = {"HOME": str(folder), "COLUMNS": "120"}
    environment = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ} | own

    def run(*words: object, program: str = "assay") -> CompletedProcess[str]:
        return finished([home / "bin" / program, *words], cwd=folder, env=environment)

    return run


@pytest.mark.slow
def test_a_wheel_holds_every_file_of_the_packages_and_no_other(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
    guides = {name.partition(GUIDES)[2] for name in held if GUIDES in name}
    assert {name for name in held if ".data/" not in name} == {
        name for name in project_files() if name.startswith(OURS)
    }
    assert guides > {name for name in project_files() if name.startswith("docs/")}


@pytest.mark.slow
def test_a_wheel_asks_for_what_the_lists_ask_for(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        (name,) = (one for one in archive.namelist() if one.endswith("/METADATA"))
        told = message_from_bytes(archive.read(name))
    wanted: set[str] = set()
    for extra, lists in NEEDED.items():
        lines = (line for file in lists for line in (REPOSITORY / file).read_text().splitlines())
        marker = f'; extra == "{extra}"' if extra else ""
        wanted |= {str(Requirement(f"{line}{marker}")) for line in lines if line[0] != "#"}
    assert {str(Requirement(one)) for one in told.get_all("Requires-Dist", [])} == wanted
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    assert told["Version"] == project["version"]


def test_the_lists_are_all_that_is_locked() -> None:
    lines = (REPOSITORY / "requirements.in").read_text().splitlines()
    included = {line.removeprefix("-r ") for line in lines if line[0] != "#"}
    assert "requirements-watch.txt" in LOCKS  # one of its own: no host needs it
    assert included | {"requirements-watch.in"} == {
        name for names in NEEDED.values() for name in names
    }


READS = {
    "bench list": "demo_gecko",
    "bench pairs tifa160": "pair_id,image_id,prompt",
    "bench describe ts2 --facts": "ts2",
    "scorers describe clipscore-hessel": "Hessel",
    "score --help": "Example: assay score ",
    "bench fetch --help": "Example: assay bench fetch ",
}
"""A command that reads what was installed, and a word of what it prints."""
PRINTS = """if True:
    import contextlib, io, json, sys
    from evaluator.__main__ import main
    from leaderboard.web.guides import figure, guides

    printed = {}
    for line in json.loads(sys.argv[1]):
        sys.argv = ["assay", *line.split()]
        with contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO())) as out:
            try:
                code = main()
            except SystemExit as end:
                code = end.code
            out.flush()
        printed[line] = [code, out.buffer.getvalue().decode()]
    print(json.dumps([printed, list(guides()), figure("tiers.svg") is not None]))
"""


@pytest.mark.slow
def test_the_installed_commands_and_site_find_what_they_read(assay: Assay) -> None:
    """In one process, as each start imports for two seconds."""
    done = assay("-c", PRINTS, json.dumps(list(READS)), program="python")
    assert done.returncode == 0, done.stderr
    printed, shipped, has_figures = json.loads(done.stdout)
    assert {line: code for line, (code, _) in printed.items()} == dict.fromkeys(READS, 0)
    assert [line for line, word in READS.items() if word not in printed[line][1]] == []
    assert shipped == [name for name in guides() if not name.startswith("tools/")]
    assert has_figures


@pytest.mark.slow
def test_the_installed_command_scores_a_folder_of_images(assay: Assay) -> None:
    program = """if True:
        from pathlib import Path
        from PIL import Image
        Path("images").mkdir()
        for colour in ("red", "blue"):
            Image.new("RGB", (32, 32), colour).save(f"images/{colour}.png")
        Path("prompts.csv").write_text("id,prompt\\nred,a red wall\\nblue,a blue wall\\n")"""
    assert assay("-c", program, program="python").returncode == 0
    words = ["score", "colour-reader", "images", "--isolation", "none"]
    done = assay(*words, "--prompts", "prompts.csv", "--json")
    assert done.returncode == 0, done.stderr
    pairs = json.loads(done.stdout)["pairs"]
    assert [(one["image"], one["prompt"]) for one in pairs] == [
        ("red.png", "a red wall"),
        ("blue.png", "a blue wall"),
    ]
    assert all(0 <= one["score"] <= 1 for one in pairs)
    refused = assay("score", "clipscore-hesel", "images", "--prompt", "a wall")
    assert refused.returncode == 1
    assert "assay scorers list" in refused.stderr


@pytest.mark.slow
@pytest.mark.isolation
def test_the_installed_command_begins_checks_and_submits_a_metric(assay: Assay) -> None:
    for words, said in (
        (["init", "plain", "bright"], ""),
        (["check", "bright", "--pairs", "16"], "bright.receipt.json"),
        (["submit", "bright"], "published"),
        (["status", "--mine"], "bright"),
    ):
        done = assay(*words)
        assert done.returncode == 0, done.stderr
        assert said in done.stdout + done.stderr


def test_what_lies_among_installed_packages_hides_no_package(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    site, home = tmp_path / "lib/site-packages", tmp_path / "home"
    monkeypatch.setattr(layout, "__file__", str(site / "evaluator/isolation/layout.py"))
    monkeypatch.setattr(Path, "home", lambda: home)
    assert layout.usually_hidden() == (site, home)
    monkeypatch.setattr(layout, "_site_folders", lambda: [site])
    assert layout.usually_hidden() == (home,)

"""The package: what a wheel holds and asks for, and its command where no checkout is."""

from __future__ import annotations

import os
import shutil
import sys
import tomllib
from collections.abc import Callable
from email import message_from_bytes
from pathlib import Path
from subprocess import CompletedProcess
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement

from evaluator.isolation import layout
from tests.conftest import REPOSITORY
from tests.docs.markdown_text import project_files
from tests.processes import finished

OURS = ("app.py", "benchmarks/", "evaluator/", "leaderboard/")
NEEDED = {
    "": ("requirements-app.in", "requirements-sandbox.in"),
    "metrics": ("requirements-metrics.in",),
    "ray": ("requirements-ray.in",),
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
    """The installed command, run in an empty folder far from the checkout."""
    site, folder = tmp_path_factory.mktemp("site"), tmp_path_factory.mktemp("empty")
    options = ["--no-deps", "--no-index", "--quiet", "--target", site]
    done = finished([sys.executable, "-m", "pip", "install", *options, wheel], cwd=folder)
    assert done.returncode == 0, done.stderr
    own = {"PYTHONPATH": str(site), "HOME": str(folder), "COLUMNS": "120"}
    environment = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ} | own

    def run(*words: object, program: object = site / "bin/assay") -> CompletedProcess[str]:
        return finished([program, *words], cwd=folder, env=environment)

    return run


@pytest.mark.slow
def test_a_wheel_holds_every_file_of_the_packages_and_no_other(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert held == {name for name in project_files() if name.startswith(OURS)}


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
    assert included == {name for names in NEEDED.values() for name in names}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--help"], "bench"),
        (["bench", "list"], "demo_gecko"),
        (["bench", "pairs", "tifa160"], "pair_id,image_id,prompt"),
        (["scorers", "describe", "clipscore-hessel"], "Hessel"),
        (["bench", "describe", "ts2", "--facts"], "ts2"),
    ],
)
def test_the_installed_command_finds_what_it_reads(
    assay: Assay, words: list[str], said: str
) -> None:
    done = assay(*words)
    assert done.returncode == 0, done.stderr
    assert said in done.stdout


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

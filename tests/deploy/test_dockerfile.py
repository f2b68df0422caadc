"""The recipe of the images: pinned, small, closed, and without secrets."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.deploy.dockerfile import image, stages
from tests.deploy.rig import ROOT, admitted

DOCKERFILE = ROOT / "Dockerfile"
IMAGES = ("app", "worker")
SECRET = re.compile(r"TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)


def test_the_linter_has_nothing_to_say() -> None:
    tool = Path(sys.executable).with_name("hadolint")
    done = subprocess.run([tool, DOCKERFILE], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("target", IMAGES)
def test_an_image_runs_as_a_fixed_user_without_rights(target: str) -> None:
    found = image(DOCKERFILE, target)
    assert found.user == "1000:1000"
    assert found.folder == found.env["HOME"] == "/var/lib/assay"


@pytest.mark.parametrize("target", IMAGES)
def test_an_image_starts_from_a_base_that_a_digest_pins(target: str) -> None:
    assert image(DOCKERFILE, target).base == "python:3.11-slim-bookworm${BASE_DIGEST}"


@pytest.mark.parametrize("target", IMAGES)
def test_nothing_secret_is_in_an_image(target: str) -> None:
    found = image(DOCKERFILE, target)
    told = [*found.env, *found.args, *found.labels, *found.runs]
    assert [each for each in told if SECRET.search(each)] == []


@pytest.mark.parametrize("target", IMAGES)
def test_what_is_copied_is_there_and_let_in(target: str) -> None:
    for sources, _ in image(DOCKERFILE, target).copies:
        for source in sources:
            assert (ROOT / source).exists()
            assert admitted(source)


def test_everything_else_is_kept_out_of_a_build() -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    assert rules[0] == "*"
    let_in = {line[1:] for line in rules if line.startswith("!")}
    copied = {
        source
        for stage in stages(DOCKERFILE).values()
        for sources, _ in stage.copies
        for source in sources
    }
    assert let_in == copied


def test_libraries_are_installed_by_hash_and_nothing_is_built() -> None:
    installs = [
        run for stage in stages(DOCKERFILE).values() for run in stage.runs if "pip install" in run
    ]
    assert len(installs) == 3
    for run in installs:
        assert "--require-hashes" in run
        assert "--no-build" in run or "--only-binary :all:" in run


def test_the_site_takes_the_libraries_of_the_site_alone() -> None:
    assert image(DOCKERFILE, "app").taken == [("builder", "/opt/venv", "/opt/venv")]
    assert all("requirements.txt" not in run for run in stages(DOCKERFILE)["builder"].runs)


@pytest.mark.parametrize("target", IMAGES)
def test_an_image_says_what_it_is_and_how_it_is(target: str) -> None:
    found = image(DOCKERFILE, target)
    named = {name.removeprefix("org.opencontainers.image.") for name in found.labels}
    assert {"title", "description", "licenses", "version", "revision"} <= named
    assert found.health[-2:] == ["/opt/assay/deploy/probe.py", str(found.ports[0])]
    assert not found.entry  # Hub Jobs put their command in the place of ours


def test_a_jobs_command_is_found_from_any_folder() -> None:
    found = image(DOCKERFILE, "worker")
    assert found.command[:4] == ["python", "-m", "evaluator", "worker"]
    assert found.env["PYTHONPATH"] == "/opt/assay"


def test_no_image_declares_a_volume_that_a_box_could_fill() -> None:
    assert not re.search(r"^VOLUME", DOCKERFILE.read_text(), re.MULTILINE)

"""The site's image: small, closed, and it serves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy.conftest import for_user
from tests.deploy.rig import Container, Rig, service, walls

pytestmark = pytest.mark.slow

FETCH = "import urllib.request as u; r = u.urlopen('http://127.0.0.1:7860{}'); print(r.status, r.read())"


@pytest.fixture(scope="module")
def site(
    engine: Rig, site_libraries: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Container]:
    home = for_user(tmp_path_factory.mktemp("volume"))
    with engine.running("app", site_libraries, home, options=walls(service("site"))) as container:
        container.wait_until_healthy()
        yield container


def test_it_serves_pages_and_programs(site: Container) -> None:
    assert "200" in site.says("python", "-c", FETCH.format("/"))
    assert "Assay" in site.says("python", "-c", FETCH.format("/"))
    assert "demo_croc" in site.says("python", "-c", FETCH.format("/v1/benchmarks"))
    assert '"status":"ok"' in site.says("python", "-c", FETCH.format("/health"))


@pytest.mark.parametrize("library", ["torch", "transformers", "ray", "datasets", "cv2"])
def test_it_has_no_libraries_of_models(site: Container, library: str) -> None:
    assert "ModuleNotFoundError" in site.says("python", "-c", f"import {library}")


def test_it_is_nobody_and_can_write_to_its_volume_alone(site: Container) -> None:
    look = "import os; print(os.getuid(), os.getgid(), open('/proc/self/status').read())"
    said = site.says("python", "-c", look)
    assert said.startswith("1000 1000")
    assert "CapEff:\t0000000000000000" in said
    assert "NoNewPrivs:\t1" in said
    for closed in ("/", "/opt/assay", "/opt/assay/benchmarks", "/opt/venv", "/etc"):
        assert "OSError" in site.says("python", "-c", f"open('{closed}/x', 'w')"), closed
    for open_ in ("/var/lib/assay", "/tmp"):
        assert site.says("python", "-c", f"open('{open_}/x', 'w')") == ""


def test_commands_run_in_it(site: Container) -> None:
    assert "ok" in site.says("python", "-m", "evaluator", "health")
    assert "demo_croc" in site.says("python", "-m", "benchmarks", "list")


def test_the_probe_tells_a_silent_port(site: Container) -> None:
    said = site.says("python", "-I", "-S", "/opt/assay/deploy/probe.py", "7999")
    assert said.startswith("no answer at port 7999")


def test_it_ends_when_it_is_told_to(site: Container) -> None:
    """The last test here: it ends the container of the others."""
    assert site.stop(60)["ExitCode"] == 0, site.log()  # 137 where it had to be killed

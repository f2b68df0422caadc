"""What a document finds when its commands run: a folder, a home, data, a store, a Hub, the site."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.docs.markdown_text import REPOSITORY, Document, project_files
from tests.docs.shell import Ran, run, script_of
from tests.end_to_end.commands import environment as without_settings
from tests.hub.server import running_hub
from tests.processes import await_answer, free_port, running

NEEDS = frozenset({"data", "hub", "store", "server", "tree"})
PORTS = ("7860", "9100")
"""Ports that documents name; each run has free ones instead of them."""
NOWHERE = "http://127.0.0.1:9"
LIMIT_S = 900.0


@dataclass(frozen=True)
class Supplies:
    """What is made once for all documents.

    Attributes:
        data: the folder of public data.
        store: gives the demo's finished store, which nobody may change.
    """

    data: Path
    store: Callable[[], Path]


def run_document(document: Document, home: Path, supplies: Supplies) -> Ran:
    """Set up what a document says it needs, and run its commands.

    Args:
        document: what is run.
        home: an empty folder for everything.
        supplies: what is shared.
    """
    ports = {port: str(free_port()) for port in PORTS}
    with ExitStack() as around:
        folder, environment = _set_up(document, home, supplies)
        environment["PORT"] = ports["7860"]
        if "hub" in document.needs:
            environment |= around.enter_context(running_hub()).environment()
        if "server" in document.needs:
            around.enter_context(_site(folder, environment, home / "site.log"))
        script = re.sub(rf"\b({'|'.join(PORTS)})\b", lambda m: ports[m[0]], script_of(document))
        return run(script, folder, environment, LIMIT_S)


def _set_up(document: Document, home: Path, supplies: Supplies) -> tuple[Path, dict[str, str]]:
    folder, at_home = home / "assay", home / "home"
    at_home.mkdir()
    folder.mkdir()
    environment = plain_environment(at_home)
    if "tree" in document.needs:
        copy_of_project(folder)
    else:
        environment["PYTHONPATH"] = str(REPOSITORY)
    if "data" in document.needs:
        environment["ASSAY_DATA"] = str(supplies.data)
        (at_home / "assay-data").symlink_to(supplies.data)
    if {"store", "server"} & document.needs:
        shutil.copytree(supplies.store(), folder / ".assay" / "store")
    return folder, environment


def plain_environment(home: Path) -> dict[str, str]:
    """Of a person who has made the environment and entered it; nothing outside can be reached."""
    inherited = {name: value for name, value in without_settings().items() if "proxy" not in name}
    inherited = {name: value for name, value in inherited.items() if "PROXY" not in name}
    for name in ("HF_TOKEN", "HF_HOME", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "MAKEFLAGS"):
        inherited.pop(name, None)
    proxies = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), NOWHERE)
    return {
        **inherited,
        **proxies,
        "NO_PROXY": "127.0.0.1,localhost",
        "no_proxy": "127.0.0.1,localhost",
        "HF_ENDPOINT": NOWHERE,
        "HOME": str(home),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "100",
        "TERM": "dumb",
    }


def copy_of_project(folder: Path) -> None:
    """The project's files in a folder, with the environment of these tests as its `.venv`."""
    for name in project_files():
        if not (REPOSITORY / name).is_file():
            continue  # Somebody removed it since this run began.
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(REPOSITORY / name, target)
    (folder / ".venv").mkdir()
    for part in Path(sys.prefix).iterdir():
        if not part.name.startswith(".installed"):
            (folder / ".venv" / part.name).symlink_to(part)
    # `make` finds an environment that is newer than every list of what it holds.
    for listed in folder.glob("requirements*"):
        os.utime(listed, (0, 0))
    for mark in (".installed", ".installed-dev"):
        (folder / ".venv" / mark).touch()


@contextmanager
def _site(folder: Path, environment: dict[str, str], log: Path) -> Iterator[None]:
    command = [sys.executable, REPOSITORY / "app.py"]
    with (
        log.open("wb") as output,
        running(
            command, cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT
        ) as process,
    ):
        await_answer(f"http://127.0.0.1:{environment['PORT']}/health", process, log)
        yield

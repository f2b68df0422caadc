"""Reads what the Dockerfile says of its images, and runs what they hold in real containers.

Neither a registry nor a build is needed. Docker starts from an empty root. What the Dockerfile
copies lies in a tree of root's at the same places, Python's libraries at /opt/venv, and Python itself
and `/usr` are this machine's. User, variables, command, probe and signal are those of the Dockerfile;
the walls are those of compose.yaml. So all of it is tried but for Debian's packages of the base image.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from evaluator.isolation.container_engine import Engine, ready_image
from tests.conftest import REPOSITORY
from tests.evaluator.isolation.engines import client_environment, docker_daemon

ROOT = REPOSITORY
USER = 1000
PATIENCE_S = 240.0
_LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.pyc", ".assay", "*.orig", ".env*")


@dataclass
class Stage:
    """One stage, or what an image inherits of all those below it."""

    name: str = ""
    base: str = ""
    env: dict[str, str] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    copies: list[tuple[tuple[str, ...], str]] = field(default_factory=list)
    taken: list[tuple[str, str, str]] = field(default_factory=list)
    runs: list[str] = field(default_factory=list)
    args: list[str] = field(default_factory=list)
    user: str = ""
    folder: str = ""
    stop: str = ""
    ports: list[int] = field(default_factory=list)
    health: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)
    entry: list[str] = field(default_factory=list)


@cache
def stages() -> Mapping[str, Stage]:
    """All stages by name, each with what it says itself."""
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    text = "\n".join(line for line in lines if not line.lstrip().startswith("#"))
    found: dict[str, Stage] = {}
    stage = Stage()
    for line in filter(str.strip, re.sub(r"\\\n\s*", " ", text).splitlines()):
        word, _, rest = line.partition(" ")
        if word == "FROM":
            base, _, name = rest.strip().partition(" AS ")
            assert name, f"a stage without a name: {rest}"
            stage = found[name] = Stage(name, base)
        else:
            _say(stage, word, rest.strip())
    return found


def image(target: str) -> Stage:
    """What an image is made of: its own stage on top of those it is built on."""
    known, chain, name = stages(), [], target
    while name in known:
        chain.append(known[name])
        name = known[name].base
    whole = Stage(target, name)
    for stage in reversed(chain):
        whole.env |= stage.env
        whole.labels |= stage.labels
        for many in ("copies", "taken", "runs", "args", "ports"):
            getattr(whole, many).extend(getattr(stage, many))
        for one in ("user", "health", "command", "entry", "folder", "stop"):
            setattr(whole, one, getattr(stage, one) or getattr(whole, one))
    return whole


def _say(stage: Stage, word: str, rest: str) -> None:
    words = rest.split()
    match word:
        case "ENV" | "LABEL":
            pairs = dict(each.split("=", 1) for each in shlex.split(rest))
            (stage.env if word == "ENV" else stage.labels).update(pairs)
        case "COPY" if words[0].startswith("--from="):
            stage.taken.append((words[0].removeprefix("--from="), words[1], words[2]))
        case "COPY":
            stage.copies.append((tuple(words[:-1]), words[-1]))
        case "HEALTHCHECK":
            stage.health = json.loads(rest[rest.index("CMD ") + 4 :])
        case "CMD" | "ENTRYPOINT":
            setattr(stage, "command" if word == "CMD" else "entry", json.loads(rest))
        case "EXPOSE":
            stage.ports.append(int(rest))
        case "RUN" | "ARG":
            (stage.runs if word == "RUN" else stage.args).append(rest)
        case _:
            setattr(stage, {"USER": "user", "WORKDIR": "folder", "STOPSIGNAL": "stop"}[word], rest)


def admitted(name: str) -> bool:
    """Whether `.dockerignore` lets a file or folder into a build."""
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    return f"!{name}" in lines


def lay_out(stage: Stage, tree: Path) -> None:
    """Put what an image copies at its places below a folder, read-only for everybody."""
    for sources, target in stage.copies:
        for source in sources:
            assert admitted(source), f".dockerignore keeps {source} out"
            place = tree / target.lstrip("/")
            place = place / source if target.endswith("/") else place
            place.parent.mkdir(parents=True, exist_ok=True)
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, place, ignore=_LEFT_OUT)
            else:
                shutil.copy(ROOT / source, place)


def service(name: str) -> dict[str, Any]:
    """A service of compose.yaml, with what it shares merged in."""
    found: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"][name]
    return found


def walls(of: Mapping[str, Any]) -> list[str]:
    """The options that a service is walled in with, as `docker run` has them."""
    words = ["--user", of["user"], "--network", "none"]
    words += ["--read-only"] if of["read_only"] else []
    for option, key in (("--cap-drop", "cap_drop"), ("--tmpfs", "tmpfs")):
        words += [word for each in of[key] for word in (option, each)]
    for each in of["security_opt"]:
        name, _, path = each.partition("=./")
        words += ["--security-opt", f"{name}={ROOT / path}" if path else each]
    return words


def for_user(folder: Path) -> Path:
    """A folder as a fresh volume is: that of the images' user."""
    for path in (folder, *folder.rglob("*")):
        os.chown(path, USER, USER)
    return folder


@dataclass(frozen=True)
class Container:
    """One that runs."""

    host: str
    name: str

    def docker(self, *words: str, check: bool = True) -> str:
        done = subprocess.run(
            ["docker", "--host", self.host, *words],
            capture_output=True, text=True, check=False, timeout=PATIENCE_S,
        )  # fmt: skip
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    def says(self, *command: str) -> str:
        """What a command in it prints, errors too."""
        return self.docker("exec", self.name, *command, check=False)

    def state(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.docker("inspect", self.name))[0]["State"]
        return found

    def log(self) -> str:
        return self.docker("logs", self.name, check=False)

    def wait(self, until: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not until():
            assert self.state()["Running"], f"ended before {what}:\n{self.log()}"
            assert time.monotonic() < deadline, f"never {what}:\n{self.log()}"
            time.sleep(0.3)

    def wait_until_healthy(self) -> None:
        self.wait(lambda: self.state()["Health"]["Status"] == "healthy", "healthy")

    def stop(self, seconds: int) -> dict[str, Any]:
        """As `docker stop` does: its signal first, and a kill after so many seconds."""
        self.docker("stop", "--time", str(seconds), self.name)
        return self.state()


@dataclass(frozen=True)
class Rig:
    """An engine at a socket, the name of the image everything starts from, a folder for trees."""

    host: str
    empty: str
    folder: Path

    @contextmanager
    def running(
        self,
        target: str,
        libraries: Path,
        home: Path,
        *,
        options: Sequence[str],
        command: Sequence[str] = (),
    ) -> Iterator[Container]:
        """An image's command, or another, in a container with such a volume and libraries."""
        stage = image(target)
        tree = self.folder / f"tree-{target}"
        if not tree.exists():
            lay_out(stage, tree)
        container = Container(self.host, f"assay-{uuid.uuid4().hex[:12]}")
        words = ["run", "--detach", "--name", container.name, "--hostname", target]
        words += ["--workdir", stage.folder, "--stop-signal", stage.stop or "SIGTERM"]
        words += ["--health-cmd", " ".join(stage.health), "--health-interval", "1s"]
        for name, value in stage.env.items():
            words += ["--env", f"{name}={value}"]
        python = str(Path(sys.base_prefix).resolve())
        for source, place in (
            ("/usr", "/usr"), ("/etc/ld.so.cache", "/etc/ld.so.cache"), (python, python),
            (str(libraries.resolve()), "/opt/venv"), (str(tree / "opt/assay"), "/opt/assay"),
        ):  # fmt: skip
            words += ["--mount", f"type=bind,src={source},dst={place},readonly"]
        words += ["--mount", f"type=bind,src={home},dst=/var/lib/assay"]
        try:
            container.docker(*words, *options, self.empty, *(command or stage.command))
            yield container
        finally:
            container.docker("rm", "--force", container.name, check=False)


@contextmanager
def rig(folder: Path) -> Iterator[Rig]:
    """An engine of the tests' own; skips where none can be started."""
    with docker_daemon() as host:
        empty = ready_image(Engine.docker(client_environment(), host))
        yield Rig(host, empty, folder)

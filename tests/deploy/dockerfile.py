"""What a Dockerfile says of its images, as far as ours uses the language."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

_FROM = re.compile(r"(\S+)\s+AS\s+(\S+)")


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
    folder: str = "/"
    stop: str = "SIGTERM"
    ports: list[int] = field(default_factory=list)
    health: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)
    entry: list[str] = field(default_factory=list)


def instructions(path: Path) -> Iterator[tuple[str, str]]:
    """Each instruction with its words, on one line."""
    lines = (line for line in path.read_text().splitlines() if not line.lstrip().startswith("#"))
    text = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    for line in filter(str.strip, text.splitlines()):
        word, _, rest = line.partition(" ")
        yield word, rest.strip()


def stages(path: Path) -> Mapping[str, Stage]:
    """All stages by name, each with what it says itself."""
    found: dict[str, Stage] = {}
    stage = Stage()
    for word, rest in instructions(path):
        if word == "FROM":
            named = _FROM.fullmatch(rest)
            assert named, f"a stage without a name: {rest}"
            stage = found[named[2]] = Stage(named[2], named[1])
        else:
            _say(stage, word, rest)
    return found


def image(path: Path, target: str) -> Stage:
    """What an image is made of: its own stage on top of those it is built on."""
    known = stages(path)
    chain = []
    name = target
    while name in known:
        chain.append(known[name])
        name = known[name].base
    whole = Stage(target, name)
    for stage in reversed(chain):
        whole.env |= stage.env
        whole.labels |= stage.labels
        for many in ("copies", "taken", "runs", "ports"):
            getattr(whole, many).extend(getattr(stage, many))
        for one in ("user", "health", "command", "entry"):
            setattr(whole, one, getattr(stage, one) or getattr(whole, one))
        whole.folder = stage.folder if stage.folder != "/" else whole.folder
        whole.stop = stage.stop if stage.stop != "SIGTERM" else whole.stop
    return whole


def _say(stage: Stage, word: str, rest: str) -> None:
    if word in {"ENV", "LABEL"}:
        pairs = dict(each.split("=", 1) for each in shlex.split(rest))
        (stage.env if word == "ENV" else stage.labels).update(pairs)
    elif word == "COPY":
        _copy(stage, rest)
    elif word == "HEALTHCHECK":
        stage.health = json.loads(rest[rest.index("CMD ") + 4 :])
    elif word in {"CMD", "ENTRYPOINT"}:
        setattr(stage, "command" if word == "CMD" else "entry", json.loads(rest))
    elif word == "EXPOSE":
        stage.ports.append(int(rest))
    elif word == "RUN":
        stage.runs.append(rest)
    elif word == "ARG":
        stage.args.append(rest)
    else:
        setattr(stage, {"USER": "user", "WORKDIR": "folder", "STOPSIGNAL": "stop"}[word], rest)


def _copy(stage: Stage, rest: str) -> None:
    words = rest.split()
    if words[0].startswith("--from="):
        stage.taken.append((words[0].removeprefix("--from="), words[1], words[2]))
    else:
        stage.copies.append((tuple(words[:-1]), words[-1]))

"""A clean copy of the project, an ordinary user, and the commands this user types there."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from tests.end_to_end.commands import REPOSITORY, environment
from tests.kit.processes import finished, running

ORDINARY = 64123
"""An ordinary user whom no machine knows by name, as in many containers."""
STORE = "lab/assay"
PATIENCE_S = 400.0
Found = TypeVar("Found")


@dataclass
class Ground:
    """Where a trial takes place."""

    place: Path  # folder of all of it, open to everybody to pass
    around: ExitStack  # what ends with the trial
    settings: dict[str, str] = field(default_factory=dict)  # environment of every command
    # processes that go on, by name
    children: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def code(self) -> Path:
        """The clean copy, in which every command is typed."""
        return self.place / "code"

    @property
    def sent(self) -> Path:
        """What submitters have on their disks."""
        return self.place / "sent"

    @property
    def belongings(self) -> Path:
        """Where this machine keeps what belongs to the store."""
        return self.code / ".assay" / "hub" / STORE.replace("/", "--")

    def run(self, *words: object, user: str = "", **more: str) -> subprocess.CompletedProcess[str]:
        """`python ...` to its end, as an account of Assay."""
        return finished(
            self._command(words),
            cwd=REPOSITORY,
            env=self._environment(user, more),
        )

    def evaluator(self, *words: object, user: str = "", code: int = 0, **more: str) -> str:
        """`python -m evaluator ...`; what it printed, where it ended as it should."""
        done = self.run("-m", "evaluator", *words, user=user, **more)
        assert done.returncode == code, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr, done.stderr
        return done.stdout if code == 0 else done.stdout + done.stderr

    def start(self, name: str, *words: object, user: str = "", **more: str) -> int:
        """`python ...` that goes on, with a log of its name; its process id."""
        with self.log(name).open("wb") as log:
            process = running(
                self._command(words),
                cwd=REPOSITORY,
                env=self._environment(user, more),
                stdout=log,
                stderr=subprocess.STDOUT,
            )
            self.children[name] = self.around.enter_context(process)
        return self.children[name].pid

    def log(self, name: str) -> Path:
        """What a process printed."""
        return self.place / f"{name}.log"

    def kill(self, name: str) -> None:
        """Nothing can be done about it from within."""
        self.children[name].send_signal(signal.SIGKILL)
        assert self.children.pop(name).wait(timeout=60) == -signal.SIGKILL

    def stop(self, name: str) -> int:
        """Tell it to end; how it did."""
        process = self.children.pop(name)
        process.send_signal(signal.SIGTERM)
        return process.wait(timeout=60)

    def check_alive(self) -> None:
        """Whoever goes on has not ended."""
        for name, process in self.children.items():
            assert process.poll() is None, f"{name} ended\n{self.log(name).read_text()[-6000:]}"

    def own(self, folder: Path) -> None:
        """Give what root made to the ordinary user."""
        if os.geteuid() != 0:
            return
        for path in (folder, *folder.rglob("*")):
            os.chown(path, ORDINARY, ORDINARY, follow_symlinks=False)

    def _command(self, words: tuple[object, ...]) -> list[str]:
        typed = [sys.executable, *map(str, words)]
        module = "tests.end_to_end.trial.as_ordinary_user"
        uid = ORDINARY if os.geteuid() == 0 else 0
        return [sys.executable, "-m", module, str(uid), str(self.code), *typed]

    def _environment(self, user: str, more: Mapping[str, str]) -> dict[str, str]:
        known = environment(HOME=self.place / "home", TMPDIR=self.place / "tmp", **self.settings)
        known.pop("PYTHONDONTWRITEBYTECODE", None)
        return {**known, **({"ASSAY_USER": user} if user else {}), **more}


@contextmanager
def clean_ground() -> Iterator[Ground]:
    """All of it new; nothing that was started outlives the block."""
    with (
        tempfile.TemporaryDirectory(prefix="assay-trial-", dir="/var/tmp") as name,
        ExitStack() as around,
    ):
        ground = Ground(Path(name), around)
        ground.place.chmod(0o755)
        for folder in ("home", "tmp", "sent"):
            (ground.place / folder).mkdir()
        _copy_files(ground.code)
        ground.own(ground.place)
        yield ground


def _copy_files(target: Path) -> None:
    """What git would commit of the working tree: nothing that was built, installed or cached."""
    listed = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", "-z", "-co", "--exclude-standard"],
        cwd=REPOSITORY,
        capture_output=True,
        check=True,
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (REPOSITORY / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(REPOSITORY / name, target / name)


# Waiting for what must come about, and never for a time.


def until(ground: Ground, what: str, look: Callable[[], Found | None]) -> Found:
    """The first thing a look finds, while the ground's processes live; nothing means: not yet."""
    end = time.monotonic() + PATIENCE_S
    while not (found := look()):
        ground.check_alive()
        logs = "\n".join(ground.log(name).read_text()[-2500:] for name in ground.children)
        assert time.monotonic() < end, f"{what}: it never came about\n{logs}"
        time.sleep(0.1)
    return found


def fetched(address: str) -> tuple[int, bytes]:
    """An answer of the app, whatever its status; 0 where there is none."""
    try:
        with urllib.request.urlopen(address, timeout=60) as reply:
            return reply.status, reply.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()
    except OSError:
        return 0, b""


def told(address: str) -> Any:
    """The JSON of an answer that is none of refusal."""
    status, body = fetched(address)
    assert status == 200, f"{address}: {status} {body[:2000]!r}"
    return json.loads(body)

"""The file system a container starts from: an empty one of ours, or an operator's image.

Ours holds only empty folders, over which Python and its libraries are bound from this machine, so
that a box holds the same whatever the backend. An operator's image has them itself.
"""

from __future__ import annotations

import hashlib
import io
import re
import tarfile
from dataclasses import dataclass
from typing import Protocol

from benchmarks.errors import PlatformError
from evaluator.isolation import layout
from evaluator.isolation.containers.engine import Engine, EngineError
from evaluator.isolation.interpreter import Interpreter

_FOLDERS = (
    "dev", "etc", "opt", "proc", "run", "sys", "tmp", "usr",
    layout.RUNNER.lstrip("/"), layout.SUBMISSION.lstrip("/"),
    layout.SCRATCH.lstrip("/"), layout.MODELS.lstrip("/"),
)  # fmt: skip
_WRITABLE = {folder.lstrip("/") for folder in layout.MEMORY_FOLDERS}
_LINKS = ("bin", "lib", "lib64", "sbin")
_BY_DIGEST = re.compile(r"(?:[\w.:/-]+@)?sha256:[0-9a-f]{64}")
_SITE = "import sysconfig as s; print(s.get_path('purelib'), s.get_path('platlib'), sep='\\n')"


def skeleton() -> bytes:
    """A file system of empty folders and links into `/usr`, as an archive; always the same bytes."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name in sorted(_FOLDERS):
            entry = tarfile.TarInfo(name)
            # Memory that is put over a folder takes over its mode, whatever the engine is told.
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if name in _WRITABLE else 0o755
            archive.addfile(entry)
        for name in _LINKS:
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = tarfile.SYMTYPE, f"usr/{name}"
            archive.addfile(entry)
    return buffer.getvalue()


class Image(Protocol):
    """Where a container starts from."""

    @property
    def binds_this_machine(self) -> bool:
        """Whether `/usr` of this machine is bound over it."""

    def ready(self, engine: Engine) -> str:
        """See that the engine has it, and give its reference.

        Raises:
            EngineError: the engine said no.
            PlatformError: it must not be used.
        """

    def interpreter(self, engine: Engine) -> Interpreter:
        """Python and its libraries, by the names they have inside.

        Raises:
            EngineError: there is none.
        """


@dataclass(frozen=True, slots=True)
class Skeleton:
    """The empty image, made where it is not there yet, without any network."""

    binds_this_machine: bool = True

    def ready(self, engine: Engine) -> str:
        """See `Image.ready`."""
        archive = skeleton()
        name = f"localhost/assay-box:{hashlib.sha256(archive).hexdigest()[:16]}"
        try:
            engine.call("image", "inspect", "--format", "{{.Id}}", name)
        except EngineError as error:
            if "no such" not in error.said.lower() and "not known" not in error.said.lower():
                raise
            engine.call("import", "-", name, given=archive)
        return name

    def interpreter(self, engine: Engine) -> Interpreter:  # noqa: ARG002 - of this machine
        """The running Python."""
        return Interpreter.running_inside()


@dataclass(frozen=True, slots=True)
class OperatorImage:
    """An image that has Python and the libraries itself.

    Attributes:
        reference: with its digest, so that it cannot change unnoticed; pulled by the operator.
        python: what is run in it.
    """

    reference: str
    python: str = "python3"
    binds_this_machine: bool = False

    def ready(self, engine: Engine) -> str:
        """See `Image.ready`."""
        if not _BY_DIGEST.fullmatch(self.reference):
            raise PlatformError(
                "box_not_started",
                f"The image {self.reference} is not named by its digest, so it may change.",
                "Name it as REPOSITORY@sha256:DIGEST; `docker images --digests` shows it.",
            )
        volumes = engine.call(
            "image", "inspect", "--format", "{{len .Config.Volumes}}", self.reference
        )
        if volumes != "0":
            raise PlatformError(
                "box_not_started",
                f"The image {self.reference} declares volumes, which a box could fill.",
                "Build it without VOLUME.",
            )
        return self.reference

    def interpreter(self, engine: Engine) -> Interpreter:
        """Ask the image where its libraries are."""
        printed = engine.call(
            "run", "--rm", "--network", "none", "--read-only", "--pull", "never",
            "--user", "65534:65534", "--cap-drop", "ALL", "--log-driver", "none",
            "--entrypoint", self.python, self.reference, "-I", "-c", _SITE,
        )  # fmt: skip
        return Interpreter(self.python, tuple(dict.fromkeys(printed.splitlines())))

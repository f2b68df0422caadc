r"""Locks: every package with one version and the hashes of its files, and nothing else.

    pillow==12.0.0 \
        --hash=sha256:...

as `uv pip compile --generate-hashes` writes them. What is installed is what is read here, written
anew: no word of the file itself reaches the installer.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from packaging.markers import Marker, UndefinedComparison, UndefinedEnvironmentName
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

MAX_BYTES = 2 << 20
MAX_LINES = 20_000
MAX_PINS = 500
_HASH = re.compile(r"--hash[= ](\S+)")
_SHA256 = re.compile(r"sha256:[0-9a-f]{64}")
_EXTRA = re.compile(r"\bextra\b")
_COMMENT = re.compile(r"(^|\s)#.*")
_BOX = {"os_name": "posix", "sys_platform": "linux", "platform_system": "Linux"}
"""Where what is locked is installed, with the Python and on the kind of machine of this process."""
_TOO_LARGE = 2**64 - 1
"""The least number that uv reads in no version."""
_SHOWN = 100
_LONGEST = 500
_MOST_FAULTS = 100


@dataclass(frozen=True, slots=True)
class Pin:
    """One package as a lock has it."""

    name: str  # as package indexes compare it
    version: Version  # the only one that may be installed
    hashes: frozenset[str]  # SHA-256 of each of its files, any one of which may be installed
    extras: frozenset[str] = frozenset()  # parts of it that are wanted beside the rest
    marker: str = ""  # where it is wanted; empty for everywhere
    line: int = field(default=0, compare=False)  # where it stands, from 1

    @property
    def is_installed(self) -> bool:
        """Whether its marker lets it into a box."""
        return not self.marker or Marker(self.marker).evaluate(_BOX)

    @property
    def text(self) -> str:
        """As a lock has it, always the same for equal pins."""
        extras = f"[{','.join(sorted(self.extras))}]" if self.extras else ""
        marker = f" ; {self.marker}" if self.marker else ""
        hashes = "".join(f" \\\n    --hash=sha256:{one}" for one in sorted(self.hashes))
        return f"{self.name}{extras}=={self.version}{marker}{hashes}\n"


@dataclass(frozen=True, slots=True)
class Fault:
    """Something wrong with a lock."""

    message: str
    line: int | None = None  # from 1; None where it is about the whole


@dataclass(frozen=True, slots=True)
class Lock:
    """A lock without faults."""

    pins: tuple[Pin, ...]  # by name

    @property
    def text(self) -> str:
        """What is installed: the same for locks that differ in order and remarks alone."""
        return "".join(pin.text for pin in self.pins)

    @property
    def sha256(self) -> str:
        """Of its text, as 64 hex digits."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def version(self, name: str) -> str | None:
        """The version of a package; None where the lock does not have it installed."""
        wanted = canonicalize_name(name)
        found = (pin for pin in self.pins if pin.name == wanted and pin.is_installed)
        return next((str(pin.version) for pin in found), None)


def read_pins(content: bytes) -> tuple[Lock, tuple[Fault, ...]]:
    """The pins that can be read, and everything that is wrong, in the order of the lines."""
    if len(content) > MAX_BYTES:
        return Lock(()), (Fault(f"it has more than {MAX_BYTES >> 20} MiB"),)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return Lock(()), (Fault("it is not text in UTF-8"),)
    if text.count("\n") > MAX_LINES:
        return Lock(()), (Fault(f"it has more than {MAX_LINES:,} lines"),)
    pins: dict[str, Pin] = {}
    faults: list[Fault] = []
    for number, line in _requirements(text):
        try:
            pin = _pin(line, number)
        except (ValueError, RecursionError) as error:
            faults.append(Fault(str(error), number))
            continue
        if (other := pins.setdefault(pin.name, pin)) is not pin:
            faults.append(Fault(f"{pin.name} stands in line {other.line} already", number))
    if (more := len(faults) - _MOST_FAULTS) > 0:
        faults[_MOST_FAULTS:] = [Fault(f"{more:,} more lines are wrong")]
    if not pins and not faults:
        faults.append(Fault("it pins nothing"))
    if len(pins) > MAX_PINS:
        faults.append(Fault(f"it pins {len(pins)} packages; {MAX_PINS} are installed at most"))
    return Lock(tuple(pins[name] for name in sorted(pins))), tuple(faults)


def _requirements(text: str) -> Iterator[tuple[int, str]]:
    """Each requirement on one line, with the number of its first."""
    begun, parts = 0, list[str]()
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.rstrip("\r")
        goes_on = line.endswith("\\") and not line.lstrip().startswith("#")
        begun = begun or number
        parts.append(_COMMENT.sub("", line.removesuffix("\\").expandtabs(1)))
        if goes_on:
            continue
        if joined := " ".join(parts).strip():
            yield begun, joined
        begun, parts = 0, []
    if joined := " ".join(parts).strip():
        yield begun, joined


def _pin(line: str, number: int) -> Pin:
    shown = repr(line[:_SHOWN])
    if not line.isprintable():  # a line break of another kind would begin a line of its own
        raise ValueError(f"{shown} holds characters that cannot be seen")
    if line.startswith("-"):
        raise ValueError(f"{shown} is an option, which is no package")
    hashes = _HASH.findall(line)
    text = _HASH.sub("", line).strip()
    if len(text) > _LONGEST:
        raise ValueError(f"{shown} is longer than any package with its marker")
    try:
        requirement = Requirement(text)
    except InvalidRequirement as error:
        raise ValueError(f"{text[:_SHOWN]!r} is no package with a version") from error
    if requirement.url:
        raise ValueError(f"{shown} names a place to download from, and does not pin a version")
    exact = [each for each in requirement.specifier if each.operator == "=="]
    if len(exact) != 1 or len(requirement.specifier) != 1 or "*" in exact[0].version:
        raise ValueError(f"{text[:_SHOWN]!r} does not pin one version with ==")
    version = Version(exact[0].version)
    if max(_numbers(version)) >= _TOO_LARGE:
        raise ValueError(f"{text[:_SHOWN]!r} has a number in its version that is too large")
    if not hashes:
        raise ValueError(f"{text[:_SHOWN]!r} has no hash (--hash=sha256:...)")
    unknown = [one for one in hashes if not _SHA256.fullmatch(one)]
    if unknown:
        raise ValueError(f"{unknown[0][:_SHOWN]!r} is no SHA-256 hash of 64 hex digits")
    return Pin(
        canonicalize_name(requirement.name),
        version,
        frozenset(one.removeprefix("sha256:") for one in hashes),
        frozenset(canonicalize_name(one) for one in requirement.extras),
        _marker(requirement.marker),
        number,
    )


def _numbers(version: Version) -> Iterator[int]:
    """All numbers of a version; of a local part those that stand alone."""
    alone = (part for part in (version.local or "").split(".") if part.isdecimal())
    return map(int, (*re.findall(r"\d+", version.public), *alone))


def _marker(marker: Marker | None) -> str:
    if marker is None:
        return ""
    told = str(marker)
    wrong = ValueError(f"its marker {told[:_SHOWN]!r} cannot be evaluated")
    # An extra of a package that asks for it, which there is not; what looks like an option.
    if _EXTRA.search(told) or "--" in told:
        raise wrong
    try:
        marker.evaluate(_BOX)
    except (UndefinedComparison, UndefinedEnvironmentName) as error:
        raise wrong from error
    return told

"""Asks an advisory service about a lock with pip-audit; no answer is never taken for a good one."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from evaluator.environments.advisories import Finding, Kept
from evaluator.environments.lock import Pin

LONGEST_S = 300.0
SOCKET_S = 10


@dataclass(frozen=True, slots=True)
class Answer:
    """What a service said of one lock.

    Attributes:
        findings: defects it knows.
        unknown: names of packages of which nothing is known.
        fault: why nothing was answered; empty where something was.
    """

    findings: tuple[Finding, ...] = ()
    unknown: tuple[str, ...] = ()
    fault: str = ""

    @property
    def complete(self) -> bool:
        """Whether every package was answered for."""
        return not self.fault and not self.unknown


def ask(lock: Path, pins: Sequence[Pin], kept: Kept, today: date, address: str = "") -> Answer:
    """Ask about every package of a lock.

    Args:
        lock: the file.
        pins: what it holds.
        kept: exceptions.
        today: for those.
        address: of a service that answers as OSV does; empty for OSV itself.
    """
    with TemporaryDirectory() as folder:
        out = Path(folder, "answer.json")
        command = [
            *(sys.executable, "-m", "pip_audit", "--requirement", str(lock)),
            *("--disable-pip", "--require-hashes", "--progress-spinner", "off"),
            *("--vulnerability-service", "osv", "--timeout", str(SOCKET_S)),
            *(
                "--format",
                "json",
                "--output",
                str(out),
                *(["--osv-url", address] if address else []),
            ),
        ]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=LONGEST_S
            )
        except subprocess.TimeoutExpired:
            return Answer(fault=f"no answer in {LONGEST_S:.0f} s")
        # 0: nothing found, 1: something found, or a fault; only with a fault there is no file.
        if done.returncode not in {0, 1} or not out.is_file():
            return Answer(fault=_last_line(done.stderr))
        return read_answer(out.read_text(encoding="utf-8"), pins, kept, today)


def read_answer(text: str, pins: Sequence[Pin], kept: Kept, today: date) -> Answer:
    """What pip-audit wrote, as JSON.

    Args:
        text: the file.
        pins: of the lock it was asked about; one it does not name was not looked at.
        kept: exceptions.
        today: for those.
    """
    try:
        told = {each["name"]: each for each in json.loads(text)["dependencies"]}
        answered = {name: each["vulns"] for name, each in told.items() if "vulns" in each}
        findings = tuple(
            _finding(pin, found, kept, today)
            for pin in pins
            for found in answered.get(pin.name, ())
        )
    except (ValueError, KeyError, TypeError) as error:
        return Answer(fault=f"an answer that cannot be read ({type(error).__name__}: {error})")
    return Answer(findings, tuple(pin.name for pin in pins if pin.name not in answered))


def _finding(pin: Pin, found: dict[str, Any], kept: Kept, today: date) -> Finding:
    ids = (str(found["id"]), *map(str, found.get("aliases", ())))
    about = str(found.get("description", "")).partition("\n")[0][:200]
    return Finding(pin, ids, about, kept.excepted(ids, pin.name, today))


def _last_line(said: str) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return lines[-1][:300] if lines else "pip-audit said nothing"

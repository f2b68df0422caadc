"""Known defects are found whatever a service says, and no answer never passes for a good one."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from packaging.version import Version

from supply.advisories import AdvisoryError, known_findings, read_advisories
from supply.locks import LOCKS, Pin, read_lock
from supply.service import ask, read_answer
from tests.supply.osv import service

ROOT = Path(__file__).resolve().parents[2]
TODAY = date(2026, 11, 22)
KEPT = read_advisories()
SMALL = f"idna==3.20 --hash=sha256:{'a' * 64}\n"


def pin(name: str, version: str) -> Pin:
    return Pin(name, Version(version), frozenset())


def tree(folder: Path, **changed: str) -> Path:
    """A small project whose locks are as given."""
    for lock in LOCKS:
        (folder / lock).write_text(changed.get(lock, SMALL))
    return folder


def audit(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "supply.audit", "--root", str(folder), *options]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)


def test_what_is_locked_has_no_known_defect_that_nobody_accepted() -> None:
    today = datetime.now(UTC).date()
    for lock in LOCKS:
        found = known_findings(read_lock(ROOT / lock), KEPT, today)
        assert [each for each in found if each.exception is None] == []


@pytest.mark.parametrize(
    ("name", "version", "known"),
    [
        ("pillow", "10.1.0", "CVE-2023-50447"),
        ("torch", "2.5.1", "CVE-2025-32434"),
        ("pyarrow", "14.0.0", "CVE-2023-47248"),
        ("gradio", "4.10.0", "CVE-2023-51449"),
        ("ray", "2.60.0", "CVE-2023-48022"),
    ],
)
def test_an_old_version_is_found(name: str, version: str, known: str) -> None:
    found = known_findings([pin(name, version)], KEPT, TODAY)
    assert known in {one for each in found for one in each.ids}


def test_the_first_version_with_the_defect_mended_is_not() -> None:
    mended = [pin("pillow", "10.2.0"), pin("torch", "2.6.0"), pin("pyarrow", "14.0.1")]
    assert known_findings(mended, KEPT, TODAY) == ()


def test_an_exception_ends_with_its_day() -> None:
    (last,) = (each.until for each in KEPT.exception if each.package == "ray")
    (held,) = known_findings([pin("ray", "2.60.0")], KEPT, last)
    (ended,) = known_findings([pin("ray", "2.60.0")], KEPT, date(last.year + 1, 1, 1))
    assert held.exception is not None
    assert ended.exception is None


def test_an_exception_is_for_one_package() -> None:
    lines = (ROOT / "supply/advisories.toml").read_text()
    assert "CVE-2023-4863" in lines  # the same name for a defect of two packages
    assert KEPT.excepted(["CVE-2023-48022"], "pillow", TODAY) is None


@pytest.mark.parametrize(
    "spoilt",
    [
        "[[advisory]]\nid = 'CVE-1'\n",
        "[[exception]]\nid = 'CVE-2023-48022'\npackage = 'ray'\nreason = 'short'\nuntil = 2027-01-01",
        "advisory = 3",
        "[[",
    ],
)
def test_a_list_that_says_too_little_is_refused(tmp_path: Path, spoilt: str) -> None:
    (tmp_path / "list.toml").write_text(spoilt)
    with pytest.raises(AdvisoryError):
        read_advisories(tmp_path / "list.toml")


def test_a_planted_old_version_fails_the_audit_without_any_service(tmp_path: Path) -> None:
    planted = {LOCKS[1]: SMALL + f"pillow==9.5.0 --hash=sha256:{'b' * 64}\n"}
    done = audit(tree(tmp_path, **planted), "--offline")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "pillow 9.5.0: CVE-2023-50447" in done.stdout


def test_not_asking_is_said(tmp_path: Path) -> None:
    done = audit(tree(tmp_path), "--offline")
    assert done.returncode == 0
    assert done.stdout.count("UNKNOWN") == len(LOCKS)
    assert audit(tmp_path, "--offline", "--complete").returncode == 3


@pytest.mark.slow
def test_what_a_service_knows_fails_the_audit(tmp_path: Path) -> None:
    with service({("idna", "3.20"): "PYSEC-2026-1"}) as address:
        found = ask(tree(tmp_path) / LOCKS[0], [pin("idna", "3.20")], KEPT, TODAY, address)
        done = audit(tmp_path, "--service", address)
    assert [each.ids for each in found.findings] == [("PYSEC-2026-1",)]
    assert done.returncode == 1
    assert "UNKNOWN" not in done.stdout


@pytest.mark.slow
def test_a_service_that_knows_of_nothing_is_a_complete_answer(tmp_path: Path) -> None:
    with service({}) as address:
        found = ask(tree(tmp_path) / LOCKS[0], [pin("idna", "3.20")], KEPT, TODAY, address)
    assert found.complete
    assert found.findings == ()


@pytest.mark.slow
@pytest.mark.parametrize(("status", "body"), [(500, b""), (404, b"{}"), (200, b"<html>")])
def test_an_answer_that_is_none_is_unknown(tmp_path: Path, status: int, body: bytes) -> None:
    with service({}, status=status, body=body) as address:
        found = ask(tree(tmp_path) / LOCKS[0], [pin("idna", "3.20")], KEPT, TODAY, address)
    assert found.fault
    assert not found.complete


@pytest.mark.slow
def test_a_service_that_is_away_is_unknown(tmp_path: Path) -> None:
    away = "http://127.0.0.1:9/v1/query"
    found = ask(tree(tmp_path) / LOCKS[0], [pin("idna", "3.20")], KEPT, TODAY, away)
    assert found.fault


def test_a_package_that_was_skipped_or_left_out_is_unknown() -> None:
    told = {"dependencies": [{"name": "idna", "skip_reason": "not found"}]}
    found = read_answer(json.dumps(told), [pin("idna", "1"), pin("h11", "1")], KEPT, TODAY)
    assert found.unknown == ("idna", "h11")
    assert not found.complete


@pytest.mark.parametrize("text", ["", "[]", '{"dependencies": [{}]}', '{"dependencies": 3}'])
def test_an_answer_that_cannot_be_read_is_unknown(text: str) -> None:
    assert read_answer(text, [pin("idna", "1")], KEPT, TODAY).fault


def test_a_lock_without_hashes_cannot_be_audited(tmp_path: Path) -> None:
    tree(tmp_path, **{LOCKS[0]: "idna==3.20\n"})
    done = audit(tmp_path, "--offline")
    assert done.returncode == 3
    assert "has no hash" in done.stderr
    shutil.rmtree(tmp_path)

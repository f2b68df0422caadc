"""What a release rests on: locks, known defects, lists of parts, and the check before a tag."""

from __future__ import annotations

import json
import re
import shutil
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, date, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import typer
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version
from typer.testing import CliRunner, Result

from evaluator.environments.advisories import AdvisoryError, known_findings, read_advisories
from evaluator.environments.lock import Pin
from supply.audit import main as audit_command
from supply.locks import LOCKS, LockError, read_lock
from supply.release_check import changes_of, problems
from supply.sbom import PARTS, write
from supply.service import ask, read_answer
from tests.conftest import REPOSITORY as ROOT

HASH = f"--hash=sha256:{'a' * 64}"
MODELS = {"torch", "torchvision", "transformers", "diffusers", "open-clip-torch", "ray", "datasets"}


# Locks: every version, every file by its hash, for both kinds of processor.


def wanted(name: str) -> list[Requirement]:
    """What a requirements*.in asks for, with the files it includes."""
    found: list[Requirement] = []
    for line in (ROOT / name).read_text().splitlines():
        if line.startswith("-r "):
            found += wanted(line.removeprefix("-r ").strip())
        elif line and not line.startswith(("#", "-c ")):
            found.append(Requirement(line))
    return found


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_holds_what_its_source_asks_for_and_names_no_place_to_download_from(
    lock: str,
) -> None:
    pinned = {pin.name: pin.version for pin in read_lock(ROOT / lock)}
    for each in wanted(lock.replace(".txt", ".in")):
        assert pinned[canonicalize_name(each.name)] in each.specifier, each
    assert "://" not in (ROOT / lock).read_text()


def test_packages_are_the_same_in_all_locks_and_the_site_needs_no_models() -> None:
    first: dict[str, Pin] = {}
    for lock in LOCKS:
        for pin in read_lock(ROOT / lock):
            assert first.setdefault(pin.name, pin) == pin, (lock, pin.name)
    site, all_of_it = ({p.name for p in read_lock(ROOT / lock)} for lock in LOCKS[:2])
    assert site < all_of_it
    assert all_of_it > MODELS
    assert not MODELS & site
    # One hash for each wheel of each processor: those that are built for one have many.
    built = {"numpy", "pandas", "pyarrow", "pillow", "orjson", "pydantic-core", "scipy", "torch"}
    assert all(len(first[name].hashes) >= 8 for name in built)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("numpy", "not pin"), (f"numpy>=2 {HASH}", "not pin"), ("numpy==2.0", "no hash"),
        (f"numpy==2.* {HASH}", "not pin"), (f"numpy @ https://example.org/n.whl {HASH}", "not pin"),
        ("--extra-index-url https://example.org", "no package"), ("", "pins nothing"),
    ],
)  # fmt: skip
def test_a_lock_that_leaves_something_open_is_refused(tmp_path: Path, line: str, said: str) -> None:
    (tmp_path / "lock.txt").write_text(line)
    with pytest.raises(LockError, match=re.escape(said)):
        read_lock(tmp_path / "lock.txt")


# Known defects are found whatever a service says, and no answer never passes for a good one.

TODAY = date(2026, 11, 22)
KEPT = read_advisories()
SMALL = f"idna==3.20 {HASH}\n"


def pin(name: str, version: str) -> Pin:
    return Pin(name, Version(version), frozenset())


def tree(folder: Path, **changed: str) -> Path:
    """A small project whose locks are as given."""
    for lock in LOCKS:
        (folder / lock).write_text(changed.get(lock, SMALL))
    return folder


def audit(folder: Path, *options: str) -> Result:
    """`python -m supply.audit`, which `make test` starts, in this process."""
    command = typer.Typer()
    command.command()(audit_command)
    return CliRunner().invoke(command, ["--root", str(folder), *options])


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
        ("torch", "2.6.0rc1", "CVE-2025-32434"),
        ("torch", "2.6.0.dev20250101+cu124", "CVE-2025-32434"),
        ("transformers", "4.36.0rc1", "CVE-2023-6730"),
        ("opencv-python", "4.8.0.74", "CVE-2023-4863"),
        ("opencv-contrib-python", "4.8.0.74", "CVE-2023-4863"),
        ("opencv-contrib-python-headless", "4.8.0.74", "CVE-2023-4863"),
    ],
)
def test_an_old_version_is_found(name: str, version: str, known: str) -> None:
    found = known_findings([pin(name, version)], KEPT, TODAY)
    assert known in {one for each in found for one in each.ids}


def test_a_mended_version_is_not_found_and_an_exception_is_for_one_package_until_its_day() -> None:
    mended = [pin("pillow", "10.2.0"), pin("torch", "2.6.0"), pin("pyarrow", "14.0.1")]
    mended += [
        pin("torch", "2.6.0+cu124"),
        pin("torch", "2.7.0rc1"),
        pin("opencv-python", "4.8.1.78"),
    ]
    assert known_findings(mended, KEPT, TODAY) == ()
    (last,) = (each.until for each in KEPT.exception if each.package == "ray")
    ray = [pin("ray", "2.60.0")]
    (held,), (ended,) = (
        known_findings(ray, KEPT, day) for day in (last, date(last.year + 1, 1, 1))
    )
    assert held.exception is not None
    assert ended.exception is None
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
    planted = {LOCKS[1]: SMALL + f"pillow==9.5.0 {HASH}\n"}
    done = audit(tree(tmp_path, **planted), "--offline")
    assert done.exit_code == 1, done.output
    assert "pillow 9.5.0: CVE-2023-50447" in done.stdout


def test_not_asking_is_said_and_a_lock_without_hashes_cannot_be_audited(tmp_path: Path) -> None:
    done = audit(tree(tmp_path), "--offline")
    assert (done.exit_code, done.stdout.count("UNKNOWN")) == (0, len(LOCKS))
    assert audit(tmp_path, "--offline", "--complete").exit_code == 3
    done = audit(tree(tmp_path, **{LOCKS[0]: "idna==3.20\n"}), "--offline")
    assert done.exit_code == 3
    assert "no hash" in done.stderr


@contextmanager
def service(
    known: Mapping[tuple[str, str], str], status: int = 200, body: bytes | None = None
) -> Iterator[str]:
    """A service on this machine that answers as OSV does, its status and answer spoilt or not."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            name, version = asked["package"]["name"], asked["version"]
            affected = {"package": {"name": name, "ecosystem": "PyPI"}, "ranges": []}
            found = {
                "id": known.get((name, version)), "summary": "It is broken.", "aliases": [],
                "published": "2026-01-01T00:00:00Z", "affected": [affected],
            }  # fmt: skip
            answer = {"vulns": [found]} if found["id"] else {}
            content = json.dumps(answer).encode() if body is None else body
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1/query"
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.slow
def test_what_a_service_knows_fails_the_audit(tmp_path: Path) -> None:
    with service({("idna", "3.20"): "PYSEC-2026-1"}) as address:
        found = ask(tree(tmp_path) / LOCKS[0], [pin("idna", "3.20")], KEPT, TODAY, address)
        done = audit(tmp_path, "--service", address)
    assert [each.ids for each in found.findings] == [("PYSEC-2026-1",)]
    assert done.exit_code == 1
    assert "UNKNOWN" not in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("status", "body", "complete"),
    [(200, None, True), (500, b"", False), (404, b"{}", False), (200, b"<html>", False),
     (0, None, False)],
    ids=["nothing", "broken", "not found", "a page", "away"],
)  # fmt: skip
def test_only_an_answer_is_a_complete_one(
    tmp_path: Path, status: int, body: bytes | None, complete: bool
) -> None:
    with service({}, status, body) as there:
        address = there if status else "http://127.0.0.1:9/v1/query"
        found = ask(tree(tmp_path) / LOCKS[0], [pin("idna", "3.20")], KEPT, TODAY, address)
    assert (found.complete, bool(found.fault), found.findings) == (complete, not complete, ())


def test_a_package_that_was_skipped_or_left_out_is_unknown() -> None:
    told = {"dependencies": [{"name": "idna", "skip_reason": "not found"}]}
    found = read_answer(json.dumps(told), [pin("idna", "1"), pin("h11", "1")], KEPT, TODAY)
    assert found.unknown == ("idna", "h11")
    assert not found.complete


@pytest.mark.parametrize("text", ["", "[]", '{"dependencies": [{}]}', '{"dependencies": 3}'])
def test_an_answer_that_cannot_be_read_is_unknown(text: str) -> None:
    assert read_answer(text, [pin("idna", "1")], KEPT, TODAY).fault


# The lists of parts: valid, complete, and the same for the same locks.


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sbom")
    names = [path.name for path in write(folder, check=False)]
    assert names == [f"{image}.cdx.json" for image in PARTS]
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("image", PARTS)
def test_it_follows_the_standard(written: Path, image: str) -> None:
    text = (written / f"{image}.cdx.json").read_text()
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None


@pytest.mark.parametrize("image", PARTS)
def test_it_lists_every_package_with_the_hashes_of_its_files_and_no_moment(
    written: Path, image: str
) -> None:
    found: dict[str, Any] = json.loads((written / f"{image}.cdx.json").read_text())
    listed = {
        (part["name"], part["version"]): {
            each["content"]
            for reference in part["externalReferences"]
            for each in reference.get("hashes", ())
        }
        for part in found["components"]
    }
    pins = read_lock(ROOT / PARTS[image])
    assert listed == {(pin.name, str(pin.version)): set(pin.hashes) for pin in pins}
    assert found["metadata"]["component"]["name"] == "assay"
    assert "timestamp" not in found["metadata"]
    assert "serialNumber" not in found


def test_the_same_locks_give_the_same_bytes(written: Path, tmp_path: Path) -> None:
    path = next(write(tmp_path, check=False))  # of one image: a list is a program's run
    assert path.read_bytes() == (written / path.name).read_bytes()


# A release is refused until everything agrees on the version and nothing is left open.

CHANGES = "# Changes\n\n## Unreleased\n\nnot this\n\n## 1.2.3 (2026-11-22)\n\n- One thing.\n\n## 1.2.2\n\nold\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """One that is fit to be released as 1.2.3."""
    (tmp_path / "evaluator/environments").mkdir(parents=True)
    (tmp_path / "deploy").mkdir()
    for name in (*LOCKS, "evaluator/environments/advisories.toml"):
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "assay"\nversion = "1.2.3"\n')
    (tmp_path / "CHANGELOG.md").write_text(CHANGES)
    (tmp_path / "CITATION.cff").write_text("cff-version: 1.2.0\nversion: 1.2.3\n")
    (tmp_path / "deploy/base.env").write_text(f"BASE_DIGEST=@sha256:{'0' * 64}\n")
    return tmp_path


def found(project: Path, tag: str | None = "v1.2.3") -> list[str]:
    return list(problems(project, tag, datetime.now(UTC).date()))


def test_what_agrees_may_be_released_and_its_notes_are_its_part_of_the_changes(
    project: Path,
) -> None:
    assert found(project) == found(project, None) == []
    notes = {version: changes_of(project, version) for version in ("1.2.3", "1.2.2", "1.2")}
    assert notes == {"1.2.3": "- One thing.", "1.2.2": "old", "1.2": ""}


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("tag", "v1.2.4", "1.2.3"),
        ("tag", "1.2.3", "no version"),
        ("tag", "v1.2", "no version"),
        ("CHANGELOG.md", "## 1.2.30\n\nlater\n\n## 1.2.3\n\n## 1.2.2\n", "CHANGELOG.md"),
        ("CHANGELOG.md", "", "CHANGELOG.md"),
        ("CITATION.cff", "version: 1.2.2\n", "1.2.2"),
        ("CITATION.cff", "title: x\n", "KeyError"),
        ("deploy/base.env", "BASE_DIGEST=\n", "base image"),
        ("deploy/base.env", "BASE_DIGEST=@sha256:abc\n", "base image"),
        ("requirements.txt", "torch==2.5.0\n", "no hash"),
        ("requirements.txt", f"torch==2.5.0 {HASH}\n", "CVE-2025-32434"),
    ],
)
def test_what_does_not_agree_may_not(project: Path, name: str, content: str, said: str) -> None:
    if name != "tag":
        (project / name).write_text(content)
    assert said in "\n".join(found(project, content if name == "tag" else "v1.2.3"))


def test_all_that_stands_in_the_way_is_said_at_once(project: Path) -> None:
    (project / "CHANGELOG.md").unlink()
    (project / "CITATION.cff").unlink()
    (project / "deploy/base.env").write_text("")
    assert len(found(project, "v9.9.9")) == 4

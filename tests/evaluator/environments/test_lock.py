"""Locks: what one may hold, and everything that is wrong with one at once."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest

from benchmarks.errors import PlatformError, SubmitterError
from evaluator.environments.lock import MAX_BYTES, MAX_LINES, MAX_PINS, Lock, read_pins
from evaluator.environments.naming import (
    OWN,
    NamedLock,
    builtin_lock,
    examined,
    operator_lock,
    operator_names,
    recorded_lock,
)

A, B = "a" * 64, "b" * 64
HASH = f"--hash=sha256:{A}"
LARGE = 2**64 - 1
"""The least number that uv reads in no version."""
PILLOW = f"pillow==99.0 {HASH}"
FULL = f"""\ufeff# made by a program
Pillow==99.0 \\
    --hash=sha256:{B} \\
    --hash=sha256:{A}
    # via that
torch[extra_part]==2.7.0+cu126 ; python_version >= "3.11" --hash=sha256:{A}\r
"""


def test_what_a_compiler_of_locks_writes_is_read() -> None:
    lock, faults = read_pins(FULL.encode())
    assert faults == ()
    assert [(p.name, str(p.version), p.line) for p in lock.pins] == [
        ("pillow", "99.0", 2),
        ("torch", "2.7.0+cu126", 6),
    ]
    pillow, torch = lock.pins
    assert pillow.hashes == {A, B}
    assert torch.extras == {"extra-part"}
    assert torch.marker == 'python_version >= "3.11"'
    assert (lock.version("PILLOW"), lock.version("numpy")) == ("99.0", None)
    assert read_pins(lock.text.encode()) == (lock, ())


@pytest.mark.parametrize("version", [f"{LARGE - 1}!1.{LARGE - 1}", f"1+g{LARGE}.{LARGE}a"])
def test_a_version_that_uv_reads_is_read(version: str) -> None:
    lock, faults = read_pins(f"x=={version} {HASH}".encode())
    assert (lock.version("x"), faults) == (version, ())


def test_order_and_remarks_do_not_make_another_lock() -> None:
    one, other = (f"x==1 {HASH}", f"y==2 {HASH}")
    lock, _ = read_pins(f"{one}\n{other}\n".encode())
    same, _ = read_pins(f"# a\n{other}\n\n{one} # b".encode())
    third, _ = read_pins(f"{one}\n{other.replace(A, B)}".encode())
    assert lock.sha256 == same.sha256 != third.sha256


@pytest.mark.parametrize(
    "line",
    [
        "numpy", f"numpy {HASH}", f"numpy>=2 {HASH}", f"numpy==2.* {HASH}", f"numpy===2 {HASH}",
        f"numpy==2,<3 {HASH}", "numpy==2", "numpy==2 --hash=md5:abc", f"numpy==2 --hash=sha256:{A[1:]}",
        f"numpy==2 --hash=sha256:{A.upper()}", f"numpy @ https://example.org/n.whl {HASH}",
        f"numpy @ file:///etc/passwd {HASH}", f"https://example.org/n.whl {HASH}", f"./n.whl {HASH}",
        f"git+https://example.org/n {HASH}", "-e .", "--editable=.", "-r other.txt", "-c other.txt",
        "--index-url https://example.org", "--extra-index-url https://example.org", "-f /srv",
        "--trusted-host example.org", "--no-binary :all:", "--pre", f"numpy==2 --no-binary {HASH}",
        f"numpy==2 --config-settings=a=b {HASH}", f"numpy==2; extra == 'x' {HASH}",
        f"numpy==2; python_version ~= 'x' {HASH}", f"numpy==2; os.system('x') {HASH}", f"nümpy==2 {HASH}",
        f'numpy==2; sys_platform == "a\r--index-url=https://example.org" {HASH}',
        f'numpy==2; sys_platform == "a\u2028-e ." {HASH}', f'numpy==2; sys_platform == "a\x0b-e ." {HASH}',
        f"numpy==2; sys_platform == 'a\" --no-binary \"b' {HASH}",
        f"numpy==2; {'(' * 240}os_name == 'x'{')' * 240} {HASH}", f"numpy==2; {'(' * 9_999} {HASH}",
        f"numpy=={'9' * 9_999} {HASH}", f"numpy==1.{LARGE} {HASH}", f"numpy=={LARGE}!1 {HASH}",
        f"numpy==1rc{LARGE} {HASH}", f"numpy==1.post{LARGE} {HASH}", f"numpy==1.dev{LARGE} {HASH}", f"numpy==1+a.{LARGE} {HASH}",
        f"numpy==${{HOME}} {HASH}", f"numpy==2 {HASH} -r x", "\x00", f"\u202enumpy==2 {HASH}",
    ],
)  # fmt: skip
def test_a_line_that_is_no_package_with_version_and_hash_is_refused(line: str) -> None:
    _, faults = read_pins(f"{PILLOW}\n\n{line}\n".encode())
    assert [fault.line for fault in faults] == [3], faults
    assert "\u202e" not in faults[0].message


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"a\n" * 103, [*range(1, 101), None]),
        (b"", [None]),
        (b"# nothing\n", [None]),
        (b"\xff\xfe", [None]),
        (b"#" * (MAX_BYTES + 1), [None]),
        (b"\n" * (MAX_LINES + 1), [None]),
        ("".join(f"p{i}==1 {HASH}\n" for i in range(MAX_PINS + 1)).encode(), [None]),
        (f"x==1 {HASH}\nX==2 {HASH}\nx==1 {HASH}".encode(), [2, 3]),
        (f"a\nb==1\nc==1 {HASH}\n-e .\n".encode(), [1, 2, 4]),
    ],
    ids=[
        "many faults",
        "empty",
        "remarks",
        "no text",
        "long",
        "lines",
        "pins",
        "twice",
        "all at once",
    ],
)
def test_everything_that_is_wrong_with_a_lock_is_told_at_once(
    content: bytes, lines: list[int | None]
) -> None:
    assert [fault.line for fault in read_pins(content)[1]] == lines


@pytest.mark.parametrize(
    ("more", "accepted", "codes"),
    [
        ("", "", []),
        ("nothing", "", [("bad_lock", 2)]),
        (f"torch==2.5.1 {HASH}", "", [("known_defect", 2)]),
        (f"torch==2.5.1 {HASH}", "CVE-2025-32434", []),
        (f"torch==2.5.1 {HASH}", "CVE-2000-0001", [("known_defect", 2)]),
    ],
)
def test_a_lock_has_no_known_defect_that_the_operator_did_not_accept(
    more: str, accepted: str, codes: list[tuple[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSAY_ACCEPTED_ADVISORIES", accepted)
    lock, problems = examined(f"{PILLOW}\n{more}\n".encode(), OWN)
    assert [(one.code, one.line) for one in problems] == codes
    assert {one.file for one in problems} <= {OWN} and all(one.hint for one in problems)
    assert (lock is None) == bool(codes)


@pytest.mark.parametrize(
    ("line", "codes"),
    [
        ("numpy==2", ["no_pillow"]),
        ("pillow==99.0 ; sys_platform == 'win32'", ["no_pillow"]),
        ("pillow==99.0 ; python_version < '3.11'", ["no_pillow"]),
        ("pillow==99.0 ; sys_platform == 'linux' and python_version >= '3.11'", []),
        ("pillow==99.0 ; os_name == 'posix' and platform_system == 'Linux'", []),
    ],
)
def test_a_lock_must_install_what_the_box_reads_images_with(line: str, codes: list[str]) -> None:
    lock, problems = examined(f"{line} {HASH}".encode(), OWN)
    assert [one.code for one in problems] == codes
    assert (lock is None) == bool(codes)


@pytest.fixture
def locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "locks"
    folder.mkdir()
    (folder / "old-torch.lock").write_text(PILLOW)
    (folder / "broken.lock").write_text("numpy")
    (folder / "No Name.lock").write_text(PILLOW)
    monkeypatch.setenv("ASSAY_LOCKS", str(folder))
    return folder


def a_lock(text: str = PILLOW) -> Lock:
    return read_pins(text.encode())[0]


def test_an_operator_has_environments_by_name(locks: Path) -> None:
    assert operator_names() == ("broken", "old-torch")
    assert operator_lock("old-torch") == NamedLock("old-torch", a_lock())
    with pytest.raises(PlatformError) as caught:
        operator_lock("broken")
    assert caught.value.code == "bad_environment"
    for name in ("other", "No Name", "../locks/old-torch", ""):
        with pytest.raises(SubmitterError) as refused:
            operator_lock(name)
        assert refused.value.code == "unknown_environment"


@pytest.mark.parametrize(("pinned", "code"), [("0.36.2", "bad_environment"), ("1.0", ""), ("", "")])
def test_our_own_code_runs_with_the_packages_of_a_built_in_metric(
    locks: Path, pinned: str, code: str
) -> None:
    client = f"\nhuggingface-hub=={pinned} {HASH}" if pinned else ""
    (locks / "rows.lock").write_text(PILLOW + client)
    assert operator_lock("rows").name == "rows"
    with pytest.raises(PlatformError) if code else nullcontext() as caught:
        assert builtin_lock("rows") == operator_lock("rows")
    assert caught is None or caught.value.code == code


def test_without_a_folder_of_locks_there_are_no_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ASSAY_LOCKS", raising=False)
    assert operator_names() == ()
    with pytest.raises(SubmitterError, match="none"):
        operator_lock("old-torch")


def test_a_run_uses_the_lock_that_was_taken_in_or_none(locks: Path, tmp_path: Path) -> None:
    (tmp_path / OWN).write_text(PILLOW)
    for name in (OWN, "old-torch"):
        wanted = NamedLock(name, a_lock())
        assert recorded_lock(wanted.record, tmp_path) == wanted
    other = NamedLock("old-torch", a_lock()).record
    (locks / "old-torch.lock").write_text(PILLOW.replace(A, B))
    with pytest.raises(PlatformError) as caught:
        recorded_lock(other, tmp_path)
    assert caught.value.code == "environment_changed"
    (tmp_path / OWN).write_text("numpy")
    with pytest.raises(SubmitterError) as refused:
        recorded_lock(NamedLock(OWN, a_lock()).record, tmp_path)
    assert refused.value.code == "bad_lock"

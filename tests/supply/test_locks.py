"""What is locked: every version, every file by its hash, for both kinds of processor."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from supply.locks import LOCKS, LockError, Pin, read_lock

ROOT = Path(__file__).resolve().parents[2]
HASH = "a" * 64
MODELS = {"torch", "torchvision", "transformers", "diffusers", "open-clip-torch", "ray", "datasets"}


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
def test_a_lock_holds_what_its_source_asks_for(lock: str) -> None:
    pinned = {pin.name: pin.version for pin in read_lock(ROOT / lock)}
    for each in wanted(lock.replace(".txt", ".in")):
        assert pinned[canonicalize_name(each.name)] in each.specifier, each


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_names_no_place_to_download_from(lock: str) -> None:
    assert "://" not in (ROOT / lock).read_text()


def test_a_package_has_one_version_and_the_same_files_in_all_locks() -> None:
    first: dict[str, Pin] = {}
    for lock in LOCKS:
        for pin in read_lock(ROOT / lock):
            assert first.setdefault(pin.name, pin) == pin, (lock, pin.name)


def test_the_site_needs_a_part_of_it_and_no_models() -> None:
    site, all_of_it = ({p.name for p in read_lock(ROOT / lock)} for lock in LOCKS[:2])
    assert site < all_of_it
    assert all_of_it > MODELS
    assert not MODELS & site


def test_there_are_files_for_every_processor() -> None:
    """One hash for each wheel of each processor: those that are built for one have many."""
    built = {"numpy", "pandas", "pyarrow", "pillow", "orjson", "pydantic-core", "scipy", "torch"}
    by_name = {pin.name: pin for pin in read_lock(ROOT / "requirements.txt")}
    assert all(len(by_name[name].hashes) >= 8 for name in built)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("numpy", "does not pin"),
        (f"numpy>=2 --hash=sha256:{HASH}", "does not pin"),
        ("numpy==2.0", "has no hash"),
        (f"numpy==2.* --hash=sha256:{HASH}", "does not pin"),
        (f"numpy @ https://example.org/n.whl --hash=sha256:{HASH}", "does not pin"),
        ("--extra-index-url https://example.org", "pins no package"),
        ("", "pins nothing"),
    ],
)
def test_a_lock_that_leaves_something_open_is_refused(tmp_path: Path, line: str, said: str) -> None:
    (tmp_path / "lock.txt").write_text(line)
    with pytest.raises(LockError, match=re.escape(said)):
        read_lock(tmp_path / "lock.txt")

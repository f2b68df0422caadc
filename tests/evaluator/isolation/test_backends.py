"""Whether this machine can isolate, and what people are told where it cannot."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.errors import PlatformError
from evaluator.isolation.backend import Probe, isolation_status
from evaluator.isolation.bubblewrap import Bubblewrap, arguments, diagnose, judge
from evaluator.isolation.interpreter import Interpreter
from evaluator.isolation.job import Job
from evaluator.isolation.limits import Limits
from evaluator.isolation.plain import PlainProcess


def test_without_bubblewrap_the_reason_and_the_remedy_are_told() -> None:
    status = isolation_status([Bubblewrap(executable="no-such-bubblewrap")])
    assert not status.ok
    assert status.reason == "Bubblewrap is not installed."
    assert "apt install bubblewrap" in status.remedy
    with pytest.raises(PlatformError) as caught:
        status.require()
    assert caught.value.code == "isolation_unavailable"


def test_a_plain_process_is_never_chosen_for_strangers() -> None:
    status = isolation_status([PlainProcess()])
    assert status.backend is None
    assert status.layers == ()


@pytest.mark.isolation
def test_a_real_box_is_looked_at_from_inside(bubblewrap: Bubblewrap) -> None:
    status = isolation_status([Bubblewrap(executable="no-such-bubblewrap"), bubblewrap])
    assert status.require() is bubblewrap
    assert set(status.layers) == {
        "process",
        "pid",
        "network",
        "filesystem",
        "kernel settings",
        "environment",
        "descriptors",
        "capabilities",
        "user namespaces",
        "libraries",
    }


@pytest.mark.isolation
def test_a_box_that_shows_what_it_must_hide_is_refused(bubblewrap: Bubblewrap) -> None:
    probe = Bubblewrap(hidden=(Path("/usr/bin"),)).probe()
    assert not probe.ok
    assert "/usr/bin is visible" in probe.reason


@pytest.mark.isolation
def test_what_bubblewrap_says_reaches_the_operator(bubblewrap: Bubblewrap, tmp_path: Path) -> None:
    with pytest.raises(PlatformError) as caught:
        bubblewrap.start(Job(tmp_path / "gone"))
    assert caught.value.code == "box_not_started"
    assert "find source path" in caught.value.message


def test_a_device_that_a_box_cannot_have_is_refused_before_the_author_is_blamed(
    tmp_path: Path,
) -> None:
    with pytest.raises(PlatformError) as caught:
        Bubblewrap().start(Job(tmp_path, device="cuda"))
    assert caught.value.code == "device_unavailable"


@pytest.mark.parametrize(
    ("printed", "reason", "remedy"),
    [
        ("bwrap: setting up uid map: Permission denied", "user namespaces", "AppArmor"),
        ("bwrap: Can't mount proc on /newroot/proc: Not permitted", "container", "outside"),
        ("bwrap: Creating new namespace failed: Resource", "namespaces", "max_user_namespaces"),
        ("bwrap: No permissions to create new namespace", "namespaces", "max_user_namespaces"),
        ("bwrap: Unknown option --disable-userns", "older than 0.8", "0.8"),
        ("bwrap: Can't find source path /x: Permission denied", "cannot read", "read them"),
        ("bwrap: something new", "something new", "by hand"),
        ("", "printed nothing", "by hand"),
    ],
)
def test_each_known_failure_has_its_remedy(printed: str, reason: str, remedy: str) -> None:
    told = diagnose(printed)
    assert reason in told[0]
    assert remedy in told[1]


@pytest.mark.parametrize("printed", ["", "network yes", "network\tyes"])
def test_findings_that_cannot_be_read_are_a_refusal(printed: str) -> None:
    assert not judge(printed).ok


def test_one_missing_layer_is_a_refusal() -> None:
    probe = judge("pid\tyes\t\nnetwork\tno\tnetwork interface eth0\n")
    assert probe == Probe(
        ok=False, layers=("process", "pid"), reason=probe.reason, remedy=probe.remedy
    )
    assert "network interface eth0" in probe.reason


def test_a_python_outside_usr_gets_a_neutral_name() -> None:
    found = Interpreter.inside(
        Path("/home/ada/py"),
        Path("/home/ada/py/bin/python3.11"),
        [Path("/home/ada/project/.venv/lib/python3.11/site-packages")],
        shared=True,
    )
    assert found.executable == "/opt/python/bin/python3.11"
    assert found.site == ("/opt/site-packages",)
    assert found.library_path == "/opt/python/lib"
    assert [name for _, name in found.binds] == ["/opt/python", "/opt/site-packages"]


def test_a_python_of_the_system_is_where_it_is() -> None:
    found = Interpreter.inside(
        Path("/usr"), Path("/usr/bin/python3.11"), [Path("/srv/env/site-packages")], shared=True
    )
    assert found.executable == "/usr/bin/python3.11"
    assert found.binds == ((Path("/srv/env/site-packages"), "/opt/site-packages"),)
    assert found.library_path is None


def test_the_root_is_sealed_after_everything_is_mounted() -> None:
    words = arguments(
        interpreter=Interpreter("/usr/bin/python3.11", ()),
        job=Job(Path("/srv/module")),
        limits=Limits(scratch_bytes=7),
        info_fd=9,
        usr_links=[("usr/lib", "/lib")],
    )
    sealed = max(i for i, word in enumerate(words) if word == "--remount-ro")
    mounts = [i for i, word in enumerate(words) if word in {"--ro-bind", "--tmpfs", "--dev"}]
    assert max(mounts) < sealed
    assert words[sealed + 1] == "/"
    scratch = words.index("/scratch")
    assert words[scratch - 5 : scratch] == ["--size", "7", "--perms", "0777", "--tmpfs"]
    assert "--unshare-all" in words
    assert "--share-net" not in words

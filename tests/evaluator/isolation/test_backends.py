"""Whether this machine can isolate, and what people are told where it cannot."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn

import pytest

from benchmarks.errors import PlatformError
from evaluator.isolation.availability import PlainProcess
from evaluator.isolation.backend import REQUIRED, Layer, isolation_status
from evaluator.isolation.bubblewrap import (
    Bubblewrap,
    Descriptors,
    Finding,
    Plan,
    arguments,
    judge,
)
from evaluator.isolation.job import Job, Limits
from evaluator.isolation.layout import Interpreter
from evaluator.isolation.program import diagnose


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
    assert set(status.layers) >= REQUIRED
    assert len({Layer.MEMORY_CGROUP, Layer.MEMORY_WATCHDOG} & set(status.layers)) == 1
    assert len({Layer.CPU_CGROUP, Layer.CPU_NICENESS} & set(status.layers)) == 1


@pytest.mark.isolation
def test_what_bubblewrap_says_reaches_the_operator(bubblewrap: Bubblewrap, tmp_path: Path) -> None:
    with pytest.raises(PlatformError) as caught:
        bubblewrap.start(Job(tmp_path / "gone"))
    assert caught.value.code == "box_not_started"
    assert "find source path" in caught.value.message


@pytest.mark.isolation
def test_a_box_that_ends_while_it_is_looked_at_was_not_started(
    bubblewrap: Bubblewrap, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel denies what a process has left, or has it no longer: it depends on the moment."""
    denied = PermissionError(13, "Permission denied", "/proc/1/environ")

    def looked(_: object) -> NoReturn:
        raise denied

    monkeypatch.setattr("evaluator.isolation.bubblewrap.seen", looked)
    probe = bubblewrap.probe()
    assert not probe.ok and "environ" in probe.reason


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


def rows(**faults: str) -> str:
    """What a box prints in which all holds but what is named."""
    named = {name.replace("_", " "): fault for name, fault in faults.items()}
    found = {str(layer): "" for layer in REQUIRED} | named
    return "".join(
        f"{name}\t{'no' if fault else 'yes'}\t{fault}\n" for name, fault in found.items()
    )


def test_a_box_in_which_every_required_layer_holds_may_run_strangers_code() -> None:
    assert set(judge(rows()).layers) == REQUIRED
    assert judge(rows()).ok


@pytest.mark.parametrize("layer", sorted(REQUIRED))
def test_one_missing_layer_is_a_refusal_that_names_the_fault(layer: str) -> None:
    probe = judge(rows(**{layer.replace(" ", "_"): "something is amiss"}))
    assert not probe.ok
    assert set(probe.layers) == REQUIRED - {layer}
    assert "something is amiss" in probe.reason
    assert probe.remedy


@pytest.mark.parametrize("layer", sorted(REQUIRED))
def test_a_layer_that_nobody_looked_at_is_a_refusal(layer: str) -> None:
    told = "".join(line for line in rows().splitlines(True) if not line.startswith(f"{layer}\t"))
    probe = judge(told)
    assert not probe.ok
    assert f"nothing was found out about {layer}" in probe.reason


def test_what_is_wrong_outside_counts_as_much_as_what_is_wrong_inside() -> None:
    probe = judge(rows(), [Finding(Layer.KERNEL_UID, "the kernel sees root in it")])
    assert not probe.ok
    assert Layer.KERNEL_UID not in probe.layers


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


def words_of(**plan: Any) -> list[str]:
    made = replace(Plan(Interpreter("/usr/bin/python3.11", ()), Limits()), **plan)
    return arguments(made, Descriptors(9, 10, (11, 12)), usr_links=[("usr/lib", "/lib")])


def pairs(words: list[str]) -> list[tuple[str, str]]:
    return list(pairwise(words))


def test_the_root_is_sealed_after_everything_is_mounted() -> None:
    words = words_of(job=Job(Path("/srv/module")), limits=Limits(scratch_bytes=7))
    sealed = max(i for i, word in enumerate(words) if word == "--remount-ro")
    mounts = [i for i, word in enumerate(words) if word in {"--ro-bind", "--tmpfs", "--dev"}]
    assert max(mounts) < sealed
    assert words[sealed + 1] == "/"
    scratch = words.index("/scratch")
    assert words[scratch - 5 : scratch] == ["--size", "7", "--perms", "1777", "--tmpfs"]


def test_a_box_has_namespaces_of_its_own_and_every_filter() -> None:
    words = words_of()
    unshared = {word for word in words if word.startswith("--unshare")}
    assert unshared == {
        "--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts",
        "--unshare-cgroup-try",
    }  # fmt: skip
    assert {"--disable-userns", "--clearenv", "--new-session", "--die-with-parent"} <= set(words)
    assert [value for name, value in pairs(words) if name == "--add-seccomp-fd"] == ["11", "12"]
    assert ("--cap-drop", "ALL") in pairs(words)


def test_a_staged_file_is_bound_from_its_stage() -> None:
    made = Plan(Interpreter("/usr/bin/python3.11", ()), Limits(), Job(Path("/srv/module")))
    placed = {Path("/srv/module"): Path("/tmp/3")}
    words = arguments(made, Descriptors(9, 10), usr_links=[], placed=placed)
    at = words.index("/submission")
    assert words[at - 2 : at] == ["--ro-bind", "/tmp/3"]


def test_a_card_is_bound_as_devices_and_its_driver_may_write_names_of_threads() -> None:
    card = (Path("/dev/nvidia0"), Path("/dev/nvidiactl"))
    words = words_of(devices=card)
    assert [value for name, value in pairs(words) if name == "--dev-bind"] == list(map(str, card))
    assert words.index("--dev") < words.index("--dev-bind")
    assert ("--remount-ro", "/proc") not in pairs(words)
    # To root alone the settings of the machine are writable there.
    assert ("--remount-ro", "/proc") in pairs(words_of(devices=card, root_to_kernel=True))


def test_a_layer_that_every_end_of_a_box_depends_on_cannot_be_turned_off() -> None:
    with pytest.raises(ValueError, match="pid cannot be turned off"):
        Bubblewrap(without=frozenset({Layer.PID}))

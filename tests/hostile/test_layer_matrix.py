"""What each layer of a box stops, found by turning it off; the whole table is `layer_matrix`."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from evaluator.isolation.availability import PlainProcess
from evaluator.isolation.backend import Layer
from evaluator.isolation.bubblewrap import SWITCHABLE, Bubblewrap
from tests.hostile.attempts import ATTEMPTS, UNCONTROLLED
from tests.hostile.corpus.exhaustion import MEMORY, PROCESSES
from tests.hostile.decoys import PLACE, REPOSITORY, decoys
from tests.hostile.layer_matrix import Row, alone, attempted, matrix

pytestmark = [pytest.mark.isolation, pytest.mark.timeout(600)]

FEW = ("three hundred processes", "memory of one process", "memory in the buffers of sockets")

HIDDEN_ANYWAY = frozenset({"the project"} if REPOSITORY.is_relative_to("/tmp") else ())
"""What a box's own `/tmp` lies over, whichever layer is off."""

STOPS: Mapping[frozenset[Layer], frozenset[str]] = {
    frozenset({Layer.ENVIRONMENT}): frozenset({"the environment of the process above"}),
    frozenset({Layer.FILESYSTEM}): frozenset(
        {"the labels", "another submission", "an upload in the store", "the project",
         "the worker's token in its home folder", "a socket of the worker's machine, by its path"}
    ),
    frozenset({Layer.KERNEL_SETTINGS}): frozenset({"safety from the out-of-memory killer"}),
    frozenset({Layer.NETWORK}): frozenset(
        {"an abstract socket of the worker's machine", "the list of open ports of the machine"}
    ),
    frozenset({Layer.PROCESS_LIMIT}): frozenset({"three hundred processes"}),
    frozenset({Layer.MEMORY_FOLDERS}): frozenset({"the root folder", "the folder of devices"}),
    frozenset({Layer.SYSTEM_CALLS}): frozenset(
        {"a socket to the hypervisor (vsock)", "the kernel's routing socket (netlink)",
         "the process above, traced (ptrace)", "a ring of requests (io_uring)",
         "a file without a name in memory (memfd)", "typing into the terminal (TIOCSTI)"}
    ),
    # These stand behind one another: each pair is what stops it, and either alone would do.
    frozenset({Layer.NETWORK, Layer.SYSTEM_CALLS}): frozenset(
        {"a connection over IPv4", "a connection over IPv6", "a question to a name server"}
    ),
    frozenset({Layer.IPC, Layer.SYSTEM_CALLS}): frozenset({"memory that others share by a number"}),
    frozenset({Layer.USER_NAMESPACES, Layer.SYSTEM_CALLS}): frozenset(
        {"a user namespace of its own"}
    ),
    frozenset({Layer.CAPABILITIES, Layer.SYSTEM_CALLS}): frozenset(
        {"another root folder (chroot)", "a mount namespace of its own"}
    ),
    frozenset({Layer.KERNEL_SETTINGS, Layer.KERNEL_UID}): frozenset(
        {"what the kernel does with crashes", "the kernel's memory settings"}
    ),
    frozenset({Layer.MEMORY_CGROUP, Layer.MEMORY_WATCHDOG}): frozenset(
        {"memory of one process", "memory in the buffers of sockets"}
    ),
}  # fmt: skip
"""What succeeds without these layers, and with any fewer turned off does not."""

NOT_ATTEMPTED = frozenset({Layer.CPU_CGROUP, Layer.CPU_NICENESS})
"""They share out the processors, and keep nobody from anything."""


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    probe = Bubblewrap().probe()
    if not probe.ok:
        pytest.skip(f"no isolation here: {probe.reason} {probe.remedy}")
    if os.geteuid() != 0 or Layer.MEMORY_CGROUP not in probe.layers:
        pytest.skip("not every layer is there to be turned off: it takes root, and cgroups")
    few = [case for case in (*PROCESSES, *MEMORY) if case.name in FEW]
    single = {frozenset({layer}) for layers in STOPS for layer in layers}
    turned_off = [frozenset[Layer](), *(single | STOPS.keys())]
    return matrix(turned_off, few, frozenset({Layer.PROCESS_LIMIT, Layer.MEMORY_CGROUP}))


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=PLACE) as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.mark.slow
def test_in_a_whole_box_no_attempt_succeeds(rows: list[Row]) -> None:
    assert rows[0] == Row(frozenset(), frozenset())


@pytest.mark.slow
@pytest.mark.parametrize("layers", STOPS, ids=lambda layers: " and ".join(sorted(layers)))
def test_what_a_layer_stops_succeeds_without_it(rows: list[Row], layers: frozenset[Layer]) -> None:
    (row,) = (row for row in rows if row.without == layers)
    assert STOPS[layers] - HIDDEN_ANYWAY <= frozenset(alone(rows)[row.title])


def test_every_layer_that_can_be_turned_off_was_seen_to_stop_something() -> None:
    assert frozenset().union(*STOPS) == SWITCHABLE - NOT_ATTEMPTED


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="most of what is attempted takes root")
def test_without_any_box_the_attempts_succeed(folder: Path) -> None:
    """So that none of them fails for want of anything to be had."""
    with decoys(folder / "decoys") as laid:
        succeeded = set(attempted(PlainProcess(), laid, folder))
    assert {one.name for one in ATTEMPTS} - UNCONTROLLED - succeeded == set()

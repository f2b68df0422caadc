"""Ray cluster, one started here or somebody else's, shares of it, and the actors that fill them.

An actor imports this module before it knows its number of threads: nothing here loads NumPy or torch.
"""

from __future__ import annotations

import logging
import os
import secrets
import shutil
import signal
import socket
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import ray
from ray.exceptions import RayError

from benchmarks.errors import AssayError, PlatformError, SubmitterError, TransientError

if TYPE_CHECKING:
    from evaluator.scoring.asking import Answered, Batch, ClientSource


@dataclass(frozen=True, slots=True)
class RayOptions:
    """How batches are spread over a cluster; only `threads` can change a score, in its last bits."""

    # None: one for each GPU, or for each `threads` CPUs where no GPU is used
    actors: int | None = None
    gpus: float | None = None  # of one actor; None: one where the cluster has any
    # that an actor computes with. None: as many as this process, so that scores are those of a
    # local run bit for bit
    threads: int | None = None
    ready_threads: int = 2  # of an actor, that make images ready
    in_flight: int = 2  # batches an actor holds: one is asked while the next is made ready
    placed_within_s: float = 120.0  # how long to wait until the cluster has room for a first actor
    closed_within_s: float = (
        10.0  # how long an actor may take to end its client before it is killed
    )


@dataclass(frozen=True, slots=True)
class Slots:
    """Actors, and what one of them takes of the cluster."""

    actors: int
    cpus: float
    gpus: float


def slots_of(resources: Mapping[str, float], options: RayOptions, threads: int) -> Slots:
    """Divide a cluster."""
    cpus, gpus = resources.get("CPU", 0.0), resources.get("GPU", 0.0)
    wanted = options.gpus if options.gpus is not None else float(gpus >= 1)
    if cpus <= 0 or wanted > gpus or (options.actors is not None and options.actors < 1):
        raise SubmitterError(
            "ray_no_room",
            f"Not one actor fits: it needs a CPU and {wanted:g} GPUs, and the cluster has "
            f"{cpus:g} CPUs and {gpus:g} GPUs; {options.actors or 'any number of'} actors.",
            "Choose another device or another cluster.",
        )
    most = int(gpus / wanted) if wanted else max(1, int(cpus // threads))
    actors = options.actors or most
    share = cpus / actors
    # Ray takes fractions of one CPU, but no fractions beyond.
    return Slots(actors, float(min(threads, int(share))) if share >= 1 else share, wanted)


_LOG = logging.getLogger(__name__)
_MIB = 1024 * 1024
_OBJECT_STORE_BYTES = 512 * _MIB
"""Room for the batches on their way: two of 16 MiB to each of 16 actors."""
_TOKENS = frozenset({"RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"})
_REACHED_WITHIN_S = 5.0


class RayCluster:
    """Connects when it is first needed; ends in `close` only what it started itself.

    Anyone who reaches a Ray cluster with its token can run code on it. A local one is started
    with Ray's token authentication; a cluster of an operator's own belongs on a private network.
    """

    def __init__(self, address: str | None, scratch: Path, *, cpus: int | None = None) -> None:
        self._address = address
        self._scratch = scratch
        self._cpus = cpus
        self._connected = False
        self._folder: Path | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def connect(self) -> None:
        """Connect, unless this process is connected already."""
        if ray.is_initialized():
            return
        with _signals_kept(), _usage_not_reported():
            if self._address is None:
                self._start()
            else:
                self._join(self._address)
        self._connected = True

    def close(self) -> None:
        """End what `connect` began."""
        if self._connected:
            ray.shutdown()
            self._connected = False
        if self._folder is not None:
            _keep_logs(self._folder, self._scratch / "ray_logs")
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def _start(self) -> None:
        keep_token_out_of_home()
        # Names of Unix sockets have at most 107 characters, and Ray's are half of that.
        self._folder = Path(tempfile.mkdtemp(prefix="assay-ray-"))
        try:
            ray.init(
                address="local",
                num_cpus=self._cpus,
                include_dashboard=False,
                object_store_memory=_OBJECT_STORE_BYTES,
                _temp_dir=str(self._folder),
                logging_level=logging.ERROR,
                log_to_driver=False,
            )
        except (RayError, RuntimeError, OSError, ValueError) as error:
            self.close()
            raise PlatformError(
                "ray_not_started",
                f"Ray does not start on this machine: {_first_line(error)}.",
                f"Its logs are in {self._scratch / 'ray_logs'}; --engine local does without it.",
            ) from error

    def _join(self, address: str) -> None:
        _check_reachable(address)
        try:
            ray.init(address=address, logging_level=logging.ERROR, log_to_driver=False)
        except (RayError, RuntimeError, OSError, ValueError) as error:
            raise _unreachable(address, _first_line(error)) from error


def keep_token_out_of_home() -> None:
    """Give a Ray that is started here a token by the environment, unless it names one.

    Ray would write one into the home folder. It stays in the environment: Ray reads it once in a
    process, and a second Ray of this process needs the same.
    """
    if not _TOKENS & os.environ.keys():
        os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)


def _check_reachable(address: str) -> None:
    """Say at once what Ray says after a minute or two."""
    if address == "auto":
        return
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isdecimal() or "/" in address:
        raise SubmitterError(
            "ray_address",
            f"{address!r} is no address of a Ray cluster.",
            "Give `auto`, or HOST:PORT as `ray start --head` prints it, from one of its machines.",
        )
    try:
        socket.create_connection((host, int(port)), _REACHED_WITHIN_S).close()
    except (OSError, OverflowError) as error:
        raise _unreachable(address, _first_line(error)) from error


def _unreachable(address: str, why: str) -> TransientError:
    return TransientError(
        "ray_unreachable",
        f"No Ray cluster can be reached at {address!r}: {why}.",
        "Start one with `ray start --head`, or leave the address out to use this machine alone.",
    )


@contextmanager
def _signals_kept() -> Iterator[None]:
    """Ray sets a handler of its own for SIGTERM; whoever runs us has set theirs on purpose."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _usage_not_reported() -> Iterator[None]:
    name = "RAY_USAGE_STATS_ENABLED"
    before = os.environ.get(name)
    os.environ[name] = "0"
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def _keep_logs(folder: Path, place: Path) -> None:
    """The logs of the last time, for whoever wonders why actors died."""
    logs = folder / "session_latest" / "logs"
    try:
        shutil.rmtree(place, ignore_errors=True)
        if logs.is_dir():
            shutil.copytree(logs, place, ignore_dangling_symlinks=True)
    except (OSError, shutil.Error) as error:
        _LOG.warning("The logs of Ray could not be kept: %s", error)


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].rstrip(".: ")


_BY_FAULT = {kind.fault: kind for kind in (SubmitterError, TransientError, PlatformError)}


@dataclass(frozen=True, slots=True)
class Failure:
    """An `AssayError` on its way out of an actor: Ray would wrap it, and lose all but its text."""

    fault: str
    code: str
    message: str
    hint: str

    @classmethod
    def of(cls, error: AssayError) -> Failure:
        """What an error says."""
        return cls(error.fault, error.code, error.message, error.hint)

    def error(self) -> AssayError:
        """The error again."""
        return _BY_FAULT[self.fault](self.code, self.message, self.hint)


class ClientActor:
    """Holds one client; Ray calls it from a few threads at once."""

    def __init__(self, threads: int, ready_threads: int) -> None:
        # Libraries of linear algebra read this once, when they are loaded, and sums in another
        # number of threads may differ in their last bits. So nothing is loaded before.
        os.environ["OMP_NUM_THREADS"] = str(threads)
        module = import_module("evaluator.scoring.engine")
        self._host: Any = module.ClientHost(threads, ready_threads)

    def place(self) -> str:
        """Where this is."""
        return f"{socket.gethostname()} as {os.getpid()}"

    def open(self, source: ClientSource) -> Failure | None:
        """Start the client; None when it is open."""
        try:
            self._host.open(source)
        except AssayError as error:
            return Failure.of(error)
        return None

    def answer(self, batch: Batch) -> Answered | Failure:
        """Make a batch ready, and ask when it is its turn."""
        try:
            answered: Answered = self._host.answer(batch)
        except AssayError as error:
            return Failure.of(error)
        return answered

    def close(self) -> None:
        """End the client, after what is asked just now; batches that wait are dropped."""
        self._host.close()

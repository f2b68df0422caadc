"""Environments are built whole, once, of what was locked, within limits; nothing of them is run."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from packaging.version import Version

from benchmarks.errors import AssayError, PlatformError, SubmitterError, TransientError
from evaluator.environments import building
from evaluator.environments.building import BuildLimits, PackageSource, build
from evaluator.environments.cache import EnvironmentCache, key_of
from evaluator.environments.lock import Lock, Pin
from evaluator.environments.naming import OWN, NamedLock
from evaluator.folder_cache import cached_folders
from tests.conftest import REPOSITORY
from tests.evaluator.environments.wheels import Wheel, locked, wheel

MIB = 1 << 20
LIMITS = BuildLimits(seconds=60.0, n_bytes=32 * MIB, files=500)


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    folder = tmp_path / "wheels"
    folder.mkdir()
    return folder


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "environments"
    folder.mkdir()
    return folder / "built"


def files_of(folder: Path) -> set[str]:
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}


def own_files(folder: Path) -> set[str]:
    return {name for name in files_of(folder) if ".dist-info/" not in name}


def test_an_environment_holds_what_was_locked_for_all_to_read_and_no_script(
    wheels: Path, place: Path
) -> None:
    starts = "import pathlib; pathlib.Path({!r}).touch()"
    marks = [place.parent / name for name in ("pth", "site", "user", "imported")]
    pth, site, user, imported = (starts.format(str(mark)) for mark in marks)
    files = {
        "useful/__init__.py": imported, "useful.pth": pth, "sitecustomize.py": site,
        "usercustomize.py": user, "uv.py": imported, "encodings/__init__.py": imported,
        "useful-1.0.data/scripts/tool": "#!python\n", "useful-1.0.data/purelib/more.py": "",
    }  # fmt: skip
    points = {"entry_points.txt": "[console_scripts]\nuseful = useful:main\n"}
    made = wheel(wheels, "useful", files=files, of_dist_info=points)
    needing = wheel(wheels, "needing", requires=["useful==1.0"])
    build(locked(made, needing), place, PackageSource(wheels), LIMITS)
    assert own_files(place) == {
        "useful/__init__.py", "useful.pth", "sitecustomize.py", "usercustomize.py", "uv.py",
        "encodings/__init__.py", "more.py", "needing.py",
    }  # fmt: skip
    # A second one is built as the first was: by nothing of the first.
    build(locked(made), place.with_name("again"), PackageSource(wheels), LIMITS)
    assert [mark.name for mark in marks if mark.exists()] == []
    assert all(p.stat().st_mode & 0o777 in (0o644, 0o755) for p in place.rglob("*"))
    assert {p.name for p in place.parent.iterdir()} == {"built", "again"}


def other_tag(folder: Path) -> Wheel:
    made = wheel(folder, "old")
    made.path.rename(folder / "old-1.0-cp27-cp27m-win32.whl")
    return made


def damaged(folder: Path) -> Wheel:
    made = wheel(folder, "damaged")
    made.path.write_bytes(made.path.read_bytes()[:-60])
    return made


def source(folder: Path) -> Wheel:
    path = folder / "source-1.0.tar.gz"
    path.write_bytes(b"x")
    return Wheel("source", "1.0", "a" * 64, path)


def good(folder: Path, **other: str) -> Wheel:
    return replace(wheel(folder, "good"), **other)  # type: ignore[arg-type]


def bomb(folder: Path, files: int, mib: float) -> Wheel:
    content = bytes(round(mib * MIB))
    return wheel(folder, "bomb", files={f"bomb/{i}.bin": content for i in range(files)})


def pin(version: str) -> Pin:
    return Pin("good", Version(version), frozenset({"a" * 64}))


OUTSIDE = {"entry_points.txt": "[console_scripts]\n../../../escaped = good:main\n"}
HOSTILE: Mapping[str, tuple[Callable[[Path], Lock], str]] = {
    "other hash": (lambda f: locked(good(f, sha256="a" * 64)), "package_hash_mismatch"),
    "no package": (lambda f: locked(good(f, name="absent")), "package_missing"),
    "no line of uv": (lambda f: Lock((pin(f"1.{2**64}"),)), "bad_lock"),
    "no version": (lambda f: locked(good(f, version="7.0")), "package_missing"),
    "not pinned": (
        lambda f: locked(wheel(f, "needing", requires=[good(f).name])),
        "lock_incomplete",
    ),
    "contradiction": (
        lambda f: locked(good(f), wheel(f, "needing", requires=["good>=2"])),
        "lock_incomplete",
    ),
    "source": (lambda f: locked(source(f)), "package_without_wheel"),
    "other python": (lambda f: locked(other_tag(f)), "package_without_wheel"),
    "damaged": (lambda f: locked(damaged(f)), "bad_wheel"),
    "script outside": (
        lambda f: locked(wheel(f, "script", of_dist_info=OUTSIDE)),
        "bad_wheel",
    ),
    "one large file": (lambda f: locked(bomb(f, 1, 64)), "environment_too_large"),
    "large together": (lambda f: locked(bomb(f, 4, 9)), "environment_too_large"),
    "many files": (lambda f: locked(bomb(f, 600, 0)), "environment_too_large"),
}


@pytest.mark.first_quick
@pytest.mark.parametrize("kind", HOSTILE)
def test_what_cannot_be_installed_is_its_author_s_fault_and_leaves_nothing(
    wheels: Path, place: Path, kind: str
) -> None:
    lock_in, code = HOSTILE[kind]
    with pytest.raises(SubmitterError) as caught:
        build(lock_in(wheels), place, PackageSource(wheels), LIMITS)
    assert caught.value.code == code, caught.value
    assert caught.value.hint and str(place.parent.parent) not in str(caught.value)
    assert list(place.parent.iterdir()) == []


def test_no_path_of_a_wheel_leaves_the_folder(wheels: Path, place: Path) -> None:
    before = files_of(place.parent.parent)
    outside = str(place.parent.parent / "absolute.txt")
    names = (
        "../escaped.txt",
        "../../../escaped.txt",
        outside,
        "x/../../escaped.txt",
        "leaving-1.0.data/data/../../../escaped.txt",
        "leaving-1.0.data/scripts/../../escaped",
    )
    made = wheel(
        wheels, "leaving", files={"leaving.py": "", **dict.fromkeys(names, "x")},
        links={"leaving/link": "/etc/passwd"},
    )  # fmt: skip
    build(locked(made), place, PackageSource(wheels), LIMITS)
    assert not [p for p in place.rglob("*") if p.is_symlink()]
    new = files_of(place.parent.parent) - before - {"wheels/leaving-1.0-py3-none-any.whl"}
    assert {name for name in new if not name.startswith("environments/built/")} == set()
    assert "leaving.py" in files_of(place)


def test_without_anywhere_to_take_packages_from_nothing_is_built(wheels: Path, place: Path) -> None:
    with pytest.raises(PlatformError) as caught:
        build(locked(wheel(wheels, "good")), place, PackageSource(), LIMITS)
    assert caught.value.code == "no_packages_here"


def test_an_installer_that_fails_or_is_not_there_is_our_fault(
    wheels: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, source = locked(wheel(wheels, "good")), PackageSource(wheels)
    monkeypatch.setattr("uv.find_uv_bin", lambda: "/bin/false")
    with pytest.raises(PlatformError) as caught:
        build(lock, place, source, LIMITS)
    assert caught.value.code == "environment_not_built"
    monkeypatch.setattr("uv.find_uv_bin", lambda: (_ for _ in ()).throw(FileNotFoundError()))
    with pytest.raises(PlatformError) as missing:
        build(lock, place, source, LIMITS)
    assert missing.value.code == "no_uv"


# A registry -----------------------------------------------------------------------------------


@contextmanager
def registry(answer: Callable[[BaseHTTPRequestHandler], None]) -> Iterator[tuple[str, list[str]]]:
    """A server at an address of its own, and the paths it was asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            answer(self)

        do_HEAD = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/simple", asked
    finally:
        server.shutdown()
        server.server_close()


def sent(to: BaseHTTPRequestHandler, content: bytes, kind: str = "text/html") -> None:
    to.send_response(200)
    to.send_header("Content-Type", kind)
    to.send_header("Content-Length", str(len(content)))
    to.end_headers()
    if to.command == "GET":
        to.wfile.write(content)


def test_packages_come_from_the_registry_that_the_operator_allows_and_no_other(
    wheels: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = wheel(wheels, "good")

    def answer(to: BaseHTTPRequestHandler) -> None:
        if to.path == "/simple/good/":
            page = f'<a href="/files/{made.path.name}#sha256={made.sha256}">{made.path.name}</a>'
            sent(to, page.encode())
        else:
            sent(to, made.path.read_bytes(), "application/octet-stream")

    for name in ("UV_INDEX_URL", "UV_DEFAULT_INDEX", "UV_EXTRA_INDEX_URL", "PIP_INDEX_URL"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/simple")
    (place.parent.parent / "uv.toml").write_text("no-index = true")
    monkeypatch.chdir(place.parent.parent)
    with registry(answer) as (address, asked):
        build(locked(made), place, PackageSource(index=address), LIMITS)
    assert own_files(place) == {"good.py"}
    assert asked[0] == "/simple/good/"


def test_a_slow_registry_is_left_in_time_and_asked_again_later(wheels: Path, place: Path) -> None:
    lock, over = locked(wheel(wheels, "good")), threading.Event()
    limits = replace(LIMITS, seconds=0.5)

    def hold(_: BaseHTTPRequestHandler) -> None:
        over.wait(30)

    with registry(hold) as (address, _):
        try:
            with pytest.raises(TransientError) as caught:
                build(lock, place, PackageSource(index=address), limits)
        finally:
            over.set()
    assert (caught.value.code, caught.value.fault) == ("environment_slow", "world")
    assert list(place.parent.iterdir()) == []


@pytest.mark.slow
def test_a_registry_that_is_away_is_nobody_s_fault(wheels: Path, place: Path) -> None:
    with registry(lambda _: None) as (address, _):
        pass  # It is gone now.
    with pytest.raises(TransientError) as caught:
        build(locked(wheel(wheels, "good")), place, PackageSource(index=address), LIMITS)
    assert (caught.value.code, caught.value.fault) == ("package_index_away", "world")


# Once, whole, and not for ever ----------------------------------------------------------------


def cache_of(place: Path, wheels: Path, most_bytes: int = 1 << 30) -> EnvironmentCache:
    return EnvironmentCache(place.parent, PackageSource(wheels), LIMITS, most_bytes)


def test_an_environment_is_built_once_for_all_who_need_it(
    wheels: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = NamedLock(OWN, locked(wheel(wheels, "good")))
    built: list[Path] = []

    def counted(lock: Lock, at: Path, *more: object) -> None:
        built.append(at)
        build(lock, at, *more)  # type: ignore[arg-type]

    monkeypatch.setattr("evaluator.environments.cache.build", counted)
    cache, lent = cache_of(place, wheels), list[Path]()

    def lend() -> None:
        with cache.lent(wanted) as environment:
            lent.append(environment)

    threads = [threading.Thread(target=lend) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert built == [place.parent / key_of(wanted.lock)]
    assert lent == built * 4


BUILDS = """
import sys
from pathlib import Path
from evaluator.environments import cache
from evaluator.environments.building import PackageSource, build
from evaluator.environments.lock import read_pins
from evaluator.environments.naming import NamedLock

def counted(*words):
    print("builds", flush=True)
    build(*words)

cache.build = counted
folder, wheels, text = sys.argv[1:]
lock, _ = read_pins(text.encode())
with cache.EnvironmentCache(Path(folder), PackageSource(Path(wheels))).lent(NamedLock("x", lock)):
    print("has it", flush=True)
"""


def builder(place: Path, wheels: Path, lock: Lock) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", BUILDS, str(place.parent), str(wheels), lock.text]
    return subprocess.Popen(words, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True)


@pytest.mark.slow
def test_two_processes_build_it_once(wheels: Path, place: Path) -> None:
    lock = locked(wheel(wheels, "good"))
    both = [builder(place, wheels, lock) for _ in range(2)]
    said = "".join(one.communicate(timeout=60)[0] for one in both)
    assert (said.count("builds"), said.count("has it")) == (1, 2)


def test_a_builder_that_is_killed_takes_its_installer_along_and_the_next_build_is_whole(
    wheels: Path, place: Path
) -> None:
    made = wheel(wheels, "good")
    lock, held, over = locked(made), threading.Event(), threading.Event()

    def hold(_: BaseHTTPRequestHandler) -> None:
        held.set()
        over.wait(30)

    program = BUILDS.replace("PackageSource(Path(wheels))", "PackageSource(index=wheels)")
    with registry(hold) as (address, _):
        words = [sys.executable, "-c", program, str(place.parent), address, lock.text]
        killed = subprocess.Popen(words, cwd=REPOSITORY, stdout=subprocess.DEVNULL)
        try:
            assert held.wait(30)
            installers = [pid for pid, said in running().items() if str(place.parent) in said]
            assert len(installers) > 1
            os.kill(killed.pid, signal.SIGKILL)
            killed.wait()
            for pid in installers:
                if pid != killed.pid:
                    gone(pid)
        finally:
            over.set()
    (left,) = cached_folders(place.parent)
    assert not left.whole and not left.in_use
    with cache_of(place, wheels).lent(NamedLock(OWN, lock)) as environment:
        assert environment is not None
        assert own_files(environment) == {"good.py"}
    assert [one.whole for one in cached_folders(place.parent)] == [True]


def running() -> dict[int, str]:
    """Command lines of all processes."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            found[int(folder.name)] = (folder / "cmdline").read_text(errors="replace")
        except OSError:
            continue
    return found


def gone(pid: int) -> None:
    """Wait until a process that is no child of ours has ended."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return

    assert select.select([fd], [], [], 30)[0]
    os.close(fd)


def test_those_used_longest_ago_are_given_up_where_all_are_too_large(
    wheels: Path, place: Path
) -> None:
    def large(name: str) -> NamedLock:
        return NamedLock(name, locked(wheel(wheels, name, files={f"{name}.bin": bytes(MIB)})))

    cache = cache_of(place, wheels, most_bytes=round(2.5 * MIB))
    a, b, c, d = map(large, "abcd")
    with cache.lent(b):
        with cache.lent(a):
            pass
        os.utime(place.parent / f"{key_of(b.lock)}.used", (1, 1))  # the oldest, and in use
        with cache.lent(c):
            pass
    assert {one.name for one in cached_folders(place.parent)} == {
        key_of(one.lock) for one in (b, c)
    }
    with cache.lent(d):
        pass
    assert key_of(d.lock) in {one.name for one in cached_folders(place.parent)}


@pytest.mark.parametrize(
    ("said", "kind", "code"),
    [
        ("error: No space left on device (os error 28)", TransientError, "disk_low"),
        ("error: HTTP status server error (503 Service Unavailable)", TransientError,
         "package_index_away"),
        ("error: Request failed after 3 retries\n cause: Failed to fetch: `http://x/`",
         TransientError, "package_index_away"),
        ("error: it broke", PlatformError, "environment_not_built"),
        ("", PlatformError, "environment_not_built"),
    ],
)  # fmt: skip
def test_what_the_installer_says_is_told_in_words_with_whose_fault_it_is(
    said: str, kind: type[AssayError], code: str
) -> None:
    told = building._refusal(said, 2)
    assert (type(told), told.code) == (kind, code)


def test_the_settings_say_where_environments_are_and_how_large(tmp_path: Path) -> None:
    usual = EnvironmentCache.of_settings({})
    assert usual.source == PackageSource() and usual.limits == BuildLimits()
    given = {
        "ASSAY_ENVIRONMENTS": str(tmp_path), "ASSAY_WHEELS": "/srv/wheels",
        "ASSAY_PACKAGE_INDEX": "https://packages.example.org/simple", "ASSAY_ENVIRONMENT_BUILD_S": "60",
        "ASSAY_ENVIRONMENT_GIB": "2", "ASSAY_ENVIRONMENTS_GIB": "3",
    }  # fmt: skip
    assert EnvironmentCache.of_settings(given) == EnvironmentCache(
        tmp_path,
        PackageSource(Path("/srv/wheels"), "https://packages.example.org/simple"),
        BuildLimits(seconds=60.0, n_bytes=2 << 30),
        3 << 30,
    )

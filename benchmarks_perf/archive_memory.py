"""Do archives of 100,000 files and of 2 GiB end in a refusal or a content, in bounded memory?

    python -m benchmarks_perf.archive_memory [--scratch FOLDER] [--all]

Each archive is made, given to our intake and to `extractall` with a read of every file, each in a
process of its own, and removed. Printed are the growth of resident memory over what the process
had with everything imported, and the seconds. An archive that is taken is hashed and packed anew
as well, as a submission is. The gate: our intake never grows by more than 32 MiB. The disk is used
up to 2.8 GB, in the scratch folder.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random

from benchmarks.errors import SubmitterError
from evaluator.submission.archives.archive import taken_in

GATE = 32 << 20
GIB, MIB = 1 << 30, 1 << 20
MANY = 100_000
WEIGHTS = 900 * 10**6
WAYS = ("ours", "naive")


@dataclass(frozen=True)
class Case:
    """An archive: how it is made, what must become of it, whether the naive way is tried too.

    Where it is not, it takes minutes: it extracts 100,000 files, or what another case has shown.
    The plain tar is never extracted: that would need 4 GiB of disk.
    """

    name: str
    suffix: str
    make: Callable[[Path], None]
    wanted: str
    naive: bool = True


class Repeated(io.RawIOBase):
    """Bytes made while they are read: a block again and again."""

    def __init__(self, block: bytes, n_bytes: int, head: bytes = b"") -> None:
        self._head = head
        self._block = block
        self._left = n_bytes

    def readable(self) -> bool:
        """It can be read."""
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        """See RawIOBase."""
        piece, self._head = (self._head, b"") if self._head else (self._block, b"")
        n = min(len(buffer), len(piece), self._left)
        buffer[:n] = piece[:n]
        self._left -= n
        return n


def many_in_a_zip(path: Path) -> None:
    """100,000 small files."""
    with zipfile.ZipFile(path, "w") as archive:
        for i in range(MANY):
            archive.writestr(zipfile.ZipInfo(f"data/{i}.txt"), b"some text")


def many_in_a_tar(path: Path) -> None:
    """100,000 small files."""
    with gzip.open(path, "wb", compresslevel=1) as file:
        for i in range(MANY):
            info = tarfile.TarInfo(f"data/{i}.txt")
            info.size = 9
            file.write(info.tobuf(tarfile.USTAR_FORMAT) + b"some text".ljust(512, b"\0"))
        file.write(bytes(1024))


def zeros_in_a_zip(path: Path) -> None:
    """2 GiB that compress a thousandfold."""
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("zeros.txt", "w", force_zip64=True) as member,
    ):
        for _ in range(2 * GIB // MIB):
            member.write(bytes(MIB))


def zeros_in_a_tar(path: Path) -> None:
    """2 GiB that compress a thousandfold."""
    with gzip.open(path, "wb", compresslevel=1) as file:
        _tar_of(file, {"zeros.txt": Repeated(bytes(MIB), 2 * GIB)}, 2 * GIB)


def repeats_in_a_tar(path: Path) -> None:
    """2 GiB in four files that compress less than a bomb does."""
    block = Random(1).randbytes(400)
    text = b"".join(block[:i] + b"\n" * 200 for i in range(100, 400)) * 8
    with gzip.open(path, "wb", compresslevel=1) as file:
        half = {f"{i}.txt": Repeated(text, GIB // 2) for i in range(4)}
        _tar_of(file, half, GIB // 2)


def noise_in_a_tar(path: Path) -> None:
    """2 GiB that do not compress."""
    with path.open("wb") as file:
        half = {f"{i}.bin": Repeated(Random(i).randbytes(MIB), GIB) for i in range(2)}
        _tar_of(file, half, GIB)


def weights_in_a_zip(path: Path) -> None:
    """An honest scoring module with 900 MB of weights."""
    n_data = WEIGHTS // 4 * 4
    tensor = {"dtype": "F32", "shape": [n_data // 4], "data_offsets": [0, n_data]}
    header = json.dumps({"weight": tensor}).encode()
    head = len(header).to_bytes(8, "little") + header
    weights = Repeated(Random(1).randbytes(MIB), len(head) + n_data, head)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("assay.toml", b'name = "m"\nweights = "w.safetensors"')
        archive.writestr("scorer.py", b"class Scorer: ...")
        with archive.open("w.safetensors", "w") as member:
            shutil.copyfileobj(io.BufferedReader(weights, MIB), member, MIB)


def _tar_of(
    file: gzip.GzipFile | io.BufferedWriter, members: Mapping[str, Repeated], n_bytes: int
) -> None:
    for name, stream in members.items():
        info = tarfile.TarInfo(name)
        info.size = n_bytes
        file.write(info.tobuf(tarfile.USTAR_FORMAT))
        shutil.copyfileobj(io.BufferedReader(stream, MIB), file, MIB)
    file.write(bytes(1024))


CASES = (
    Case("100,000 files", ".zip", many_in_a_zip, "too_many_files", naive=False),
    Case("100,000 files", ".tar.gz", many_in_a_tar, "too_many_files", naive=False),
    Case("2 GiB of zeros", ".zip", zeros_in_a_zip, "bomb"),
    Case("2 GiB of zeros", ".tar.gz", zeros_in_a_tar, "too_large", naive=False),
    Case("2 GiB of repeats", ".tar.gz", repeats_in_a_tar, "too_large", naive=False),
    Case("2 GiB of noise", ".tar", noise_in_a_tar, "too_large", naive=False),
    Case("900 MB of weights", ".zip", weights_in_a_zip, "taken"),
)


def ours(archive: Path, place: Path) -> str:
    """Take it in as a submission is taken in: unpacked, hashed, packed anew."""
    try:
        with taken_in(archive, place) as content:
            digest = content.sha256
            content.pack_to(place / "packed.zip")
    except SubmitterError as error:
        return error.code
    return f"taken, {digest[:8]}"


def naive(archive: Path, place: Path) -> str:
    """What the standard library's documentation shows, and a hash over the files' bytes."""
    if archive.suffix == ".zip":
        with zipfile.ZipFile(archive) as zipped:
            zipped.extractall(place)
    else:
        with tarfile.open(archive) as tarred:
            tarred.extractall(place, filter="fully_trusted")
    files = {p.relative_to(place).as_posix(): p.read_bytes() for p in _files(place)}
    digest = hashlib.sha256()
    for name in sorted(files):
        digest.update(name.encode())
        digest.update(files[name])
    return f"extracted, {digest.hexdigest()[:8]}"


def _files(place: Path) -> Iterator[Path]:
    return (path for path in place.rglob("*") if path.is_file())


def measure(way: str, archive: Path) -> dict[str, object]:
    """One way over one archive, in this process."""
    Path("/proc/self/clear_refs").write_text("5")  # The peak begins anew.
    before = _memory("VmRSS")
    place = archive.with_name(way)
    place.mkdir()
    started = time.perf_counter()
    try:
        said = ours(archive, place) if way == "ours" else naive(archive, place)
        seconds = time.perf_counter() - started
    finally:
        shutil.rmtree(place)
    return {"said": said, "seconds": seconds, "growth": _memory("VmHWM") - before}


def _memory(key: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{key}:"):
            return int(line.split()[1]) << 10
    raise KeyError(key)


def in_a_process(way: str, archive: Path) -> dict[str, object]:
    """One way over one archive, in a process of its own."""
    command = [sys.executable, "-m", __spec__.name, "--way", way, "--archive", str(archive)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, object] = json.loads(done.stdout)
    return found


def run(case: Case, place: Path, *, everything: bool) -> tuple[str, bool]:
    """A line of the table, and whether our intake did what it must."""
    archive = place / f"case{case.suffix}"
    case.make(archive)
    cells = [f"{case.name + ' ' + case.suffix:26} {archive.stat().st_size / 1e6:9.1f}"]
    ok = True
    for way in WAYS:
        if way == "naive" and not (case.naive or (everything and case.suffix != ".tar")):
            cells.append(f"{'(not run)':>40}")
            continue
        found = in_a_process(way, archive)
        growth = int(str(found["growth"]))
        if way == "ours":
            ok = growth <= GATE and str(found["said"]).startswith(case.wanted)
        cells.append(f"{growth / MIB:8.1f} {found['seconds']:7.2f}  {found['said']!s:22}")
    archive.unlink()
    return " | ".join(cells), ok


def main() -> int:
    """Print the table; 1 if a gate is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--scratch", type=Path, help="folder for up to 2.8 GB")
    parser.add_argument("--all", action="store_true", help="the naive way too, wherever it fits")
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    parser.add_argument("--archive", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.way:
        print(json.dumps(measure(options.way, options.archive)))
        return 0
    started = time.perf_counter()
    print(f"{'':26} {'MB':>9} | {'ours: MiB, seconds, outcome':40} | naive: the same")
    missed = 0
    for case in CASES:
        with tempfile.TemporaryDirectory(dir=options.scratch) as place:
            line, ok = run(case, Path(place), everything=options.all)
        missed += not ok
        print(f"{line}{'' if ok else '  MISSED'}", flush=True)
    print(f"{time.perf_counter() - started:.0f} s; gate: {GATE >> 20} MiB; missed: {missed}")
    return int(bool(missed))


if __name__ == "__main__":
    raise SystemExit(main())

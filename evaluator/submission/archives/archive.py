"""Takes in a submission, a folder, zip or tar, file by file and never by a naive extractall.

Only regular files leave an archive, a bounded number of bytes at a time, into a fresh folder with
modes of ours. Sizes are counted while inflating, since headers lie. What is wrong with one file is
noted and the file left out, so that its author hears of everything at once. What is wrong with the
whole, a bomb above all, ends the intake.

The same files have the same hash and the same packed bytes, whether they came as a folder, a zip
or a tar; hashing and packing go piece by piece.

Kinds of files that are refused are told by their names and first bytes. Weights come as safetensors
only. Whatever is loaded runs in a sandbox all the same; this is so that a reader of a submission can
tell what it will do from its sources. A safetensors file is eight bytes of length, a JSON header of
that length, then the tensors' bytes: each byte belongs to one tensor, as the format wants it; no
tensor is loaded. Stricter than its readers, never laxer.
"""

from __future__ import annotations

import hashlib
import math
import re
import shutil
import struct
import tarfile
import tempfile
import uuid
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import takewhile
from pathlib import Path, PurePosixPath
from typing import Any

from benchmarks.errors import PlatformError, SubmitterError, TransientError
from benchmarks.parsing import parse_json
from benchmarks.problems import Problem, one_error
from evaluator.submission.archives.entries import (
    GZIP,
    PIECE,
    ArchiveLimits,
    Entry,
    clash_key,
    folder_entries,
    is_left_behind,
    mb,
    name_problem,
    parents,
    printable,
    reading,
    tar_entries,
    too_large,
    too_many,
    zip_entries,
)

_EPOCH = (1980, 1, 1, 0, 0, 0)
_UNIX = 3


@dataclass(frozen=True)
class Content:
    """The files of a scoring module, in a folder of ours."""

    folder: Path  # where they are
    files: Mapping[str, int]  # relative POSIX path to bytes of the file; nothing else lies there

    @property
    def n_bytes(self) -> int:
        """Of all files together."""
        return sum(self.files.values())

    @cached_property
    def sha256(self) -> str:
        """Hash over all paths and contents."""
        return files_sha256({name: self.folder / name for name in self.files}, self.files)

    def head(self, name: str, most: int) -> bytes:
        """The beginning of a file, at most so many bytes of it."""
        with (self.folder / name).open("rb") as file:
            return file.read(most)

    def pack_to(self, path: Path) -> None:
        """Write a new zip whose bytes depend on the content alone.

        Nothing is compressed: weights hardly shrink, versions of zlib differ in their output, and
        so an archive of ours can never look like a bomb to its reader.
        """
        with path.open("xb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            for name in sorted(self.files):
                info = zipfile.ZipInfo(name, _EPOCH)
                info.create_system = _UNIX
                info.external_attr = 0o100644 << 16
                info.file_size = self.files[name]
                with archive.open(info, "w") as member:
                    for piece in pieces_of(self.folder / name):
                        member.write(piece)


def pieces_of(path: Path) -> Iterator[bytes]:
    """The bytes of a file, a bounded number at a time."""
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            yield piece


def files_sha256(paths: Mapping[str, Path], sizes: Mapping[str, int]) -> str:
    """Hash over paths and contents: what names a submission."""
    digest = hashlib.sha256()
    for name in sorted(paths):
        digest.update(f"{len(name.encode())}:{name}:{sizes[name]}:".encode())
        n_bytes = 0
        for piece in pieces_of(paths[name]):
            digest.update(piece)
            n_bytes += len(piece)
        if n_bytes != sizes[name]:
            raise PlatformError(
                "content_changed",
                f"{name!r} has {n_bytes} bytes and had {sizes[name]} when it was taken in.",
                "Let nothing write in the folder meanwhile, and try again.",
            )
    return digest.hexdigest()


HEAD_BYTES = 64 * 1024
WEIGHTS = ".safetensors"


@dataclass(frozen=True)
class _Kind:
    """A kind of file that is not taken: what it is, why not, and what to send in its place."""

    what: str
    hint: str


_SAVE = "Save weights with the safetensors library and send the .safetensors file."
_PICKLE = _Kind("a pickle, which runs code of its own when it is loaded", _SAVE)
_TORCH = _Kind("a file of torch.save, a pickle, which runs code when it is loaded", _SAVE)
_NAMED_TORCH = _Kind(
    "named like a file of torch.save, a pickle, which runs code when it is loaded", _SAVE
)
_JOBLIB = _Kind("a compressed pickle, which runs code of its own when it is loaded", _SAVE)
_OBJECTS = _Kind("an array of Python objects, a pickle, which runs code when it is loaded", _SAVE)
_WEIGHTS = _Kind("a file of weights in a form that is not taken", _SAVE)
_ARCHIVE = _Kind(
    "an archive inside the archive, whose content nobody would see",
    "Unpack it, and send what is in it as files; arrays as .npy or .safetensors.",
)
_MACHINE = _Kind(
    "machine code, which nobody can read", "Send Python sources; compiled extensions do not run."
)
_START = _Kind(
    "run by Python at every start, before the scorer",
    "Remove it, and do what it does in the scorer's constructor.",
)
_PATHS = _Kind(
    "either a pickle of weights or a list of code that Python runs at every start", _SAVE
)

_SUFFIXES: Mapping[str, _Kind] = {
    **dict.fromkeys((".pkl", ".pickle", ".p", ".dill", ".cloudpickle"), _PICKLE),
    **dict.fromkeys((".pt", ".ptc", ".ckpt", ".bin", ".mar"), _NAMED_TORCH),
    **dict.fromkeys((".joblib",), _JOBLIB),
    **dict.fromkeys(
        (".h5", ".hdf5", ".keras", ".onnx", ".gguf", ".ggml", ".tflite", ".pb", ".msgpack"),
        _WEIGHTS,
    ),
    **dict.fromkeys(
        (".zip", ".npz", ".tar", ".tgz", ".7z", ".rar", ".xz", ".bz2", ".zst", ".whl", ".egg"),
        _ARCHIVE,
    ),
    **dict.fromkeys((".so", ".dll", ".dylib", ".pyd", ".exe", ".o", ".a"), _MACHINE),
    ".pth": _PATHS,
}
_FILES: Mapping[str, _Kind] = dict.fromkeys(("sitecustomize", "usercustomize"), _START)

_NOT_TAKEN = {
    b"BZh": "compressed with bzip2",
    b"\xfd7zXZ\0": "compressed with xz",
    b"\x28\xb5\x2f\xfd": "compressed with zstd",
    b"\x04\x22\x4d\x18": "compressed with lz4",
    b"7z\xbc\xaf\x27\x1c": "a 7z archive",
    b"Rar!\x1a\x07": "a RAR archive",
}
"""Forms of archives whose readers take memory by the word of the file."""
_ZIP = (b"PK\3\4", b"PK\5\6")
_ARCHIVE_MAGIC = (*_ZIP, *_NOT_TAKEN)
_MACHINE_MAGIC = (
    b"\x7fELF",
    b"\xfe\xed\xfa\xce",
    b"\xfe\xed\xfa\xcf",
    b"\xce\xfa\xed\xfe",
    b"\xcf\xfa\xed\xfe",
    b"\xca\xfe\xba\xbe",
    b"\xca\xfe\xba\xbf",
    b"\0asm",
    b"!<arch>\n",
)
_WEIGHTS_MAGIC = (b"\x89HDF\r\n\x1a\n", b"GGUF", b"PTMG")
# Old protocols of pickle begin like text; these are the beginnings that no text has.
_OLD_PICKLE = re.compile(
    rb"\(?(?:c(?:os|posix|nt|sys|builtins|__builtin__|copy_?reg|subprocess|runpy|numpy[\w.]*|"
    rb"torch[\w.]*|collections)\n\w+\n|[dl]p\d+\n)"
)
_OBJECT_FIELD = re.compile(rb"'[<>|=]?O\d*'")


def name_kind(name: str) -> Problem | None:
    """Why a file of that name is not taken, if it is not."""
    path = PurePosixPath(name.lower())
    kind = _FILES.get(path.stem if path.suffix == ".py" else "") or _SUFFIXES.get(path.suffix)
    if kind is None and ".so." in path.name:
        kind = _MACHINE
    if kind is None and any(part in _FILES for part in path.parts):
        kind = _START
    return _refusal(name, kind)


def looks_like_pickle(head: bytes) -> bool:
    """Whether bytes begin as a pickle does, or a file of torch.save."""
    return _kind(head) in (_PICKLE, _TORCH, _JOBLIB)


def _kind(head: bytes) -> _Kind | None:
    return next(_kinds(head), None)


def _kinds(head: bytes) -> Iterator[_Kind]:
    if head[:1] == b"\x80" and head[1:2] in (b"\2", b"\3", b"\4", b"\5"):
        yield _PICKLE
    if _OLD_PICKLE.match(head):
        yield _PICKLE
    if head.startswith(b"PK\3\4") and b"data.pkl" in head[:4096]:
        yield _TORCH
    if head.startswith(_ARCHIVE_MAGIC) or head[257:262] == b"ustar":
        yield _ARCHIVE
    if head.startswith(_MACHINE_MAGIC) or (head.startswith(b"MZ") and b"\0" in head[:64]):
        yield _MACHINE
    if head.startswith(_WEIGHTS_MAGIC):
        yield _WEIGHTS
    if head.startswith(b"\x93NUMPY") and _OBJECT_FIELD.search(head):
        yield _OBJECTS
    yield from _compressed_kinds(head)


def _compressed_kinds(head: bytes) -> Iterator[_Kind]:
    """A compressed text, as tokenizers have them, is taken; a pickle or an archive is not."""
    gzipped = head.startswith(b"\x1f\x8b")
    if not (gzipped or head[:2] in (b"\x78\x01", b"\x78\x9c", b"\x78\xda")):
        return
    try:
        inside = zlib.decompressobj(zlib.MAX_WBITS | (16 if gzipped else 0)).decompress(head, 4096)
    except zlib.error:
        return
    within = None if inside[:2] == head[:2] else _kind(inside)
    if within in (_PICKLE, _TORCH):
        yield _JOBLIB
    elif within is not None or inside[:2] == head[:2]:
        yield _ARCHIVE


def _refusal(name: str, kind: _Kind | None) -> Problem | None:
    if kind is None:
        return None
    return Problem(
        "refused_file", f"{printable(name)!r} is {kind.what}.", kind.hint, file=printable(name)
    )


_BITS: Mapping[str, int] = {
    **dict.fromkeys(("BOOL", "U8", "I8", "F8_E5M2", "F8_E4M3", "F8_E8M0"), 8),
    **dict.fromkeys(("F8_E4M3FNUZ", "F8_E5M2FNUZ"), 8),
    **dict.fromkeys(("U16", "I16", "F16", "BF16"), 16),
    **dict.fromkeys(("U32", "I32", "F32"), 32),
    **dict.fromkeys(("U64", "I64", "F64", "C64"), 64),
    **dict.fromkeys(("F6_E2M3", "F6_E3M2"), 6),
    "F4": 4,
}
_LENGTH = struct.Struct("<Q")
_METADATA = "__metadata__"
_KEYS = {"dtype", "shape", "data_offsets"}


def weights_problems(content: Content, limits: ArchiveLimits) -> tuple[Problem, ...]:
    """What is wrong with the safetensors files of a submission, at most one problem a file."""
    names = sorted(name for name in content.files if name.lower().endswith(WEIGHTS))
    found = (_weights_problem(content, name, limits) for name in names)
    return tuple(problem for problem in found if problem is not None)


def _weights_problem(content: Content, name: str, limits: ArchiveLimits) -> Problem | None:
    n_bytes = content.files[name]
    head = content.head(name, _LENGTH.size)
    try:
        if len(head) < _LENGTH.size:
            raise ValueError("it is too short for a header")
        (length,) = _LENGTH.unpack(head)
        if length > n_bytes - _LENGTH.size:
            raise ValueError("its header is longer than the file")
        if length > limits.weights_header_bytes:
            raise ValueError(
                f"its header has {mb(length)}, and {mb(limits.weights_header_bytes)} is the most"
            )
        header = content.head(name, _LENGTH.size + length)[_LENGTH.size :]
        check_header(header, n_bytes - _LENGTH.size - length)
    except ValueError as error:
        pickled = looks_like_pickle(content.head(name, HEAD_BYTES))
        return Problem(
            "bad_weights",
            f"{name!r} is {'a pickle and ' if pickled else ''}not a safetensors file: {error}.",
            "Save the weights with the safetensors library (safetensors.torch.save_file).",
            file=name,
        )
    return None


def check_header(header: bytes, n_data: int) -> None:
    """Check the JSON in front of the tensors."""
    if not header.startswith(b"{"):
        raise ValueError("its header does not begin with {")
    try:
        tensors = parse_json(header)
    except ValueError as error:
        raise ValueError(f"its header, JSON in UTF-8, is broken: {error}") from error
    metadata = tensors.pop(_METADATA, {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise ValueError(f"{_METADATA} in its header is not a list of texts")
    spans = sorted(_span(name, tensor) for name, tensor in tensors.items())
    end = 0
    for begin, after, name in spans:
        if begin != end:
            what = "shares bytes with the one before" if begin < end else "leaves bytes unused"
            raise ValueError(f"the tensor {name[:100]!r} {what}")
        end = after
    if end != n_data:
        raise ValueError(f"its tensors have {end} bytes and {n_data} follow the header")


def _span(name: str, tensor: Any) -> tuple[int, int, str]:
    """Where a tensor begins and ends behind the header."""
    shown = repr(name[:100])
    if not isinstance(tensor, dict) or tensor.keys() != _KEYS:
        raise ValueError(f"the tensor {shown} has other keys than {', '.join(sorted(_KEYS))}")
    dtype, shape, offsets = tensor["dtype"], tensor["shape"], tensor["data_offsets"]
    bits = _BITS.get(dtype) if isinstance(dtype, str) else None
    if bits is None:
        raise ValueError(f"the tensor {shown} has an unknown type of number")
    if not _are_sizes(shape) or not _are_sizes(offsets) or len(offsets) != 2:
        raise ValueError(f"the tensor {shown} has a shape or offsets that are no plain numbers")
    begin, after = offsets
    if math.prod(shape) * bits != (after - begin) * 8:
        raise ValueError(f"the tensor {shown} has another number of bytes than its shape needs")
    return begin, after, name


def _are_sizes(values: Any) -> bool:
    return (
        isinstance(values, list)
        and len(values) <= 64
        and all(type(value) is int and value >= 0 for value in values)
    )


@dataclass(frozen=True)
class Inspection:
    """What came out of a submission."""

    content: Content  # of the files that are taken; not of the whole where there are problems
    problems: tuple[Problem, ...]  # of the files that are refused


class Intake:
    """Takes the entries of one submission."""

    def __init__(self, folder: Path, archive: str, limits: ArchiveLimits) -> None:
        self._folder = folder
        self._archive = archive
        self._limits = limits
        self._sizes: dict[str, int] = {}
        self._taken: dict[str, tuple[str, bool]] = {}
        self._problems: list[Problem] = []
        self._untold = self._entries = self._bytes = 0

    def take_all(self, entries: Iterable[Entry]) -> None:
        """Take every entry."""
        for number, entry in enumerate(entries, 1):
            if number > self._limits.members:
                most = f"{self._limits.members} members, with folders and hidden files"
                raise too_many(self._archive, most)
            if not is_left_behind(entry.name):
                self._take(entry)
        if not self._sizes and not self._problems:
            raise SubmitterError(
                "empty_archive", f"{self._archive} holds no file.", "Pack the scorer's folder."
            )
        for path in self._folder.rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)

    def inspection(self) -> Inspection:
        """What came of it; folders around everything are taken off."""
        wrapper = wrapper_of(self._sizes)
        files = {name.removeprefix(wrapper): n_bytes for name, n_bytes in self._sizes.items()}
        problems = [replace(p, file=p.file.removeprefix(wrapper)) for p in self._problems]
        if self._untold:
            more = f"{self._untold} more files of {self._archive} are refused for such reasons."
            problems.append(Problem("more_problems", more, "Mend those above first."))
        return Inspection(Content(self._folder / wrapper, files), tuple(problems))

    def _take(self, entry: Entry) -> None:
        self._entries += not entry.is_folder
        if self._entries > self._limits.entries:
            raise too_many(self._archive, f"{self._limits.entries} files")
        problem = self._fault(entry)
        if problem is None and not entry.is_folder:
            target = self._folder / entry.name
            n_bytes, head = self._written(entry, target)
            problem = (
                None if entry.name.lower().endswith(WEIGHTS) else _refusal(entry.name, _kind(head))
            )
            if problem is None:
                self._sizes[entry.name] = n_bytes
            else:
                target.unlink()
        if problem is not None:
            self._note(problem)

    def _fault(self, entry: Entry) -> Problem | None:
        """Why an entry is not taken, told by all but its content; a file that is has its place."""
        name = entry.name.rstrip("/") if entry.is_folder else entry.name
        is_top = entry.is_folder and name in ("", ".")
        if not is_top and (problem := name_problem(name, self._limits)):
            return problem
        if entry.fault:
            name = printable(entry.name)
            what = f"{name!r} {entry.fault}."
            return Problem("not_a_file", what, "Put regular files only into it.", file=name)
        return None if entry.is_folder else name_kind(name) or self._clash(name)

    def _note(self, problem: Problem) -> None:
        if len(self._problems) < self._limits.problems:
            self._problems.append(problem)
        else:
            self._untold += 1

    def _clash(self, name: str) -> Problem | None:
        """Whether a file needs a place on some disk that another has; if not, it takes it."""
        places = [(name, False), *((parent, True) for parent in parents(name))]
        for place, is_folder in places:
            other = self._taken.get(clash_key(place))
            if other is not None and not (is_folder and other == (place, True)):
                return Problem(
                    "duplicate_name",
                    f"{self._archive} holds {other[0]!r} and {place!r}, which are one file on "
                    "some disks.",
                    "Give every file and folder a name of its own.",
                    file=printable(name),
                )
        self._taken.update((clash_key(place), (place, is_folder)) for place, is_folder in places)
        return None

    def _written(self, entry: Entry, target: Path) -> tuple[int, bytes]:
        """Write a file, over nothing that is there; its size and its beginning."""
        n_bytes, head = 0, b""
        pieces = reading(entry.pieces(), self._archive)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("xb") as file:
                for piece in pieces:
                    n_bytes += len(piece)
                    if n_bytes > self._limits.file_bytes:
                        raise too_large(repr(entry.name), self._limits)
                    if self._bytes + n_bytes > self._limits.total_bytes:
                        raise too_large(self._archive, self._limits)
                    head += piece[: HEAD_BYTES - len(head)]
                    file.write(piece)
        except OSError as error:
            raise TransientError(
                "no_room",
                f"The unpacked files could not be written: {error.strerror}.",
                "Free space in the folder for temporary files, then try again.",
            ) from error
        self._bytes += n_bytes
        return n_bytes, head


def wrapper_of(names: Iterable[str]) -> str:
    """The folders around everything, with their slash; empty where there is none.

    All of them, so that packing what was taken and taking it in again changes nothing.
    """
    ways = [PurePosixPath(name).parent.parts for name in names]
    shared = takewhile(lambda parts: len(set(parts)) == 1, zip(*ways, strict=False))
    return "".join(f"{parts[0]}/" for parts in shared)


SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz")


@contextmanager
def taken_in(
    source: Path, scratch: Path | None = None, limits: ArchiveLimits | None = None
) -> Iterator[Content]:
    """The files of a folder, zip or tar in a fresh folder of ours, removed afterwards.

    Folders around everything, as archives of a folder have one, are taken off.
    """
    with inspected(source, scratch, limits) as looked:
        if looked.problems:
            raise one_error(looked.problems)
        yield looked.content


@contextmanager
def inspected(
    source: Path, scratch: Path | None = None, limits: ArchiveLimits | None = None
) -> Iterator[Inspection]:
    """Like `taken_in`, but problems of single files are told and those files left out."""
    bounds = limits or ArchiveLimits()
    with _fresh_folder(scratch) as folder:
        name = printable(source.name)
        intake = Intake(folder, name, bounds)
        intake.take_all(reading(submitted_entries(source, bounds), name))
        yield intake.inspection()


def content_hash(folder: Path) -> str:
    """Hash of a module's folder, as `Content.sha256` has it, without a copy of the folder."""
    entries = folder_entries(folder, ArchiveLimits())
    names = [e.name for e in entries if not e.is_folder and not is_left_behind(e.name)]
    n = len(wrapper_of(names))
    paths = {name[n:]: folder / name for name in names}
    return files_sha256(paths, {name: path.stat().st_size for name, path in paths.items()})


@contextmanager
def _fresh_folder(scratch: Path | None) -> Iterator[Path]:
    """A folder that others may read, with a name that says nothing: a box can see it."""
    place = scratch / uuid.uuid4().hex if scratch else Path(tempfile.mkdtemp(prefix="assay-"))
    folder = place / "module"
    folder.mkdir(parents=True)
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(place, ignore_errors=True)


def submitted_entries(source: Path, limits: ArchiveLimits) -> Iterator[Entry]:
    """What stands in a folder, zip or tar, one after the other.

    `entries.reading` says in our words what is wrong with it.
    """
    if not source.exists():
        raise SubmitterError("file_missing", f"There is no file {source}.", "Check the path.")
    if source.is_dir():
        yield from folder_entries(source, limits)
        return
    if not source.is_file():
        raise _not_taken(source, "no file and no folder")
    yield from _reader(source, limits)(source, limits)


def _reader(
    source: Path, limits: ArchiveLimits
) -> Callable[[Path, ArchiveLimits], Iterator[Entry]]:
    """What reads an archive, told by its first bytes; its name may say anything."""
    n_bytes = source.stat().st_size
    if n_bytes > limits.archive_bytes:
        raise SubmitterError(
            "too_large", f"{printable(source.name)} has {mb(n_bytes)}.", limits.sizes
        )
    with source.open("rb") as file:
        head = file.read(tarfile.BLOCKSIZE)
    for magic, form in _NOT_TAKEN.items():
        if head.startswith(magic):
            raise _not_taken(source, f"{form}, which is not taken")
    if head.startswith(_ZIP):
        return zip_entries
    is_tar = head.startswith(GZIP) or head[257:262] == b"ustar"
    if not is_tar and zipfile.is_zipfile(source):
        raise SubmitterError(
            "crafted_archive",
            f"{printable(source.name)} has other bytes in front of the zip.",
            "Send a plain .zip, not a program that unpacks itself.",
        )
    return tar_entries


def _not_taken(source: Path, form: str) -> SubmitterError:
    return SubmitterError(
        "not_an_archive",
        f"{printable(source.name)} is {form}.",
        f"Send a folder or one of {', '.join(SUFFIXES)}.",
    )

"""From what a card declares to the files to be fetched: each with its source and what it must be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from re import fullmatch

from benchmarks.errors import SubmitterError
from benchmarks.sources.disk import UNPACKING
from benchmarks.sources.files import DataFile
from benchmarks.sources.pins import Pin, Pins, place_of
from benchmarks.sources.remote import Expected, Hub, Source, safe_name, web_file
from benchmarks.sources.transfer import is_right, part_of
from benchmarks.sources.unpack import still_unpacked

_CARD = "the benchmark's card"
_BRANCH = "main"


@dataclass(frozen=True)
class Item:
    """One file to be there.

    Attributes:
        declared: the entry of the card it belongs to.
        path: where it goes, below the folder of data.
        source: where it comes from.
        expected: what it must be.
    """

    declared: DataFile
    path: str
    source: Source
    expected: Expected

    def missing_bytes(self, data: Path) -> int:
        """How many bytes are still to come, as far as anybody tells."""
        part = part_of(data / self.path, self.source)
        begun = part.stat().st_size if part.exists() else 0
        size = self.expected.size
        return max((self.declared.size if size is None else size) - begun, 0)


class Planner:
    """Finds out what is there and what is to come; writes nothing until `save`.

    Args:
        hub: where repositories are.
        data: folder of data.
        files: all files of the card: those of one repository share one commit.
    """

    def __init__(self, hub: Hub, data: Path, files: Sequence[DataFile]) -> None:
        self._hub, self._data = hub, data
        self._revisions = {
            file.repo: file.revision for file in files if file.repo and file.revision
        }
        self._pins: dict[Path, Pins] = {}
        self.commits: dict[str, str] = {}

    def pins(self, path: str) -> Pins:
        """The record that covers a path."""
        place = place_of(self._data, path)
        if place not in self._pins:  # read once: a folder asks for each of its files
            self._pins[place] = Pins(place)
        return self._pins[place]

    def save(self) -> None:
        """Write every record that changed."""
        for pins in self._pins.values():
            pins.save()

    def is_there(self, file: DataFile) -> bool:
        """Whether a single file is there and right, by card or record, without asking anybody."""
        known = self._known(file)
        if file.folder or not known.sha256:
            return False
        return self._is_unpacked(file, known.sha256) or any(
            is_right(self._data / place, known) for place in (file.path, *file.also)
        )

    def needs_unpacking(self, file: DataFile) -> bool:
        """Whether an archive is to be unpacked, and was not or is no longer."""
        if not file.unpack:
            return False
        entry = self.pins(file.path).unpacked(file.path)
        return entry is None or not still_unpacked((self._data / file.path).parent, entry)

    def unpacked_bytes(self, file: DataFile, size: int) -> int:
        """Room for the content of an archive of this size, where it is still to be unpacked."""
        return round(size * UNPACKING) if self.needs_unpacking(file) else 0

    def items(self, file: DataFile, names: Sequence[str] = ()) -> list[Item]:
        """What a declared file or folder consists of, whether there or not.

        Args:
            file: with an origin on the Hub or the web.
            names: of the files of a folder at a web address.

        Raises:
            SubmitterError: unknown or closed repository, revision or file; or `download_wrong`,
                where the server now has another file than the card or an earlier fetch pinned.
            TransientError: no network, or the server fails.
        """
        if file.repo:
            return [self._pinned(item) for item in self._of_repository(file)]
        if file.folder:
            return [
                self._pinned(
                    Item(
                        file,
                        f"{file.path}/{safe_name(name, file.path)}",
                        web_file(file.url, name),
                        Expected(),
                    )
                )
                for name in names
            ]
        return [self._pinned(Item(file, file.path, *self._hub.web(file.url)))]

    def commit(self, file: DataFile) -> str:
        """The commit all files of a repository come from.

        The card's, else the recorded one, else the newest, which is then recorded.
        """
        if file.repo not in self.commits:
            pins = self.pins(file.path)
            declared, recorded = self._revisions.get(file.repo, ""), pins.commit(file.repo)
            if recorded.startswith(declared):  # so nobody need be asked again
                declared = recorded
            revision = declared or _BRANCH
            full = fullmatch(r"[0-9a-f]{40}", revision)
            self.commits[file.repo] = revision if full else self._hub.commit(file.repo, revision)
        self.pins(file.path).pin_commit(file.repo, self.commits[file.repo])
        return self.commits[file.repo]

    def _of_repository(self, file: DataFile) -> list[Item]:
        commit = self.commit(file)
        if not file.folder:
            return [Item(file, file.path, *self._hub.file(file.repo, file.name_in_repo, commit))]
        return [
            Item(file, f"{file.path}/{name}", source, expected)
            for name, source, expected in self._hub.folder(file.repo, file.name_in_repo, commit)
        ]

    def _known(self, file: DataFile) -> Expected:
        """What card or record say about a single file."""
        if file.sha256:
            return Expected(sha256=file.sha256, said_by=_CARD)
        pins = self.pins(file.path)
        pin = pins.file(file.path)
        shown = f"{file.repo}/{file.name_in_repo}" if file.repo else file.url
        revision = self._revisions.get(file.repo) or pins.commit(file.repo) if file.repo else ""
        if pin is None or pin.source != shown or not pin.commit.startswith(revision):
            return Expected()
        return _recorded(pin, pins.place)

    def _pinned(self, item: Item) -> Item:
        """The item with card or record added to what the server says; they must agree."""
        pins, path = self.pins(item.path), item.path
        pin, source = pins.file(path), item.source
        if item.declared.sha256 and not item.declared.folder:
            pinned = Expected(sha256=item.declared.sha256, said_by=_CARD)
        elif pin and (pin.source, pin.commit) == (source.shown, source.commit):
            pinned = _recorded(pin, pins.place)
        else:
            return item
        offered = item.expected
        if offered.sha256 not in {"", pinned.sha256} or (
            None not in {offered.size, pinned.size} and offered.size != pinned.size
        ):
            raise _changed_upstream(source, offered, pinned)
        size = pinned.size if offered.size is None else offered.size
        return replace(item, expected=replace(pinned, size=size))

    def _is_unpacked(self, file: DataFile, sha256: str) -> bool:
        """Whether the archive may be gone, because its content is there."""
        entry = self.pins(file.path).unpacked(file.path) if file.unpack else None
        return (
            entry is not None
            and entry.sha256 == sha256
            and still_unpacked((self._data / file.path).parent, entry)
        )


def _recorded(pin: Pin, place: Path) -> Expected:
    return Expected(
        pin.size, sha256=pin.sha256, said_by=f"the record of an earlier fetch ({place})"
    )


def _changed_upstream(source: Source, offered: Expected, pinned: Expected) -> SubmitterError:
    return SubmitterError(
        "download_wrong",
        f"{source.shown} now has {offered.size} bytes and sha256 {offered.sha256[:16] or 'unknown'}"
        f"…; {pinned.said_by} has {pinned.size or 'any'} bytes and {pinned.sha256[:16]}….",
        "Its authors replaced it; results on the new file are not comparable with the old ones.",
    )


def origin_of(file: DataFile) -> Mapping[str, str]:
    """Where a declared file comes from, for people and programs."""
    if file.repo:
        return {"repo": file.repo, "name": file.name_in_repo}
    return {"url": file.url} if file.url else {"supplied": file.supplied}

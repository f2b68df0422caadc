"""The images of models: their table of hashes, and small pictures without metadata to be shown.

    results/<submission>/<prompt set>.images.parquet          ids, hashes and sizes
    results/<submission>/pictures-<prompt set>-000.parquet    columns prompt_id, seed, webp

The original files stay in the private repository. Row groups are small, so that one image is had
without decoding the others.
"""

from __future__ import annotations

import logging
import shutil
import tempfile
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from io import BytesIO
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from leaderboard.models.reading import ModelReader
from leaderboard.publication.model_entries import ModelEntry
from leaderboard.store.interface import NotFoundError, Repository
from leaderboard.thumbnails import thumbnail

log = logging.getLogger(__name__)

IMAGES_SCHEMA = pa.schema(
    [
        pa.field("prompt_id", pa.string(), nullable=False),
        pa.field("seed", pa.uint64(), nullable=False),
        pa.field("sha256", pa.string()),
        pa.field("width", pa.int32()),
        pa.field("height", pa.int32()),
        pa.field("problem", pa.string()),
    ]
)
"""One row for each (prompt, seed); a withheld image has a problem and no hash. `sha256` is that of
the file as it was sent."""


def images_path(submission_id: str, prompt_set: str) -> str:
    """Where the table of a submission is."""
    return f"results/{submission_id}/{prompt_set}.images.parquet"


def image_table(rows: Iterable[Mapping[str, object]]) -> bytes:
    """The file."""
    buffer = BytesIO()
    pq.write_table(pa.Table.from_pylist(list(rows), IMAGES_SCHEMA), buffer, compression="zstd")
    return buffer.getvalue()


def image_hashes(content: bytes) -> dict[tuple[str, str], int]:
    """Prompt id and hash to the seed it was drawn with, of the images that are there."""
    table = pq.read_table(BytesIO(content), columns=["prompt_id", "seed", "sha256"])
    rows = zip(*(table[name].to_pylist() for name in table.column_names), strict=True)
    return {(prompt, sha256): seed for prompt, seed, sha256 in rows if sha256 is not None}


def drawn_images(content: bytes) -> list[tuple[str, int]]:
    """Prompt id and seed of every image that is there, in the order of the table."""
    table = pq.read_table(BytesIO(content), columns=["prompt_id", "seed", "sha256"])
    rows = zip(*(table[name].to_pylist() for name in table.column_names), strict=True)
    return [(prompt, seed) for prompt, seed, sha256 in rows if sha256 is not None]


LONGEST_SIDE = 512
PER_FILE = 256
ROW_GROUP = 8
MOST_FILES = 32  # Files of pictures on this machine's disk at once; a file takes 5 to 10 MB
SCHEMA = pa.schema(
    [
        pa.field("prompt_id", pa.string(), nullable=False),
        pa.field("seed", pa.uint64(), nullable=False),
        pa.field("webp", pa.binary()),
    ]
)

Image = tuple[str, int, Callable[[], bytes]]  # Prompt id, seed, and what reads the image
Place = tuple[int, int]  # File and row group of an image


def pictures_path(submission_id: str, prompt_set: str, number: int) -> str:
    """Where a file of pictures is."""
    return f"results/{submission_id}/pictures-{prompt_set}-{number:03d}.parquet"


def write_pictures(images: Iterable[Image], folder: Path) -> list[Path]:
    """Make the files of pictures, in the order of the images.

    An image that cannot be decoded has a row without a picture.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, mode=0o700)
    made: list[Path] = []
    for part in _parts(images):
        path = folder / f"{len(made):03d}.parquet"
        with pq.ParquetWriter(path, SCHEMA, compression="none") as file:
            for rows in _rows(part):
                file.write_table(pa.Table.from_pylist(rows, SCHEMA), row_group_size=ROW_GROUP)
        made.append(path)
    return made


def _parts(images: Iterable[Image]) -> Iterator[list[Image]]:
    rest = iter(images)
    while part := list(islice(rest, PER_FILE)):
        yield part


def _rows(part: list[Image]) -> Iterator[list[dict[str, object]]]:
    for start in range(0, len(part), ROW_GROUP):
        yield [
            {"prompt_id": prompt, "seed": seed, "webp": _small(read())}
            for prompt, seed, read in part[start : start + ROW_GROUP]
        ]


def _small(content: bytes) -> bytes | None:
    try:
        return thumbnail(content, LONGEST_SIDE)
    except ValueError:
        return None


class ModelPictures:
    """Finds the pictures of models on the boards. Several threads may share one.

    Nothing a visitor sends becomes part of a path: ids are looked up among what is published.
    """

    def __init__(self, reader: ModelReader, public: Repository) -> None:
        self._reader = reader
        self._public = public
        self._lock = threading.Lock()
        self._folder = Path(tempfile.mkdtemp(prefix="assay-pictures-"))
        self._files: OrderedDict[str, Path] = OrderedDict()
        self._places: OrderedDict[str, dict[tuple[str, int], Place]] = OrderedDict()
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)

    def has(self, submission_id: str) -> bool:
        """Whether a model is on the boards, with its pictures."""
        entry = self._reader.track().entries.get(submission_id)
        return entry is not None and entry.pictures > 0

    def __call__(self, submission_id: str, image: str) -> bytes | None:
        """A picture; None where there is none that may be shown."""
        entry = self._reader.track().entries.get(submission_id)
        prompt_id, _, seed = image.rpartition("/")
        if entry is None or not (seed.isascii() and seed.isdecimal() and len(seed) <= 20):
            return None
        with self._lock:
            place = self._places_of(entry).get((prompt_id, int(seed)))
            if place is None:
                return None
            number, group = place
            rows = pq.ParquetFile(self._file(entry, number)).read_row_group(group).to_pylist()
        wanted = (prompt_id, int(seed))
        return next((r["webp"] for r in rows if (r["prompt_id"], r["seed"]) == wanted), None)

    def _places_of(self, entry: ModelEntry) -> dict[tuple[str, int], Place]:
        """Where each picture of a model is; looked up once."""
        name = entry.submission_id
        if name not in self._places:
            # Pictures are in the order of the table of images, which is far smaller than they are.
            try:
                drawn = drawn_images(self._public.read(images_path(name, entry.prompt_set)))
            except NotFoundError as error:
                log.warning("The table of images of %s is missing: %s", name, error)
                raise FileNotFoundError(name) from error
            self._places[name] = {
                key: (row // PER_FILE, row % PER_FILE // ROW_GROUP) for row, key in enumerate(drawn)
            }
            while len(self._places) > MOST_FILES:
                self._places.popitem(last=False)
        self._places.move_to_end(name)
        return self._places[name]

    def _file(self, entry: ModelEntry, number: int) -> Path:
        """A file of pictures on this machine; what was not wanted longest makes way."""
        path = pictures_path(entry.submission_id, entry.prompt_set, number)
        if path not in self._files:
            target = self._folder / f"{entry.submission_id}-{number}.parquet"
            target.unlink(missing_ok=True)
            try:
                self._public.fetch(path, target)
            except NotFoundError as error:
                log.warning("Pictures of %s are missing: %s", entry.submission_id, error)
                raise FileNotFoundError(path) from error
            self._files[path] = target
            while len(self._files) > MOST_FILES:
                self._files.popitem(last=False)[1].unlink(missing_ok=True)
        self._files.move_to_end(path)
        return self._files[path]

"""Pictures as files, for metrics that open paths: each distinct picture is written once."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from PIL import Image


class PictureFiles:
    """A folder of PNG files that is there as long as this is entered.

    A file is named by its pixels: a metric that keeps something under the name of a file finds
    the right thing when the picture comes again.
    """

    def __init__(self) -> None:
        self._folder = Path()

    def __enter__(self) -> PictureFiles:
        self._folder = Path(tempfile.mkdtemp(prefix="pictures-"))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def paths(self, images: Sequence[Image.Image]) -> list[str]:
        """One path per picture, in their order."""
        known = {key: self._path(one) for key, one in {id(im): im for im in images}.items()}
        return [known[id(image)] for image in images]

    def _path(self, image: Image.Image) -> str:
        pixels = hashlib.sha256(f"{image.mode} {image.size}".encode() + image.tobytes())
        path = self._folder / f"{pixels.hexdigest()[:24]}.png"
        if not path.exists():
            image.save(path, compress_level=1)
        return str(path)

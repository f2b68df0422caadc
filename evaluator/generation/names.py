"""Names of files that no prompt can influence: as a prompt set's export gives them."""

from __future__ import annotations

from benchmarks.prompt_sets.image_names import IMAGES, image_file

__all__ = ["IMAGES", "image_file"]

"""Names of files that no prompt can influence."""

from __future__ import annotations

import hashlib
import re

IMAGES = "images"
_UNSAFE = re.compile(r"[^a-z0-9]+")
_SLUG = 40
_DIGEST = 10


def image_file(prompt_id: str, seed: int) -> str:
    """Path of an image inside its folder: `images/counting-7-1f0c9a3b2d_s42.png`.

    A readable part of the id, the beginning of the SHA-256 of the whole id (ids that differ only
    in letters that are left out, or in their case, keep apart on every file system), and the seed.
    """
    slug = _UNSAFE.sub("-", prompt_id.lower()).strip("-")[:_SLUG].strip("-") or "prompt"
    digest = hashlib.sha256(prompt_id.encode()).hexdigest()[:_DIGEST]
    return f"{IMAGES}/{slug}-{digest}_s{seed}.png"

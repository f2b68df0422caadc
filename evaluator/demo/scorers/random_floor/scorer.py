"""Random floor: a number from a hash of the picture and the sentence."""

from __future__ import annotations

import hashlib

from PIL import Image


class Scorer:
    """The same number for the same pair, and no relation to anything that is seen or said."""

    def score(self, images: list[Image.Image], prompts: list[str]) -> list[float]:
        """One number per pair, evenly spread over 0..1."""
        pictures = {id(image): image for image in images}
        digests = {key: _digest(image) for key, image in pictures.items()}
        return [
            _fraction(digests[id(image)], prompt)
            for image, prompt in zip(images, prompts, strict=True)
        ]


def _digest(image: Image.Image) -> bytes:
    pixels = image.convert("RGB")
    size = f"{pixels.width}x{pixels.height}:".encode()
    return hashlib.blake2b(size + pixels.tobytes(), digest_size=32).digest()


def _fraction(picture: bytes, prompt: str) -> float:
    digest = hashlib.blake2b(picture + prompt.encode(), digest_size=8).digest()
    return (int.from_bytes(digest, "big") >> 11) / (1 << 53)

"""Inputs of a vision-language model (VLM) from an image and a prompt."""

from __future__ import annotations

from typing import Literal

from PIL import Image

from evaluator.scorers.row import Frozen

CLIP_MEAN_COLOUR = (122, 116, 104)
"""CLIP's channel means (0.48145466, 0.4578275, 0.40821073) in 0..255, cut to whole numbers."""


class Reading(Frozen):
    """What of a metric's definition lies outside its question."""

    text_format: str = ""
    """The whole input with `{image}` and `{prompt}` in it, the image first; empty: the chat
    template of the checkpoint. Without `{image}` the checkpoint's processor places the image."""
    system: str = ""
    """System message of the chat template; empty: none is given."""
    answer_space: bool = False
    """Whether answers are read with a space before them, as a word within a sentence."""
    square: Literal["none", "pad", "squash"] = "none"
    """How images are made square ahead of the checkpoint's own processing: `pad` adds CLIP's mean
    colour around the centre, `squash` resizes to `side` and drops the aspect ratio (Lanczos)."""
    side: int = 0
    """Pixels, for `squash`."""
    backend: Literal["pil", "torchvision"] = "pil"
    """Of the image processor; they differ by up to one of 255 levels."""

    def shown(self, image: Image.Image) -> Image.Image:
        """The image as the checkpoint's processor is given it."""
        if self.square == "pad":
            return padded_square(image)
        if self.square == "squash":
            return image.resize((self.side, self.side), Image.Resampling.LANCZOS)
        return image

    def written(self, image_token: str, prompt: str) -> str:
        """`text_format` with its two places filled; braces in the prompt mean nothing."""
        before, _, after = self.text_format.partition("{prompt}")
        return (
            before.replace("{image}", image_token) + prompt + after.replace("{image}", image_token)
        )


def padded_square(
    image: Image.Image, colour: tuple[int, int, int] = CLIP_MEAN_COLOUR
) -> Image.Image:
    """The image in the centre of a square as wide as its longer side."""
    side = max(image.size)
    if image.size == (side, side):
        return image
    square = Image.new("RGB", (side, side), colour)
    square.paste(image, ((side - image.width) // 2, (side - image.height) // 2))
    return square

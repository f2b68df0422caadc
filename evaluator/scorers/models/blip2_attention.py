"""Lets the Q-Former of BLIP-2 compute the keys and values of an image once for all its texts.

Keys and values of the cross-attention depend on the image alone. `transformers` computes them for
every row of a batch, for it wants one image per row; the attention below takes fewer images than
rows and gives each row those of its own image. Sums run in the same order: the numbers are equal.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

NAME = "sdpa_shared_images"


def shared_images_attention(  # noqa: PLR0917 (the library calls it by position)
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    image_of_row: Tensor | None = None,
    **more: Any,
) -> tuple[Tensor, None]:
    """Scaled dot-product attention of r rows to n <= r images.

    Args:
        module: the attention layer.
        query: shape (r, heads, tokens, d).
        key: shape (r, heads, keys, d), or (n, heads, keys, d) where rows share images.
        value: as `key`.
        attention_mask: what may be attended to; None: everything.
        image_of_row: for each row its image, in ascending order from 0 to n - 1, shape (r,).
        more: scaling, dropout and the like.

    Returns:
        Shape (r, tokens, heads, d), and None in place of weights.
    """
    if image_of_row is not None and key.shape[0] != query.shape[0]:
        key, value = key[image_of_row], value[image_of_row]
    return sdpa_attention_forward(module, query, key, value, attention_mask, **more)


def share_images(qformer: Any) -> None:
    """Make a Q-Former take `image_of_row` and fewer images than rows."""
    AttentionInterface.register(NAME, shared_images_attention)
    AttentionMaskInterface.register(NAME, sdpa_mask)
    qformer.config._attn_implementation = NAME

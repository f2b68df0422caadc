"""FGA-BLIP2 in training: BLIP-2's matching head at queries and tokens, a mask from the text, and losses.

The loss is exp(variance) x (overall + 0.1 elements + 0.1 mask), all absolute errors.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, Self

import torch
from torch import Tensor, nn

_ELEMENTS = _MASK = 0.1


@dataclass(frozen=True)
class Outputs:
    """What the network says of n images with their prompts."""

    overall: Tensor  # 1 + 4 x mean over queries of p(match), shape (n,)
    tokens: Tensor  # p(match) at the places of the prompt, shape (n, places)
    mask: Tensor  # how likely a place belongs to an element, from the text alone, shape (n, places)


@dataclass(frozen=True)
class Targets:
    """What people say of them; see `fga.targets`."""

    rating: Tensor  # 1..5, shape (n,)
    scores: Tensor  # shape (n, places)
    mask: Tensor  # shape (n, places)
    weight: Tensor  # shape (n,)


def fga_losses(said: Outputs, wanted: Targets, *, by_elements: bool = False) -> dict[str, Tensor]:
    """`total`, and its unweighted terms `overall`, `elements` and `mask`; means over the images.

    `by_elements`: the term of elements is a mean over their tokens, not over all places: 32 places
    make it weak.
    """
    overall = (said.overall - wanted.rating).abs()
    places = wanted.mask.sum(dim=1) if by_elements else wanted.mask.shape[1]
    elements = (said.tokens * wanted.mask - wanted.scores).abs().sum(dim=1) / places
    mask = (said.mask - wanted.mask).abs().mean(dim=1)
    total = wanted.weight * (overall + _ELEMENTS * elements + _MASK * mask)
    return {
        "total": total.mean(),
        "overall": overall.mean(),
        "elements": elements.mean(),
        "mask": mask.mean(),
    }


Start = Literal["default", "released"]
_WIDTHS = (256, 128, 64, 16, 1)


class MaskHead(nn.Module):
    """Five layers that say of a token's text features whether it belongs to an element.

    `start`: how weights are drawn: `default` of the library, or `released`: with standard deviation
    1 / (width + 1) in all layers and no biases, from which the authors' head does not learn.
    """

    def __init__(self, width: int, start: Start = "default") -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for before, after in pairwise((width, *_WIDTHS)):
            layers += [nn.Linear(before, after), nn.ReLU()]
        self.layers = nn.Sequential(*layers[:-1])
        if start == "released":
            for layer in self.layers:
                if isinstance(layer, nn.Linear):
                    nn.init.normal_(layer.weight, std=1 / (width + 1))
                    nn.init.zeros_(layer.bias)

    def forward(self, features: Tensor) -> Tensor:
        """Probabilities, shape (n, tokens), of features of shape (n, tokens, width)."""
        found: Tensor = torch.sigmoid(self.layers(features)).squeeze(-1)
        return found


class FgaNetwork(nn.Module):
    """`Blip2ForImageTextRetrieval` with a mask head; the vision tower is frozen.

    `vision_norm`: whether the norm behind the vision tower is trained, as in the authors' code.
    """

    def __init__(self, blip2: Any, start: Start = "default", *, vision_norm: bool = False) -> None:
        super().__init__()
        self.blip2 = blip2
        self.mask_head = MaskHead(blip2.config.qformer_config.hidden_size, start)
        unused = (blip2.vision_projection, blip2.text_projection)  # of the contrast
        for part in (blip2.vision_model, *unused):
            part.requires_grad_(False)
        blip2.vision_model.post_layernorm.requires_grad_(vision_norm)

    def train(self, mode: bool = True) -> Self:
        """As of any module; the vision tower stays in evaluation."""
        super().train(mode)
        self.blip2.vision_model.eval()
        return self

    def forward(self, pixels: Tensor, ids: Tensor, attention: Tensor) -> Outputs:
        """Scores and mask of images with their prompts.

        `pixels`: shape (n, 3, height, width); `ids` and `attention` (1 for tokens, 0 for padding):
        shape (n, places).
        """
        blip2 = self.blip2
        seen = blip2.vision_model(pixel_values=pixels).last_hidden_state
        queries = blip2.query_tokens.expand(len(ids), -1, -1)
        n_queries = queries.shape[1]
        both = blip2.qformer(
            query_embeds=blip2.embeddings(input_ids=ids, query_embeds=queries),
            query_length=n_queries,
            attention_mask=torch.cat([attention.new_ones(queries.shape[:2]), attention], dim=1),
            encoder_hidden_states=seen,
        ).last_hidden_state
        match = blip2.itm_head(both).softmax(dim=2)[..., 1]
        text = blip2.qformer(
            query_embeds=blip2.embeddings(input_ids=ids),
            query_length=0,
            attention_mask=attention,
        ).last_hidden_state
        overall = 1 + 4 * match[:, :n_queries].mean(dim=1)
        return Outputs(overall, match[:, n_queries:], self.mask_head(text))

"""The answer side of EvalMuse-40K and of any benchmark with its structure."""

from __future__ import annotations

from dataclasses import dataclass, field

import pandas as pd

from benchmarks.evalmuse.element_keys import UNREPORTED_SKILL
from benchmarks.schema import Answers


@dataclass(frozen=True)
class EvalMuseAnswers(Answers):
    """Averaged human labels. The clusters are the prompts.

    Attributes:
        images: one row per image, in the benchmark's order: `pair_id` (str), `prompt_id` (str,
            a cluster id), `prompt` (str), `split` (`real` or `synth`, empty where that is not
            known), `label` (float, mean overall rating 1..5). Released lists add columns that no
            measure reads: `var` (float, sample variance of the labels of all images of the same
            prompt text, NaN for a single image), the averaged flags `split_confidence`,
            `attribute_confidence` and `promt_meaningless` (float in 0..1, NaN where not given)
            and `fidelity_label` (str).
        elements: one row per (image, element): `pair_id`, `element_id` (str), `skill` (str,
            normalised element type such as `counting`), `label` (float in 0..1, mean of the
            annotators' 0/1 labels).
        labelled: how many images the released list holds, of which these are the held-out part;
            0 where there is no such list.
    """

    images: pd.DataFrame
    elements: pd.DataFrame
    labelled: int = field(default=0, kw_only=True)

    def counts(self) -> dict[str, int]:
        """Images, prompts and elements, in all, by split and by skill."""
        found = {
            "images": len(self.images),
            "prompts": len(self.clusters),
            "elements": len(self.elements),
            "images without elements": len(
                set(self.images["pair_id"]) - set(self.elements["pair_id"])
            ),
        }
        if self.labelled:
            found["labelled images"] = self.labelled
        for split in sorted(set(self.images["split"]) - {""}):
            members = self.images.loc[self.images["split"] == split, "prompt_id"]
            found[f"{split}: images"] = len(members)
            found[f"{split}: prompts"] = members.nunique()
        sizes = self.elements["skill"].value_counts()
        for skill in sorted(set(sizes.index) - {UNREPORTED_SKILL}):
            found[f"{skill}: elements"] = int(sizes[skill])
        return found

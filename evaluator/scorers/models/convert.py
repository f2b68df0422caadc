"""Makes a safetensors file of a checkpoint that its authors publish as a pickle.

    python -m evaluator.scorers.models.convert fga-blip2 fga_blip2.pth fga_blip2.safetensors

Names and numbers stay as they are; weights that take no part in a score are left out. The pickle
is read by torch's restricted reader, which loads tensors and plain values and runs no code.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from safetensors.torch import save_file

from benchmarks.errors import AssayError, SubmitterError
from evaluator.scorers.checkpoints import Source
from evaluator.scorers.families import image_reward
from evaluator.scorers.loading import read_weights
from evaluator.scorers.models import blip
from evaluator.scorers.models.blip import Renaming
from evaluator.scorers.registry import Runtime


def layouts() -> dict[str, Renaming]:
    """Known layouts by the name of the metric."""
    rewards = dict.fromkeys(("imagereward", "cyclereward"), image_reward.RENAMING)
    return {"fga-blip2": blip.RENAMING, **rewards}


def convert(metric: str, checkpoint: Path, target: Path) -> list[str]:
    """Write the weights that a metric needs as safetensors."""
    if target.suffix != ".safetensors":
        raise SubmitterError("bad_target", f"{target} does not end in .safetensors.")
    source = Source(checkpoint, str(checkpoint), "")
    state = read_weights(source, Runtime(allow_pickle=True))
    layout = layouts()[metric]
    layout.renamed(state)
    used = layout.used(state)
    # A tensor that shares its memory with another cannot be written.
    save_file({name: value.clone().contiguous() for name, value in used.items()}, target)
    return sorted(state.keys() - used.keys())


def main() -> int:
    """Convert one file."""
    parser = argparse.ArgumentParser(description="A safetensors file from an authors' checkpoint")
    parser.add_argument("metric", choices=sorted(layouts()))
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("target", type=Path)
    options = parser.parse_args()
    try:
        left_out = convert(options.metric, options.checkpoint, options.target)
    except AssayError as error:
        print(error, file=sys.stderr)  # noqa: T201
        return error.exit_code
    print(f"{options.target} written; {len(left_out)} weights left out.")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())

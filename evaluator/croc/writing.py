"""Writing of prompt pairs: what a run will ask and cost, and the run itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from benchmarks.errors import SubmitterError
from evaluator.croc.folder import CrocFolder, KeptReply, WritingRun, nothing_written
from evaluator.croc.instructions import instruction_for
from evaluator.croc.replies import WrittenPair, bounded, encodable, read_pair
from evaluator.croc.requests import PairRequest
from evaluator.scorers.endpoints import EndpointModel
from evaluator.scorers.models.sampling import Sampling, SamplingModel
from evaluator.scoring.progress import Listener, Tracker

BATCH = 32
"""Completions that are asked for together, and kept together."""
_HOPELESS = 2
"""Batches at the start without any pair; then the model is not asked further."""
CHARACTERS_OF_A_TOKEN = 4
USUAL_REPLY = 400
"""Tokens of a reply, where none is known yet."""


@dataclass(frozen=True)
class WritingPlan:
    """What a run asks for."""

    requests: int
    completions: int
    there: int  # completions that an earlier run has
    read_tokens: int  # of what is left, about: a token is taken for four characters
    written_tokens: int  # likewise; a reply is as long as those so far, or else 400 tokens
    most_written_tokens: int  # if every reply is as long as it may be
    usd: float | None  # what is left costs, about; None where no prices are known
    most_usd: float | None  # if every reply is as long as it may be


def plan_of(
    requests: Sequence[PairRequest],
    run: WritingRun,
    guide: str,
    kept: Sequence[KeptReply],
    prices: EndpointModel | None,
) -> WritingPlan:
    """The plan of a run of which these replies are there."""
    total = len(requests) * run.completions
    left = total - len(kept)
    begun, rest = divmod(len(kept), run.completions)
    lengths = [len(instruction_for(one, guide, run.most_words)) for one in requests[begun:]]
    characters = sum(lengths) * run.completions - (rest * lengths[0] if lengths else 0)
    usual = USUAL_REPLY
    if kept:
        usual = sum(len(one.reply) for one in kept) // len(kept) // CHARACTERS_OF_A_TOKEN
    read = characters // CHARACTERS_OF_A_TOKEN
    written, most = left * min(usual, run.max_tokens), left * run.max_tokens
    usd, most_usd = (prices.usd(read, n) if prices else None for n in (written, most))
    return WritingPlan(len(requests), total, len(kept), read, written, most, usd, most_usd)


def write_pairs(
    requests: Sequence[PairRequest],
    run: WritingRun,
    model: SamplingModel,
    folder: CrocFolder,
    *,
    guide: str,
    listener: Listener | None = None,
) -> None:
    """Ask for what the folder lacks; each batch is on disk before the next is asked for.

    The seed of a completion follows from the run's and its number, so a run that was interrupted
    goes on to the same replies.

    Raises:
        SubmitterError: `nothing_written`: none of the first replies had a pair; `bad_croc_folder`:
            the replies there are not those of this run; `prompt_too_long`: no pair is there yet,
            and with a reply a request is longer than the model reads.
    """
    folder.drop_cut_line(run)
    wanted = [(request, number) for request in requests for number in range(run.completions)]
    kept = list(folder.replies(run))
    if [(one.prompt_id, one.number) for one in kept] != [
        (request.prompt_id, number) for request, number in wanted[: len(kept)]
    ]:
        raise SubmitterError(
            "bad_croc_folder",
            f"The replies of {run.key} in {folder.path} are not in the order of asking.",
            "Name a new folder.",
        )
    # Only the beginning tells that a model is hopeless.
    usable = Counter(_is_pair(one, run) for one in islice(kept, BATCH * _HOPELESS))[True]
    asked = (instruction_for(request, guide, run.most_words) for request in requests)
    if not usable and not all(model.fits(one, run.max_tokens) for one in asked):
        raise SubmitterError(
            "prompt_too_long",
            f"What {run.model} is asked and a reply of {run.max_tokens} tokens are together longer "
            "than it reads.",
            "Lower --max-tokens, or use a language model with a longer context.",
        )
    tracker = Tracker(len(wanted), listener, already_done=len(kept), stage="writing")
    how = Sampling(
        temperature=run.sampling["temperature"],
        top_p=run.sampling["top_p"],
        top_k=int(run.sampling["top_k"]),
        presence_penalty=run.sampling["presence_penalty"],
    )
    for start in range(len(kept), len(wanted), BATCH):
        batch = wanted[start : start + BATCH]
        sampled = model.sample(
            [instruction_for(request, guide, run.most_words) for request, _ in batch],
            [run.seed * run.completions + number for _, number in batch],
            run.max_tokens,
            how,
        )
        replies = [
            KeptReply.of(
                request,
                number=number,
                reply=bounded(one.text),
                cut=one.cut,
                refusal=encodable(one.refusal[:300]),
            )
            for (request, number), one in zip(batch, sampled, strict=True)
        ]
        folder.keep(run, replies)
        tracker.advance(len(batch))
        usable += sum(_is_pair(one, run) for one in replies)
        if not usable and start + len(batch) >= min(BATCH * _HOPELESS, len(wanted)):
            why = replies[0].refusal or str(read_pair(replies[0].reply, run.most_words))
            raise nothing_written(why)


def _is_pair(reply: KeptReply, run: WritingRun) -> bool:
    return isinstance(read_pair(reply.reply, run.most_words), WrittenPair)

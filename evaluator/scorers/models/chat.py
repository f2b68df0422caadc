"""Decoders that read an image and a text: answers' log-probabilities, and greedy answers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from safetensors.torch import load_file
from torch import Tensor, nn
from transformers import (
    AutoModelForCausalLM,
    AutoModelForImageTextToText,
    Phi4MultimodalConfig,
    Phi4MultimodalFeatureExtractor,
    Phi4MultimodalForCausalLM,
    Phi4MultimodalImageProcessor,
    Phi4MultimodalProcessor,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)

from benchmarks.errors import SubmitterError
from evaluator.scorers.answering import Candidate, WrittenReply
from evaluator.scorers.models.prefixes import (
    CachingDecoder,
    PromptPrefix,
    PromptPrefixes,
    Rest,
    Sharing,
)
from evaluator.scorers.models.vlm_inputs import ChatText, SeenImage, Setting

ROWS = 8  # Rests of prompts that run together; each holds a copy of its image's keys and values


class ChatVLM:
    """A decoder that reads an image before a text; follows `AnswerModel`.

    Probabilities come from a forward pass over the whole vocabulary, as log-softmax in float32,
    never from what generation reports: that contains the checkpoint's repetition penalty.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        text: ChatText,
        environment: dict[str, str],
        sharing: Sharing = "prefix",
        images_together: int = 1,
    ) -> None:
        self._model = model
        self._text = text
        self.environment = environment
        self._decoder = CachingDecoder(model, _pad_id(text.tokenizer))
        self._leads = PromptPrefixes(model, self._decoder, text, sharing, images_together)
        self._context = context_length(model)
        self._image_length = 0

    def prepare(self, *images: Image.Image) -> SeenImage:
        """The images of a prompt after the checkpoint's image processor, on the CPU."""
        seen = self._text.prepare(*images)
        self._image_length = max(self._image_length, seen.length)
        return seen

    def looks_ahead(self, image: SeenImage, prompt: str) -> bool:
        """Whether what a prompt says changes what is made of the image before it."""
        return self._leads.looks_ahead(image, prompt)

    def truncated(self, prompts: Sequence[str]) -> list[bool]:
        """Whether a prompt with the longest image so far exceeds the model's context.

        Nothing is cut: the model reads such a prompt beyond the length that it was made for.
        """
        room = self._context - self._image_length
        return [self._text.length(prompt) > room for prompt in prompts]

    def first_token(self, answer: str) -> int:
        """The token that an answer begins with."""
        return self._text.answers([Candidate(answer)])[0][0]

    def answer_logprobs(
        self,
        images: Sequence[SeenImage],
        prompts: Sequence[Sequence[str]],
        candidates: Sequence[Sequence[Sequence[Candidate]]],
    ) -> list[list[list[NDArray[np.float64]]]]:
        """See `AnswerModel`."""
        answers = [[self._text.answers(one) for one in its] for its in candidates]
        found: list[list[list[NDArray[np.float64]]]] = [[[] for _ in its] for its in prompts]
        for group in self._leads.groups(images, prompts):
            for lead, values in self._read(group, answers):
                found[lead.image][lead.prompt] = values
        return found

    def generate(
        self, images: Sequence[SeenImage], prompts: Sequence[Sequence[str]], max_new_tokens: int
    ) -> list[list[str]]:
        """See `AnswerModel` and `replies`."""
        found = self.replies(images, prompts, max_new_tokens)
        return [[reply.text for reply in its] for its in found]

    def replies(
        self, images: Sequence[SeenImage], prompts: Sequence[Sequence[str]], max_new_tokens: int
    ) -> list[list[WrittenReply]]:
        """Greedy replies, without repetition penalty, ended by the checkpoint's end tokens."""
        tokenizer = self._text.tokenizer
        stop = end_tokens(self._model, tokenizer)
        found = [[WrittenReply("", cut=False)] * len(its) for its in prompts]
        for group in self._leads.groups(images, prompts):
            for some in _chunks(group):
                rests = [lead.rest(()) for lead in some]
                written = self._decoder.write(some[0].cached, rests, stop, max_new_tokens)
                for lead, ids in zip(some, written, strict=True):
                    words = tokenizer.decode(ids, skip_special_tokens=True)
                    cut = len(ids) == max_new_tokens
                    found[lead.image][lead.prompt] = WrittenReply(words.strip(), cut)
        return found

    def _read(
        self, group: Sequence[PromptPrefix], answers: Sequence[Sequence[Sequence[Sequence[int]]]]
    ) -> Iterator[tuple[PromptPrefix, list[NDArray[np.float64]]]]:
        """Log-probabilities of the answers to each prompt of a group."""
        jobs = [(lead, stem) for lead in group for stem in stems(answers[lead.image][lead.prompt])]
        logprobs = [torch.log_softmax(logits, dim=-1) for logits in self._logits(jobs)]
        for lead in group:
            its = {
                stem: values
                for (owner, stem), values in zip(jobs, logprobs, strict=True)
                if owner is lead
            }
            yield lead, [along(answer, its) for answer in answers[lead.image][lead.prompt]]

    def _logits(self, jobs: Sequence[tuple[PromptPrefix, tuple[int, ...]]]) -> list[Tensor]:
        """Logits before the first token of each stem and after each of its tokens."""
        found: list[Tensor | None] = [None] * len(jobs)
        running: list[tuple[int, Rest]] = []
        for i, (lead, stem) in enumerate(jobs):
            rest = lead.rest(stem)
            if len(rest.ids):
                running.append((i, rest))
            else:
                found[i] = lead.first_logits
        for at in range(0, len(running), ROWS):
            part = running[at : at + ROWS]
            logits = self._decoder.go_on(jobs[0][0].cached, [rest for _, rest in part])
            for (i, _), its in zip(part, logits, strict=True):
                lead = jobs[i][0]
                found[i] = its if len(lead.ids) else torch.cat([lead.first_logits, its])
        return [one for one in found if one is not None]


def stems(answers: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
    """What has to be read for all answers: each without its last token, the longest ones only."""
    wanted = {tuple(answer[:-1]) for answer in answers}
    return sorted(
        stem
        for stem in wanted
        if not any(other != stem and other[: len(stem)] == stem for other in wanted)
    )


def end_tokens(model: PreTrainedModel, tokenizer: Any) -> set[int]:
    """Tokens that end an answer."""
    config: Any = getattr(model, "generation_config", None) or model.config
    ends = config.eos_token_id if config.eos_token_id is not None else tokenizer.eos_token_id
    return {ends} if isinstance(ends, int) else set(ends or ())


def context_length(model: PreTrainedModel) -> int:
    """Tokens that the language model was made for."""
    config = model.config.get_text_config()
    found: int = getattr(config, "max_position_embeddings", 0) or 2**31
    return found


def along(answer: Sequence[int], logprobs: dict[tuple[int, ...], Tensor]) -> NDArray[np.float64]:
    """Log-probability of each token of an answer, from a stem that begins with it."""
    before = tuple(answer[:-1])
    table = next(table for stem, table in logprobs.items() if stem[: len(before)] == before)
    values = table[torch.arange(len(answer)), torch.tensor(answer)]
    return values.double().cpu().numpy()


def _chunks(group: Sequence[PromptPrefix]) -> Iterator[list[PromptPrefix]]:
    """Leads that are run together: those that go on with tokens apart from those that do not."""
    for kind in (True, False):
        its = [lead for lead in group if bool(len(lead.ids)) is kind]
        yield from (its[at : at + ROWS] for at in range(0, len(its), ROWS))


def _pad_id(tokenizer: Any) -> int:
    """Any token that the embedding table holds; what it is is never seen."""
    return int(tokenizer.pad_token_id if tokenizer.pad_token_id is not None else 0)


IMAGE_TOKEN = "<|endoftext10|>"  # noqa: S105 - a token of a text
AUDIO_TOKEN = "<|endoftext11|>"  # noqa: S105
_BASE = "base_layer."
_LORA = re.compile(r"(?P<layer>.+)\.lora_(?P<half>[AB])\.(?P<adapter>\w+)\.weight")
_IMAGE = "model.embed_tokens_extend.image_embed."
_RENAMED = {
    f"{_IMAGE}img_projection.0.": f"{_IMAGE}img_projection_up.",
    f"{_IMAGE}img_projection.2.": f"{_IMAGE}img_projection_down.",
    f"{_IMAGE}glb_GN": f"{_IMAGE}global_img_feature_extensor",
    f"{_IMAGE}sub_GN": f"{_IMAGE}sub_img_feature_extensor",
}
_EAR = ".audio_embed."
_NOT_READ = (_EAR, ".position_ids")
"""Parts of names: the ear takes no part, and positions are counted, not learned."""
_SMALL_EAR = {
    "hidden_size": 16,
    "intermediate_size": 16,
    "num_blocks": 1,
    "num_attention_heads": 2,
    "ext_pw_out_channel": 16,
    "depthwise_separable_out_channel": 16,
    "nemo_conv_channels": 16,
}
"""The library's class cannot do without an ear; it is taken out again."""
_KEPT_SETTINGS = (
    "attention_dropout",
    "bos_token_id",
    "embd_pdrop",
    "eos_token_id",
    "hidden_act",
    "hidden_size",
    "initializer_range",
    "intermediate_size",
    "max_position_embeddings",
    "num_attention_heads",
    "num_hidden_layers",
    "num_key_value_heads",
    "original_max_position_embeddings",
    "pad_token_id",
    "partial_rotary_factor",
    "resid_pdrop",
    "rms_norm_eps",
    "rope_scaling",
    "rope_theta",
    "sliding_window",
    "tie_word_embeddings",
    "vocab_size",
)


def merged(
    weights: Mapping[str, Tensor], scale: float, adapter: str = "vision"
) -> dict[str, Tensor]:
    """Weights of the library's class: one LoRA added to the layers it belongs to, others dropped."""
    halves: dict[str, dict[str, Tensor]] = {}
    found: dict[str, Tensor] = {}
    for name, values in weights.items():
        part = _LORA.fullmatch(name)
        if part is None:
            if not any(unread in name for unread in _NOT_READ):
                found[native_name(name)] = values
        elif part["adapter"] == adapter and not any(unread in name for unread in _NOT_READ):
            halves.setdefault(native_name(f"{part['layer']}.weight"), {})[part["half"]] = values
    for name, half in halves.items():
        if set(half) != {"A", "B"} or name not in found:
            raise SubmitterError(
                "checkpoint_wrong_class", f"The {adapter} LoRA of {name} is not whole."
            )
        change = half["B"].float() @ half["A"].float()
        found[name] = (found[name].float() + scale * change).to(found[name].dtype)
    return found


def native_name(name: str) -> str:
    """The library's name of a weight that is not a LoRA's."""
    plain = name.replace(_BASE, "")
    for theirs, ours in _RENAMED.items():
        if plain.startswith(theirs):
            return ours + plain[len(theirs) :]
    return plain


def native_config(saved: Mapping[str, Any]) -> Phi4MultimodalConfig:
    """The library's configuration; the vision tower's shape is the same in all checkpoints."""
    vision: dict[str, Any] = dict(saved.get("vision_config", {}))
    layer = saved.get("embd_layer", {}).get("image_embd_layer", {})
    if "crop_size" in layer:
        vision.setdefault("crop_size", layer["crop_size"])
    kept = {name: saved[name] for name in _KEPT_SETTINGS if name in saved}
    made: Any = Phi4MultimodalConfig
    config: Phi4MultimodalConfig = made(**kept, vision_config=vision, audio_config=_SMALL_EAR)
    return config


def load_phi4(setting: Setting) -> tuple[PreTrainedModel, Phi4MultimodalProcessor]:
    """Model and processor of a `phi4mm` checkpoint, on the device."""
    saved = json.loads((setting.source.place / "config.json").read_bytes())
    lora = saved.get("vision_lora")
    if not lora:
        raise SubmitterError(
            "checkpoint_wrong_class", f"{setting.source}: config.json has no vision_lora."
        )
    shards = sorted(setting.source.place.glob("*.safetensors"))
    weights = {name: values for path in shards for name, values in load_file(path).items()}
    config = native_config(saved)
    kind: Any = Phi4MultimodalForCausalLM
    model, report = kind.from_pretrained(
        None,
        config=config,
        state_dict=merged(weights, lora["lora_alpha"] / lora["r"]),
        dtype=setting.torch_dtype,
        output_loading_info=True,
    )
    _check(report, setting)
    model.model.embed_tokens_extend.audio_embed = nn.Identity()
    placed: PreTrainedModel = model.to(setting.runtime.device).eval()
    return placed, _processor(setting)


def _check(report: Mapping[str, Any], setting: Setting) -> None:
    """Whether all weights were found that are read."""
    missing = [name for name in report["missing_keys"] if _EAR not in name]
    strange = [*missing, *report["unexpected_keys"], *report["mismatched_keys"]]
    if strange:
        raise SubmitterError(
            "checkpoint_wrong_class",
            f"{setting.source}: {len(strange)} weights do not fit, among them {strange[0]}.",
        )


def _processor(setting: Setting) -> Phi4MultimodalProcessor:
    """Up to 36 crops of 448 pixels and the whole image, as its authors' processor makes them."""
    named = {"image_token": IMAGE_TOKEN, "audio_token": AUDIO_TOKEN}
    tokenizer = setting.from_folder(PreTrainedTokenizerFast, extra_special_tokens=named)
    images = setting.from_folder(Phi4MultimodalImageProcessor)
    return Phi4MultimodalProcessor(images, Phi4MultimodalFeatureExtractor(), tokenizer)


TOLERANCE = {"float32": 1e-4, "bfloat16": 0.5, "float16": 0.1}
"""Largest change of a log-probability that is taken for rounding."""
IMAGES_TOGETHER = 4  # On an accelerator; one image already fills a CPU
_FAILURES = (TypeError, ValueError, RuntimeError, NotImplementedError, AttributeError, KeyError)
"""What a model raises that cannot be run in the way that is tried."""
_QUESTIONS = ("Is it red?", "Does this figure show a small dog beside two trees at night?")
_ANSWERS = (Candidate("Yes"), Candidate("No", with_end=True))
_CAUSAL_LM = ("phi4_multimodal",)  # Kinds that are registered as plain language models only


def load_chat_vlm(setting: Setting) -> ChatVLM:
    """A decoder from the checkpoint's folder."""
    return chat_vlm(*load_parts(setting), setting)


def load_parts(setting: Setting) -> tuple[PreTrainedModel, Any]:
    """Model, on its device, and processor from the checkpoint's folder."""
    if setting.kind == "phi4mm":
        return load_phi4(setting)
    if setting.kind in _CAUSAL_LM:
        return setting.pretrained(AutoModelForCausalLM, may_lack=_EAR), setting.processor()
    return setting.pretrained(AutoModelForImageTextToText), setting.processor()


def chat_vlm(model: PreTrainedModel, processor: Any, setting: Setting) -> ChatVLM:
    """A decoder in memory, sharing as much as leaves its answers alone.

    Whether a model's prompts may share is tried, not presumed: whether it looks ahead from the
    image to the prompt, and how two prompts to each of two images are answered without sharing.
    """
    text = ChatText(processor, setting.reading)
    together = IMAGES_TOGETHER if model.device.type == "cuda" else 1
    alone = ChatVLM(model, text, {}, "nothing")
    try:
        plain = _probed(alone)
        ahead = alone.looks_ahead(alone.prepare(_pictures()[0]), _QUESTIONS[1])
    except _FAILURES as error:
        raise SubmitterError(
            "checkpoint_wrong_class",
            f"{setting.source} does not answer a question to an image: {error}",
            "An image-text-to-text model of transformers, with its processor, is wanted.",
        ) from error
    said = ["prompts change what is made of the image"] if ahead else []
    for sharing, count in _sharings(together, ahead):
        change = _change(plain, ChatVLM(model, text, {}, sharing, count))
        if change <= TOLERANCE[setting.dtype]:
            environment = _environment(setting, text, sharing, count, said)
            return ChatVLM(model, text, environment, sharing, count)
        said.append(f"{sharing} of {count} not exact")
    environment = _environment(setting, text, "nothing", 1, said)
    return ChatVLM(model, text, environment, "nothing")


def _sharings(together: int, ahead: bool) -> list[tuple[Sharing, int]]:
    """What is tried, the most first."""
    batched: list[tuple[Sharing, int]] = [("prefix", together)] if together > 1 else []
    return [("vision", 1)] if ahead else [*batched, ("prefix", 1), ("vision", 1)]


def _change(plain: list[np.ndarray], vlm: ChatVLM) -> float:
    """Largest change of a log-probability; infinite where the model cannot be run that way."""
    try:
        found = _probed(vlm)
    except _FAILURES:
        return np.inf
    return max(float(np.abs(a - b).max()) for a, b in zip(plain, found, strict=True))


def _probed(vlm: ChatVLM) -> list[np.ndarray]:
    """Log-probabilities of answers to made-up questions to made-up images."""
    images = [vlm.prepare(one) for one in _pictures()]
    asked = [list(_QUESTIONS)] * len(images)
    answers = [[list(_ANSWERS)] * len(_QUESTIONS)] * len(images)
    found = vlm.answer_logprobs(images, asked, answers)
    return [values for of_image in found for of_prompt in of_image for values in of_prompt]


def _pictures() -> list[Image.Image]:
    """Noise, upright and wide."""
    rng = np.random.default_rng(0)
    shapes = [(96, 64, 3), (64, 128, 3)]
    return [Image.fromarray(rng.integers(0, 256, shape, dtype=np.uint8)) for shape in shapes]


def _environment(
    setting: Setting, text: ChatText, sharing: Sharing, count: int, said: list[str]
) -> dict[str, str]:
    shared = {"prefix": "image and text before it", "vision": "vision tower", "nothing": "nothing"}
    return setting.environment(
        template=text.template,
        image_processor=text.image_processor,
        shared_by_prompts=shared[sharing] + (f" ({', '.join(said)})" if said else ""),
        images_together=str(count),
    )

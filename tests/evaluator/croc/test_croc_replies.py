"""Replies of a language model: one prompt pair of each, or the reason why it is dropped."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from evaluator.croc.instructions import GUIDES, fields_of, guide_to, instruction_for, wording
from evaluator.croc.replies import LONGEST_KEPT, WrittenPair, bounded, last_object, read_pair
from evaluator.croc.requests import MODES, draw_requests
from evaluator.croc.taxonomy import EXAMPLE, read_taxonomy

GOOD = '{"prompt": "A red cup.", "contrast_prompt": "A blue cup."}'
PAIR = WrittenPair("A red cup.", "A blue cup.")


@pytest.mark.parametrize(
    ("reply", "found"),
    [
        (GOOD, PAIR),
        (f"<think>{{red}} or {{blue: {{x}}}}?</think> Here:\n```json\n{GOOD}\n```", PAIR),
        (f"Don't use {{ alone. {GOOD}", PAIR),
        (f'{{"prompt": "no", "contrast_prompt": "never"}} or better {GOOD}', PAIR),
        ("{'prompt': 'A red cup.', 'contrast_prompt': 'A blue cup.'}", PAIR),
        ('{"prompt": "A red\ncup.", "contrast_prompt": "A  blue cup. "}', PAIR),
        ('{"prompt": "A } sign.", "contrast_prompt": "A { sign."}', WrittenPair("A } sign.", "A { sign.")),
        ('{"prompt": "A “red” cup.", "contrast_prompt": "A cup."}', WrittenPair("A “red” cup.", "A cup.")),
        ('{"prompt": "A \\"red\\" cup.", "contrast_prompt": "A cup."}', WrittenPair('A "red" cup.', "A cup.")),
        ('{"varied_definition": "Odd.", ' + GOOD[1:], WrittenPair("A red cup.", "A blue cup.", "Odd.")),
        ('{"varied_definition": 3, ' + GOOD[1:], PAIR),
        ('{"prompt": "A red cup." "contrast_prompt": "A blue cup."}', "unreadable"),
        ("{“prompt”: “A red cup.”, “contrast_prompt”: “A blue cup.”}", "unreadable"),
        ('{"prompt": "A "red" cup.", "contrast_prompt": "A cup."}', "unreadable"),
        ('{"prompt": null, "contrast_prompt": "A cup."}', "not_text"),
        ('{"prompt": ["A red cup."], "contrast_prompt": ["A blue cup."]}', "not_text"),
        ('{"prompt": "A red cup."}', "not_text"),
        ('{"prompt": "a", "prompt": "b", "contrast_prompt": "c"}', "unreadable"),
        ("{'A red cup.', 'A blue cup.'}", "unreadable"),
        ("{[1]: 2}", "unreadable"),
        ('{"prompt": " ", "contrast_prompt": "A cup."}', "blank"),
        ('{"prompt": "A red cup.", "contrast_prompt": "a RED  cup."}', "same"),
        (r'{"prompt": "a caf\u00e9", "contrast_prompt": "a cafe\u0301"}', "same"),
        (r'{"prompt": "a cat", "contrast_prompt": "a\u200b cat"}', "same"),
        (r'{"prompt": "\u200b", "contrast_prompt": "a cat"}', "blank"),
        ('{"prompt": "A red cup on a table.", "contrast_prompt": "A cup."}', "too_long"),
        ('{"prompt": "红色的杯子在桌上", "contrast_prompt": "杯子"}', "too_long"),
        ('{"prompt": "A \\ud83d cup.", "contrast_prompt": "A cup."}', "unreadable"),
        ("{'prompt': 'A \ud83d cup.', 'contrast_prompt': 'A cup.'}", "unreadable"),
        ('{"prompt": "A \\ud83d\\ude00.", "contrast_prompt": "A cup."}', WrittenPair("A 😀.", "A cup.")),
        ('{"varied_definition": "\\ud83d", ' + GOOD[1:], PAIR),
        ("I cannot help with that.", "no_object"),
        (GOOD[:-1], "no_object"),
        ("", "no_object"),
    ],
)  # fmt: skip
def test_the_last_whole_object_is_the_pair_or_has_a_reason(
    reply: str, found: WrittenPair | str
) -> None:
    assert read_pair(reply, most_words=5) == found


def test_what_was_cut_is_told_where_there_is_no_object() -> None:
    assert read_pair(GOOD[:20], 30, cut=True) == "cut"
    assert read_pair(f"As for {{this}}: {GOOD[:20]}", 30, cut=True) == "cut"
    assert read_pair('{"prompt": "a", "contrast_prompt": "A"}', 30, cut=True) == "same"
    assert read_pair(f"{GOOD} And then", 30, cut=True) == PAIR


@pytest.mark.parametrize(
    "nonsense", ["{" * 40_000, '{"' * 20_000, "{}" * 20_000, "{'" * 20_000 + "}"]
)
def test_nonsense_is_read_in_no_time(nonsense: str) -> None:
    start = time.process_time()
    assert not isinstance(read_pair(nonsense, 30), WrittenPair)
    assert time.process_time() - start < 10


def test_of_a_long_reply_the_end_is_kept() -> None:
    kept = bounded("x" * LONGEST_KEPT + GOOD)
    assert len(kept) < LONGEST_KEPT + 100 and read_pair(kept, 30) == PAIR
    assert bounded(GOOD) == GOOD
    assert bounded("\ud83d") == "?" and bounded("\ud83d" + "x" * LONGEST_KEPT).endswith("x")
    assert last_object("}{") is None


def test_an_instruction_has_the_definitions_the_guide_and_the_fields() -> None:
    taxonomy = read_taxonomy(EXAMPLE)
    seen = set()
    for request in draw_requests(taxonomy, MODES):
        told = instruction_for(request, "The guide.", 17)
        named: list[Any] = [request.subject, request.varied, request.alt_subject, request.entity]
        for one in filter(None, named):
            assert one.name in told and one.definition in told
        assert "The guide." in told and "17 words" in told
        assert f'{{"{fields_of(request.mode)[0]}": "..."' in told
        assert json.loads(last_object(told) or "").keys() == set(fields_of(request.mode))
        seen.add(request.mode)
    assert seen == set(MODES)


def test_each_image_model_has_a_guide_and_the_wording_tells_them_apart() -> None:
    guides = [guide_to(name, GUIDES) for name in ("flux", "sd", "kandinsky", "pixart")]
    assert len(set(guides)) == 3 and guides[2] == guides[3]
    assert len({wording(guide) for guide in guides}) == 3

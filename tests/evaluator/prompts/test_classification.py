"""Labels of prompts by a language model: read strictly, asked for again, kept and gone on with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evaluator.prompts.classification import (
    Categories,
    classify,
    labels_of,
    read_dimensions,
    read_labels,
)
from evaluator.prompts.pool import read_pool
from tests.evaluator.scorers.common import refusal
from tests.evaluator.scorers.questions.fakes import CannedText

KINDS = (
    Categories(name="subject", asks="what it is about", categories=("People", "Food & Beverage")),
    Categories(name="style", asks="how it is made", categories=("Genre", "Material")),
)
GOOD = "subject: People\nstyle: none"


@pytest.mark.parametrize(
    ("reply", "labels"),
    [
        (GOOD, {"subject": ["People"], "style": []}),
        ("Subject: people; FOOD & beverage; People.\n\nSTYLE : Genre", {"subject": ["People", "Food & Beverage"], "style": ["Genre"]}),
        ("style: None.\nsubject: none", {"subject": [], "style": []}),
        ("subject: People;\nstyle: Genre.", {"subject": ["People"], "style": ["Genre"]}),
    ],
)  # fmt: skip
def test_a_reply_has_a_line_for_each_dimension(reply: str, labels: dict[str, list[str]]) -> None:
    assert read_labels(reply, KINDS) == (labels, [])


@pytest.mark.parametrize(
    ("reply", "fault"),
    [
        ("", "subject is missing"),
        ("subject: People", "style is missing"),
        (f"Sure!\n{GOOD}", "form asked for"),
        (f"{GOOD}\nmood: dark", "form asked for"),
        (f"{GOOD}\nstyle: Genre", "twice"),
        ("subject: Persons\nstyle: none", "no category 'Persons'"),
        ("subject: People, Food & Beverage\nstyle: none", "no category"),
        ("subject: none; People\nstyle: none", "no category 'none'"),
        ("subject:\nstyle: none", "no category ''"),
        ("subject: ;\nstyle: none", "no category ''"),
        ('{"subject": ["People"], "style": []}', "form asked for"),
    ],
)
def test_a_reply_that_is_not_of_the_form_is_told(reply: str, fault: str) -> None:
    _, faults = read_labels(reply, KINDS)
    assert any(fault in one for one in faults)


def test_a_prompt_is_asked_about_at_most_thrice_and_told_what_was_wrong() -> None:
    model = CannedText(GOOD, "nonsense", "subject: x\nstyle: none", "subject: y\nstyle: none")
    first, second = labels_of(["a man", "a cake"], KINDS, model)
    assert first == {"subject": ["People"], "style": []}
    assert isinstance(second, str) and "'y'" in second
    assert ["nonsense" in told for told in model.told] == [False, False, True, False]
    assert "no category 'x'" in model.told[3]
    assert all(
        ("a man" in told, "a cake" in told) == (n == 0, n > 0) for n, told in enumerate(model.told)
    )


def test_what_is_labelled_is_kept_and_the_rest_asked_about_by_the_next_run(tmp_path: Path) -> None:
    out, prompts = tmp_path / "labels.jsonl", {f"p{n}": f"text {n}" for n in range(20)}
    bad = ["?"] * 2
    told = classify(prompts, KINDS, CannedText(*[GOOD] * 15, *bad, *[GOOD] * 4), out, by="m")
    assert (told.written, told.kept, set(told.failed)) == (19, 0, {"p15"})
    with out.open("ab") as file:
        file.write(b'{"prompt_id": "p')  # A run that was killed while it wrote.
    model = CannedText("subject: Food & Beverage\nstyle: Genre")
    told = classify(prompts, KINDS, model, out, by="m")
    assert (told.written, told.kept, told.failed, len(model.told)) == (1, 19, {}, 1)
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert {line["prompt_id"]: line["prompt"] for line in lines} == prompts
    assert {line["labelled_by"].partition(",")[0] for line in lines} == {"m"}
    pool = read_pool(out, ("subject", "style"))
    assert [one.labels.sum() for one in pool.dimensions] == [20, 1]


def test_lines_of_prompts_that_changed_are_taken_out_and_those_of_others_kept(
    tmp_path: Path,
) -> None:
    out = tmp_path / "labels.jsonl"
    classify({"p": "text", "q": "more", "r": "gone"}, KINDS, CannedText(*[GOOD] * 3), out, by="m")
    told = classify({"p": "text", "q": "less"}, KINDS, CannedText(GOOD), out, by="m")
    assert (told.written, told.kept, told.changed) == (1, 1, 1)
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(line["prompt_id"], line["prompt"]) for line in lines] == [
        ("p", "text"), ("q", "less"), ("r", "gone"),
    ]  # fmt: skip


def test_labels_stand_in_the_order_of_the_prompts_whenever_they_were_made(tmp_path: Path) -> None:
    out, prompts = tmp_path / "labels.jsonl", {"p": "text", "q": "more", "r": "last"}
    first = classify(prompts, KINDS, CannedText(GOOD, "", GOOD), out, by="m")
    assert set(first.failed) == {"q"}
    classify(prompts, KINDS, CannedText(GOOD), out, by="m")
    assert [json.loads(line)["prompt_id"] for line in out.read_text().splitlines()] == [*prompts]


OTHER_WORDS = (Categories(name="subject", asks="x", categories=("Persons", "Food")), KINDS[1])


def test_a_file_of_something_else_is_left_alone(tmp_path: Path) -> None:
    out, prompts = tmp_path / "labels.jsonl", {"p": "text"}
    classify(prompts, KINDS, CannedText(GOOD), out, by="m")
    before = out.read_bytes()
    for kinds, by in ((KINDS, "another"), (KINDS[:1], "m"), (OTHER_WORDS, "m")):
        with refusal("other_labels", "labels.jsonl, line 1"):
            classify(prompts, kinds, CannedText(GOOD), out, by=by)
    assert out.read_bytes() == before
    for content, code in (
        (b"[1]\n", "bad_labels"),
        (b'{"a": 1}', "bad_labels"),
        (b'{"a": 1}\n{', "other_labels"),
    ):
        out.write_bytes(content)
        with refusal(code):
            classify(prompts, KINDS, CannedText(GOOD), out, by="m")
        assert out.read_bytes() == content


def test_a_model_that_labels_nothing_is_soon_left(tmp_path: Path) -> None:
    prompts = {f"p{n}": f"text {n}" for n in range(1000)}
    for reply, asked in (("", 48), ("no idea", 96)):
        model = CannedText(*[reply] * asked)
        with refusal("nothing_labelled"):
            classify(prompts, KINDS, model, tmp_path / "labels.jsonl", by="m")
        assert len(model.told) == asked, "an empty reply, and the same fault twice, are final"


def test_a_prompt_that_does_not_fit_has_no_labels_and_the_others_have(tmp_path: Path) -> None:
    prompts = {"p": "short", "q": "long " * 1000, "r": "brief"}
    told = classify(prompts, KINDS, CannedText(GOOD, GOOD), tmp_path / "l.jsonl", by="m")
    assert (told.written, set(told.failed)) == (2, {"q"})
    assert "too long" in told.failed["q"]


def test_dimensions_are_those_of_evalmuse_or_of_a_file(tmp_path: Path) -> None:
    assert {one.name: len(one.categories) for one in read_dimensions()} == {
        "subject": 13, "logic": 6, "style": 5,
    }  # fmt: skip
    file, whole = tmp_path / "d.toml", '[[dimension]]\nname = "mood"\nasks = "x"\ncategories = {}\n'
    file.write_text(whole.format('["calm", "wild"]'))
    assert read_dimensions(file)[0].categories == ("calm", "wild")
    for name in ("prompt", "prompt_id", "labelled_by", "Mood"):
        file.write_text(whole.replace("mood", name).format('["a", "b"]'))
        with refusal("bad_dimensions"):
            read_dimensions(file)
    file.write_text(whole.format('[" calm ", "wild"]'))
    assert read_dimensions(file)[0].categories == ("calm", "wild")
    for text in ("", "dimension = 3", *map(whole.format, ('["a"]', '["a", "A"]', '["a;b", "c"]', '["none", "x"]', '["a.", "b"]', '["", "b"]', '["a\\nb", "c"]')),
                 whole.format('["a", "b"]') * 2):  # fmt: skip
        file.write_text(text)
        with refusal("bad_dimensions", "d.toml"):
            read_dimensions(file)

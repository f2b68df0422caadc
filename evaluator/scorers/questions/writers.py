"""Writers of questions: what a language model is told, and how its lines are read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from graphlib import CycleError, TopologicalSorter
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from pydantic import ValidationError

from benchmarks.errors import SubmitterError
from benchmarks.evalmuse.load import ElementKey, parse_element_key
from evaluator.scorers.questions import instructions
from evaluator.scorers.questions.files import Question
from evaluator.scorers.questions.metric import (
    YES_NO,
    Entails,
    filled,
    literal_choice,
    same_answer,
    with_entailment,
    yes_or_no_in,
)

if TYPE_CHECKING:
    from evaluator.scorers.models.text_models import TextModel


@dataclass(frozen=True, slots=True)
class Written:
    """The questions of one prompt."""

    questions: tuple[Question, ...] = ()  # they pass the check of question files
    # what of the language model's text could not be used, one sentence each
    faults: tuple[str, ...] = ()
    none_because: str = ""  # the prompt is known to have no questions, and why


Write = Callable[[str], Written]
"""Writes the questions of one metric for a prompt."""
Phrases = Callable[[str], tuple[list[str], list[str]]]
"""Finds the phrases of a prompt, in its order, and tells what could not be used."""


def make_questions(
    prompt: str, fields: Iterable[dict[str, Any]]
) -> tuple[tuple[Question, ...], tuple[str, ...]]:
    """Questions of their fields; what cannot be one becomes a fault."""
    found: list[Question] = []
    faults: list[str] = []
    for values in fields:
        try:
            found.append(Question.model_validate({"prompt": prompt, **values}))
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            faults.append(f"question {values.get('question_id')}: {where}: {first['msg']}")
    return tuple(found), tuple(faults)


def yes_no_fields(number: str, question: str, element: str, kind: str = "") -> dict[str, Any]:
    """Fields of a question about an element that is answered by yes where the image fits."""
    return {
        "question_id": number,
        "question": question,
        "choices": ("yes", "no"),
        "expected": "yes",
        "element": element,
        "type": kind,
    }


def listed(text: str) -> tuple[str, ...]:
    """Choices from `a, b, c`, in order, each once."""
    parts = (part.strip().rstrip(".").strip() for part in text.split(","))
    return tuple(dict.fromkeys(part for part in parts if part))


def lines_of(text: str) -> list[str]:
    """The lines of a model's text that say something."""
    return [line.strip() for line in text.splitlines() if line.strip()]


_PART = re.compile(r"\{(\d+)\}\s*\[([^\[\]]*)\]")
_LINE = re.compile(
    r"\{(?P<number>\d+)\}\s*Q:\s*(?P<question>.*?)\s*Choices:\s*(?P<choices>.*?)\s*A:\s*(?P<answer>.*\S)"
)


@dataclass(frozen=True, slots=True)
class Coverage:
    """The parts of a prompt that a picture can show."""

    text: str  # the prompt with its parts marked
    parts: dict[str, str]  # number to words
    faults: tuple[str, ...] = ()  # one sentence each


@dataclass(frozen=True, slots=True)
class PartQuestion:
    """A question about one part; `row` is its line in the text, from 0."""

    row: int
    number: str
    question: str
    choices: tuple[str, ...]
    expected: str

    def fields(self, parts: Mapping[str, str]) -> dict[str, Any]:
        """Those of a question."""
        return {
            "question_id": self.number,
            "question": self.question,
            "choices": self.choices,
            "expected": self.expected,
            "element": parts[self.number],
        }


def parse_coverage(text: str, prompt: str) -> Coverage:
    """Read `A {1}[red colored] {2}[dog].`; the words must be the prompt's own, spaces aside."""
    parts: dict[str, str] = {}
    faults: list[str] = []
    for number, words in _PART.findall(text):
        if number in parts:
            faults.append(f"part {number} is marked twice")
        elif words.strip():
            parts[number] = words.strip()
    if not parts:
        faults.append("no part is marked")
    plain = _PART.sub(lambda part: part[2], text)
    if parts and _bare(plain) != _bare(prompt):
        faults.append(f"the marked text says {plain.strip()!r}, which is not the prompt")
    return Coverage(text.strip(), parts, tuple(faults))


def parse_questions(
    text: str, parts: dict[str, str]
) -> tuple[tuple[PartQuestion, ...], tuple[str, ...]]:
    """Read lines `{1} Q: ... Choices: a, b A: a`, one for each part; and what cannot be read."""
    found: dict[str, PartQuestion] = {}
    faults: list[str] = []
    for row, line in enumerate(text.splitlines()):
        if not line.strip():
            continue
        match = _LINE.match(line.strip())
        if match is None:
            faults.append(f"line {line.strip()!r} is not of the form asked for")
            continue
        choices = listed(match["choices"])
        expected = literal_choice(match["answer"], choices)
        if match["number"] not in parts:
            faults.append(f"there is no part {match['number']}")
        elif match["number"] in found:
            faults.append(f"part {match['number']} is asked about twice")
        elif expected is None or len(choices) < 2 or not match["question"]:
            faults.append(f"the answer to part {match['number']} is not one of several choices")
        else:
            found[match["number"]] = PartQuestion(
                row, match["number"], match["question"], choices, expected
            )
    faults += [f"part {number} has no question" for number in parts if number not in found]
    return tuple(found.values()), tuple(faults)


def _bare(text: str) -> str:
    return re.sub(r"\s", "", text)


_LIST_TOKENS = 1024
"""Of a list that a language model writes."""
_PER_PHRASE = 5
"""Most questions of VQ2 about one phrase."""
_NUMBERED = re.compile(r"(?P<number>\d+)\s*\|\s*(?P<content>.*\S)\s*$")
_STATEMENT = re.compile(r"(?P<kind>[^()]*?)\s*\((?P<words>.*)\)$")


def write_dsg(prompt: str, model: TextModel) -> Written:
    """DSG questions (Cho et al. 2024): three calls, two where no statement is found."""

    def call(instruction: str, **parts: str) -> str:
        return model.generate([filled(instruction, prompt=prompt, **parts)], _LIST_TOKENS)[0]

    tuples, faults = numbered(call(instructions.DSG_TUPLES), "statements")
    if not tuples:
        return Written(faults=(*faults, "no statements"))
    listed = "\n".join(f"{number} | {content}" for number, content in tuples.items())
    asked, bad = numbered(call(instructions.DSG_QUESTIONS, tuples=listed), "questions")
    needs, odd = numbered(call(instructions.DSG_DEPENDENCIES, tuples=listed), "dependencies")
    return assemble(prompt, tuples, asked, needs, (*faults, *bad, *odd))


def numbered(text: str, what: str) -> tuple[dict[str, str], tuple[str, ...]]:
    """Read lines `number | content`."""
    found: dict[str, str] = {}
    faults: list[str] = []
    for line in lines_of(text):
        match = _NUMBERED.match(line)
        if match is None:
            faults.append(f"{what}: line {line!r} is not of the form `number | text`")
        elif str(int(match["number"])) in found:
            faults.append(f"{what}: number {match['number']} stands there twice")
        else:
            found[str(int(match["number"]))] = match["content"]
    return found, tuple(faults)


def assemble(
    prompt: str,
    tuples: dict[str, str],
    asked: dict[str, str],
    needs: dict[str, str],
    faults: tuple[str, ...] = (),
) -> Written:
    """Put the three lists together.

    A statement without a question is left out. A dependency that is no number, or on a question
    that is not there, is left out; where questions depend on each other, all dependencies of the
    prompt are. Each is a fault.
    """
    said = list(faults)
    kept = [number for number in tuples if number in asked]
    said += [f"statement {number} has no question" for number in tuples if number not in asked]
    said += [f"question {number} has no statement" for number in asked if number not in tuples]
    parents = {number: _parents(number, needs.get(number), kept, said) for number in kept}
    try:
        TopologicalSorter(parents).prepare()
    except CycleError as error:
        said.append(f"questions depend on each other: {' > '.join(error.args[1])}")
        parents = dict.fromkeys(kept, ())
    questions, bad = make_questions(
        prompt,
        (
            {
                **yes_no_fields(number, asked[number], *_statement_parts(tuples[number])),
                "parents": parents[number],
            }
            for number in kept
        ),
    )
    return Written(questions, (*said, *bad))


def _parents(number: str, cell: str | None, kept: list[str], said: list[str]) -> tuple[str, ...]:
    if cell is None:
        said.append(f"question {number} has no line of dependencies")
        return ()
    found: dict[str, None] = {}
    for part in (part.strip() for part in cell.split(",")):
        if part in kept and part != number:
            found[part] = None
        elif part != "0":
            said.append(f"question {number} cannot depend on {part!r}")
    return tuple(found)


def _statement_parts(statement: str) -> tuple[str, str]:
    """Element and kind of `kind (element)`."""
    match = _STATEMENT.match(statement)
    return (match["words"].strip(), match["kind"].strip()) if match else (statement, "")


_PAIR = re.compile(r"Q:\s*(?P<q>.*\S)\s*\n\s*A:\s*(?P<answer>.*\S)", re.IGNORECASE)
TRIES = 3
"""How often a language model is asked for the same, each time told what was wrong before."""
_NEGATIONS = frozenset({
    "no", "not", "without", "never", "none", "nothing", "zero", "0", "empty", "nobody", "neither", "nor",
})  # fmt: skip
_DENIED = re.compile(r"n['’]t\b|\bcannot\b|less\b|\black(?:s|ing)?\b|\bmissing\b", re.IGNORECASE)
_FILLERS = frozenset({
    "a", "an", "the", "of", "in", "on", "at", "and", "with", "to", "its", "their", "is", "are",
})  # fmt: skip
_NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_IRREGULAR = {
    "men": "man", "women": "woman", "people": "person", "children": "child", "feet": "foot",
    "mice": "mouse", "geese": "goose", "teeth": "tooth", "knives": "knife", "leaves": "leaf",
    **{word: str(n) for n, word in enumerate(_NUMBERS)},
}  # fmt: skip
"""Words to what they are compared as."""
_STEM = 4
"""Letters by which forms of a word are taken for one."""
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
"""Letters of scripts that do not put spaces between words, or join particles to them."""
_ENDS = "?？؟"
_MOST_TOLD = 5
"""Faults of an answer that a model is told of."""


def write_evalmuse(
    prompt: str, model: TextModel, elements: Mapping[str, tuple[str, ...]] = MappingProxyType({})
) -> Written:
    """A yes/no question for each element, as PN-VQA asks them (Han et al. 2024).

    One call for the elements of a prompt that has none in `elements` (as `two cups (counting)`), and
    one for each of them; what cannot be used is asked for again. What is written must be of a known
    type and stand in the prompt; a question must be one, share a word with its element, and expect
    no only where something is denied.
    """
    known: Sequence[str] | None = elements.get(prompt)
    keys, faults = _split(prompt, model) if known is None else parse_elements(known)
    if not keys:
        return Written(faults=(*faults, "no elements"))
    fields, odd = _asked_about(prompt, keys, model)
    questions, bad = make_questions(prompt, fields)
    return Written(questions, (*faults, *odd, *bad))


def parse_elements(lines: Sequence[str]) -> tuple[list[ElementKey], list[str]]:
    """Read `two cups (counting)`, each element once, and what is not of that form."""
    found: dict[tuple[str, str], ElementKey] = {}
    faults: list[str] = []
    for line in lines:
        try:
            key = parse_element_key(line)
        except ValueError as error:
            faults.append(str(error))
        else:
            found.setdefault((key.text.casefold(), key.kind.casefold()), key)
    return list(found.values()), faults


def _split(prompt: str, model: TextModel) -> tuple[list[ElementKey], list[str]]:
    """The elements of a prompt: those of the try that gives most."""
    instruction = filled(instructions.EVALMUSE_ELEMENTS, prompt=prompt)
    types = {one.strip() for one in instructions.ELEMENT_TYPES.split(",")}
    best: tuple[list[ElementKey], list[str]] = ([], [])
    faults: list[str] = []
    for _ in range(TRIES):
        listed, faults = parse_elements(lines_of(ask_again(model, [instruction], [faults], 512)[0]))
        strange = [one for one in listed if one.kind.casefold() not in types]
        foreign = [one for one in listed if not _stands_in(one.text, prompt)]
        faults += [f"{one.text!r} has the unknown type {one.kind!r}" for one in strange]
        faults += [f"{one.text!r} does not stand in the description" for one in foreign]
        keys = [one for one in listed if one not in strange and one not in foreign]
        if not best[0] or len(keys) > len(best[0]):
            best = (keys, faults)
        if not faults:
            break
    return best


def _asked_about(
    prompt: str, keys: Sequence[ElementKey], model: TextModel
) -> tuple[list[dict[str, object]], list[str]]:
    """Fields of the questions about elements, in their order, and why some have none."""
    found: dict[int, dict[str, object]] = {}
    left, faults = dict(enumerate(keys, start=1)), dict[int, list[str]]()
    for _ in range(TRIES):
        asked = [
            filled(
                instructions.EVALMUSE_QUESTION, prompt=prompt, element=f"{key.text} ({key.kind})"
            )
            for key in left.values()
        ]
        told = ask_again(model, asked, [faults.get(number, []) for number in left], 64)
        for (number, key), text in zip(tuple(left.items()), told, strict=True):
            pair = _PAIR.search(text)
            question, expected = (pair["q"], yes_or_no_in(pair["answer"])) if pair else ("", "")
            if fault := _question_fault(prompt, key, question, expected):
                faults[number] = [fault]
            else:
                fields = yes_no_fields(str(number), question, key.text, key.kind)
                found[number] = {**fields, "expected": expected}
                del left[number]
        if not left:
            break
    return [found[number] for number in sorted(found)], [faults[number][0] for number in left]


def _question_fault(prompt: str, key: ElementKey, question: str, expected: str) -> str:
    """Why a question about an element cannot be used; empty where it can."""
    if expected not in YES_NO or question[-1:] not in _ENDS or sum(map(question.count, _ENDS)) > 1:
        return f"the question about {key.text!r} is not of the form asked for"
    if not _shares_a_word(key.text, question):
        return f"the question about {key.text!r} does not name it"
    said = f"{key.text} {prompt}"
    if expected == "no" and not _NEGATIONS & {*_plain(said).split()} and not _DENIED.search(said):
        return f"the question about {key.text!r} expects no, and nothing is denied"
    return ""


def _stands_in(element: str, prompt: str) -> bool:
    """Whether the words of an element stand in a prompt, one after the other."""
    if _UNSPACED.search(element):
        return element.casefold() in prompt.casefold()
    return f" {_plain(element)} " in f" {_plain(prompt)} "


def _shares_a_word(element: str, question: str) -> bool:
    """Whether a question has a word of an element, in some form."""
    if _UNSPACED.search(element):
        return bool({*element} & {*question} - {" "})
    about = [word for word in _plain(element).split() if word not in _FILLERS]
    asked = _plain(question).split()
    # What is made of fillers alone cannot be looked for.
    return not about or any(_alike(one, other) for one in about for other in asked)


def _alike(one: str, other: str) -> bool:
    one, other = (_IRREGULAR.get(word, word) for word in (one, other))
    shorter, longer = sorted((one, other), key=len)
    return one == other or (longer.startswith(shorter[:_STEM]) and len(shorter) > 2)


def _plain(text: str) -> str:
    """The words of a text in small letters, with a space between them."""
    return " ".join(re.findall(r"\w+", text.casefold()))


def ask_again(
    model: TextModel, asked: Sequence[str], faults: Sequence[Sequence[str]], most: int
) -> list[str]:
    """What a model says, told what was wrong with what it said before, where that fits."""
    told = []
    for one, wrong in zip(asked, faults, strict=True):
        again = filled(instructions.AGAIN, asked=one, faults="\n".join(wrong[:_MOST_TOLD]))
        told.append(again if wrong and model.fits(again, most) else one)
    return model.generate(told, most)


def write_gecko(prompt: str, model: TextModel, entails: Entails | None = None) -> Written:
    """Gecko questions (Wiles et al. 2024): two calls, one where no part is marked.

    `entails` says how likely the prompt entails each question with its answer; the scorer filters by
    that, and None leaves it open.
    """
    asked_for = filled(instructions.GECKO_COVERAGE, prompt=prompt)
    marked = lines_of(model.generate([asked_for], _LIST_TOKENS)[0])
    coverage = parse_coverage(marked[0].removeprefix("Marked:") if marked else "", prompt)
    if not coverage.parts:
        return Written(faults=coverage.faults)
    asked_for = filled(instructions.GECKO_QUESTIONS, coverage=coverage.text)
    asked, odd = parse_questions(model.generate([asked_for], _LIST_TOKENS)[0], coverage.parts)
    questions, bad = make_questions(prompt, (one.fields(coverage.parts) for one in asked))
    if entails is not None and questions:
        questions = tuple(with_entailment(questions, entails))
    return Written(questions, (*coverage.faults, *odd, *bad))


_ABOUT = re.compile(r"About\s+(?P<element>.+?)\s*\((?P<type>[^()]*)\)\s*:?$", re.IGNORECASE)
_FIELD = re.compile(r"(?P<key>Q|Choices|A)\s*:\s*(?P<value>.*)$", re.IGNORECASE)


def write_tifa(prompt: str, model: TextModel, verifier: TextModel | None = None) -> Written:
    """TIFA questions: one call, and one more per question with a verifier, all of them together.

    What the verifier answers otherwise from the prompt is left out (Hu et al. 2023); without one all
    are kept, as T2IScoreScore does.
    """
    text = model.generate([filled(instructions.TIFA, prompt=prompt)], _LIST_TOKENS)[0]
    found = parse_tifa(text, prompt)
    if verifier is None or not found.questions:
        return found
    return _confirmed(found, prompt, verifier)


def parse_tifa(text: str, prompt: str) -> Written:
    """Read `About element (type):` headings, each followed by `Q:`, `Choices:` and `A:` lines.

    A question that is not whole, or whose answer is none of its choices, is a fault; one that
    stands there twice counts once.
    """
    fields: list[dict[str, object]] = []
    faults: list[str] = []
    element, kind = "", ""
    current: dict[str, str] = {}
    for line in [*lines_of(text), "Q:"]:
        about, field = _ABOUT.match(line), _FIELD.match(line)
        if not about and not field:
            faults.append(f"line {line!r} is not of the form asked for")
            continue
        if current and (about or (field and field["key"].lower() == "q")):
            _finish(current, element, kind, fields, faults)
            current = {}
        if about:
            element, kind = about["element"], about["type"].strip().lower()
        elif field and (field["value"].strip() or current):
            current[field["key"].lower()] = field["value"].strip()
    questions, bad = make_questions(prompt, fields)
    return Written(questions, (*faults, *bad))


def _finish(
    current: dict[str, str],
    element: str,
    kind: str,
    fields: list[dict[str, object]],
    faults: list[str],
) -> None:
    missing = [key for key in ("q", "choices", "a") if not current.get(key)]
    if missing:
        faults.append(f"question {current.get('q', '')!r} lacks {', '.join(missing)}")
        return
    choices = listed(current["choices"])
    expected = literal_choice(current["a"], choices)
    if expected is None or len(choices) < 2:
        faults.append(f"question {current['q']!r} has no answer among two or more choices")
        return
    asked = {"question": current["q"], "expected": expected}
    if any(asked.items() <= one.items() for one in fields):
        return
    number = str(len(fields) + 1)
    extra = {"question_id": number, "choices": choices, "element": element, "type": kind}
    fields.append({**asked, **extra})


def _confirmed(found: Written, prompt: str, verifier: TextModel) -> Written:
    asked = [
        filled(
            instructions.TIFA_VERIFY,
            prompt=prompt,
            question=question.question,
            choices=", ".join(question.choices),
        )
        for question in found.questions
    ]
    answers = verifier.generate(asked, 32)
    kept: list[Question] = []
    faults = list(found.faults)
    for question, answer in zip(found.questions, answers, strict=True):
        if same_answer(answer, question.expected):
            kept.append(question)
        else:
            faults.append(f"{question.question!r} is not confirmed: {answer.strip()!r}")
    return Written(tuple(kept), tuple(faults))


_PIPELINE = "en_core_web_sm"


def spacy_phrases(*, entities: bool) -> Phrases:
    """Noun chunks of spaCy, as the authors of BVQA take them, and entities too for VQ2."""
    try:
        load: Callable[[str], Any] = import_module("spacy").load
        parse = load(_PIPELINE)
    except (ImportError, OSError) as error:
        raise SubmitterError(
            "spacy_missing",
            f"spaCy with its pipeline {_PIPELINE} is not installed here.",
            "Install both, or let a language model list the phrases with --model.",
        ) from error

    def phrases(prompt: str) -> tuple[list[str], list[str]]:
        parsed = parse(prompt)
        found = [(chunk.start_char, chunk.text) for chunk in parsed.noun_chunks]
        if entities:
            found += [(entity.start_char, entity.text) for entity in parsed.ents]
        return list(dict.fromkeys(text for _, text in sorted(found))), []

    return phrases


def model_phrases(prompt: str, model: TextModel) -> tuple[list[str], list[str]]:
    """Noun phrases as a language model lists them; phrases that are not the prompt's are faults."""
    text = model.generate([filled(instructions.SPANS, prompt=prompt)], 256)[0]
    found: dict[str, None] = {}
    faults: list[str] = []
    for line in lines_of(text):
        if line.lower() in prompt.lower():
            found[line] = None
        else:
            faults.append(f"{line!r} is not in the prompt")
    return list(found), faults


def write_bvqa(prompt: str, phrases: Phrases) -> Written:
    """One question per noun phrase: the phrase with a question mark (T2I-CompBench)."""
    found, faults = phrases(prompt)
    if not found and not faults:
        return Written(none_because="no noun phrases")
    questions, bad = make_questions(
        prompt,
        (
            yes_no_fields(str(number), f"{phrase}?", phrase)
            for number, phrase in enumerate(found, start=1)
        ),
    )
    return Written(questions, (*faults, *bad))


def write_vq2(prompt: str, model: TextModel, phrases: Phrases) -> Written:
    """Questions whose answer is a phrase of the prompt (Yarom et al. 2023, VQ2).

    One call per phrase, all of them together. The authors sample five per phrase, without a seed;
    here they are the model's likeliest list.
    """
    found, faults = phrases(prompt)
    if not found:
        return Written((), tuple(faults), "" if faults else "no phrases")
    asked = [
        filled(instructions.VQ2_QUESTIONS, prompt=prompt, answer=phrase, count=str(_PER_PHRASE))
        for phrase in found
    ]
    fields = [
        {"question": question, "expected": phrase, "element": phrase}
        for phrase, text in zip(found, model.generate(asked, 256), strict=True)
        for question in _questions_about(phrase, text, faults)
    ]
    numbered = ({"question_id": str(n), **one} for n, one in enumerate(fields, start=1))
    questions, bad = make_questions(prompt, numbered)
    return Written(questions, (*faults, *bad))


def _questions_about(phrase: str, text: str, faults: list[str]) -> list[str]:
    lines = list(dict.fromkeys(lines_of(text)))
    faults += [f"{line!r} is no question" for line in lines if not line.endswith("?")]
    found = [line for line in lines if line.endswith("?")][:_PER_PHRASE]
    if not found:
        faults.append(f"{phrase!r} has no question")
    return found


WriterName = Literal["tifa", "dsg", "gecko", "evalmuse", "bvqa", "vq2"]
PhrasesBy = Literal["model", "spacy"]


@dataclass(frozen=True)
class Helpers:
    """What writers may need."""

    model: TextModel | None = None  # writes; only BVQA with spaCy does without
    verifier: TextModel | None = None  # confirms TIFA questions from the prompt
    entails: Entails | None = None  # says how likely the prompt entails Gecko questions
    # of prompts whose elements are known (EvalMuse)
    elements: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    phrases: PhrasesBy = "model"  # who finds the phrases of BVQA and VQ2


def needs_model(name: WriterName, phrases: PhrasesBy) -> bool:
    """Whether a writer needs a language model."""
    return not (name == "bvqa" and phrases == "spacy")


def make_writer(name: WriterName, helpers: Helpers) -> Write:
    """What writes the questions of a metric."""
    if name == "bvqa":
        return partial(write_bvqa, phrases=_phrases(helpers, entities=False))
    model = _model(helpers)
    if name == "tifa":
        return partial(write_tifa, model=model, verifier=helpers.verifier)
    if name == "dsg":
        return partial(write_dsg, model=model)
    if name == "gecko":
        return partial(write_gecko, model=model, entails=helpers.entails)
    if name == "evalmuse":
        return partial(write_evalmuse, model=model, elements=helpers.elements)
    return partial(write_vq2, model=model, phrases=_phrases(helpers, entities=True))


def _phrases(helpers: Helpers, *, entities: bool) -> Phrases:
    if helpers.phrases == "spacy":
        return spacy_phrases(entities=entities)
    return partial(model_phrases, model=_model(helpers))


def _model(helpers: Helpers) -> TextModel:
    if helpers.model is None:
        raise SubmitterError(
            "writer_needs_model",
            "This writer asks a language model.",
            "Name one with --model, by Hub id or folder.",
        )
    return helpers.model

"""Writing of prompt pairs: gone on with after any stop, deduplicated, counted, and a benchmark at once."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from benchmarks.croc_syn.protocol import CrocSyn
from benchmarks.registry import load_registry
from evaluator.croc.coverage import coverage_of
from evaluator.croc.folder import CrocFolder
from evaluator.croc.replies import REASONS, WrittenPair
from evaluator.croc.requests import MODES
from evaluator.croc.writing import BATCH, plan_of, write_pairs
from evaluator.scorers.endpoints import EndpointModel
from evaluator.scorers.models.sampling import Sampled
from tests.evaluator.croc.written import GUIDE, REQUESTS, TAXONOMY, settings, written
from tests.evaluator.scorers.common import refusal
from tools.figures.croc_writer import SimulatedWriter


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> CrocFolder:
    """A run that nothing disturbed, to be read."""
    return written(tmp_path_factory.mktemp("whole") / "My croc")


@pytest.fixture
def folder(tmp_path: Path, whole: CrocFolder) -> CrocFolder:
    """The same folder, to be changed."""
    return CrocFolder(shutil.copytree(whole.path, tmp_path / "croc"))


def contents(folder: CrocFolder) -> dict[str, bytes]:
    """All files but locks."""
    files = (path for path in folder.path.rglob("*") if path.is_file() and path.name != ".lock")
    return {str(path.relative_to(folder.path)): path.read_bytes() for path in files}


def test_what_is_written_is_a_benchmark_in_the_layout_of_croc_syn(whole: CrocFolder) -> None:
    benchmark = load_registry(cards=[str(whole.path)])["my_croc"]
    assert isinstance(benchmark, CrocSyn)
    answers = benchmark.answers(None)
    kept = [
        one for request in whole.read() for one in request.found if isinstance(one, WrittenPair)
    ]
    assert len(answers.prompts) == len(kept)
    assert 0 < answers.dropped == len(REQUESTS) * 2 - len(kept)
    assert list(benchmark.card.skills) == ["Color", "Material", "Place"]
    assert set(answers.prompts["skill"]) <= {"", "Color", "Material", "Place"}
    prompts = next(whole.path.glob("3_*.jsonl")).read_text()
    lines = [json.loads(line) for line in prompts.splitlines()]
    assert [line["prompt_id"] for line in lines] == [one.prompt_id for one in REQUESTS]
    for line in lines:
        assert len(line["prompts"]) == len(line["contrast_prompts"]) == 2
        varied = line.get("varied_definitions", ["", ""])
        assert [bool(one) for one in varied] == [
            bool(one) and line["mode"] == "entity_variation" for one in line["prompts"]
        ]


@pytest.mark.parametrize("batches", [0, 1, 2])
def test_a_run_that_was_stopped_anywhere_gives_the_same_files(
    tmp_path: Path, whole: CrocFolder, batches: int
) -> None:
    folder = CrocFolder(tmp_path / "My croc")
    with pytest.raises(KeyboardInterrupt), folder.opened():
        write_pairs(
            REQUESTS, folder.begin(settings()), SimulatedWriter(batches), folder, guide=GUIDE
        )
    replies = folder.path / "writing" / "flux_toy.jsonl"
    with replies.open("ab") as file:
        file.write(b'{"prompt_id": "subj')  # Killed while it wrote.
    writer = SimulatedWriter()
    again = written(folder.path, writer)
    assert len(writer.asked) == max(0, len(REQUESTS) * 2 - batches * BATCH)
    assert contents(again) == contents(whole)
    assert written(folder.path, SimulatedWriter(0)) == again, "nothing is left to be asked"


def test_completions_have_seeds_of_their_own(tmp_path: Path) -> None:
    writer = SimulatedWriter()
    written(tmp_path / "croc", writer, seed=3)
    assert {seed for _, seed in writer.asked} == {6, 7}
    assert len(set(writer.asked)) == len(writer.asked)


def test_every_completion_is_kept_or_has_a_reason(whole: CrocFolder) -> None:
    figures = coverage_of(list(whole.read()))
    assert (
        figures["asked"] == len(REQUESTS) * 2 == figures["kept"] + sum(figures["dropped"].values())
    )
    assert {"cut", "no_object", "refused", "same"} <= figures["dropped"].keys() <= {*REASONS}
    for part in ("files", "kinds"):
        assert sum(one["asked"] for one in figures[part].values()) == figures["asked"]
    for part in ("skills", "properties"):
        total = sum(one["asked"] for one in figures[part].values())
        assert total == figures["kinds"]["subject_property"]["asked"]
    assert figures["properties"].keys() == {"Red", "Blue", "Wooden", "Left-of"}
    assert figures["properties"]["Red"]["asked"] == 2 * len(TAXONOMY.subjects)
    entities = sum(one["asked"] for one in figures["entities"].values())
    assert entities == figures["asked"] - figures["kinds"]["subject_property"]["asked"]
    assert figures["without_varied_definition"] == 0


def test_equal_pairs_of_an_image_model_are_kept_once_by_the_first_file(tmp_path: Path) -> None:
    written(tmp_path / "croc", SimulatedWriter(faulty=False))
    written(tmp_path / "croc", SimulatedWriter(faulty=False), image_model="sd")
    folder = written(tmp_path / "croc", SimulatedWriter(faulty=False), text_model="another")
    kept = Counter(
        request.run.key
        for request in folder.read()
        for one in request.found
        if isinstance(one, WrittenPair)
    )
    assert kept == {"flux_toy": len(REQUESTS) * 2, "sd_toy": len(REQUESTS) * 2}
    benchmark = load_registry(cards=[str(folder.path)])["croc"]
    assert isinstance(benchmark, CrocSyn)
    answers = benchmark.answers(None)
    assert len(answers.prompts) == 2 * len(answers.clusters) == 4 * len(REQUESTS)


class Same:
    """Writes the same pair to everything, in other case each time."""

    def sample(self, prompts: Any, seeds: Any, most: int, how: Any) -> list[Sampled]:
        pairs = [
            {"prompt": "A cup." if s % 2 else "a  CUP.", "contrast_prompt": "B"} for s in seeds
        ]
        return [Sampled(json.dumps(one)) for one in pairs]

    def fits(self, *_: Any) -> bool:
        return True


def test_pairs_that_differ_in_case_and_spaces_are_equal_within_a_kind(tmp_path: Path) -> None:
    figures = coverage_of(list(written(tmp_path / "croc", Same()).read()))
    assert figures["kept"] == len(MODES) == figures["without_varied_definition"] + 2
    assert figures["dropped"] == {"duplicate": figures["asked"] - len(MODES)}


class Silent:
    """Says the same useless words each time."""

    def __init__(self, said: Sampled) -> None:
        self.said, self.asked = said, 0

    def sample(self, prompts: Any, seeds: Any, most: int, how: Any) -> list[Sampled]:
        self.asked += len(prompts)
        return [self.said for _ in prompts]

    def fits(self, prompt: str, most: int) -> bool:
        return most <= 64


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (Sampled("Hm."), "no_object"),
        (Sampled("", refusal="it may not"), "it may not"),
        (Sampled("{'a': 1}"), "not_text"),
    ],
)
def test_a_model_that_writes_nothing_is_not_asked_further(
    tmp_path: Path, said: Sampled, why: str
) -> None:
    model = Silent(said)
    with refusal("nothing_written", why):
        written(tmp_path / "croc", model)
    assert model.asked == 2 * BATCH
    with refusal("nothing_written"):  # The replies are kept; the next run goes on from them.
        CrocFolder(tmp_path / "croc").publish(list(CrocFolder(tmp_path / "croc").read()))


def test_replies_too_long_for_the_model_are_refused_before_it_is_asked(
    tmp_path: Path, whole: CrocFolder
) -> None:
    model = Silent(Sampled(""))
    with refusal("prompt_too_long", "Lower --max-tokens"):
        written(tmp_path / "My croc", model, max_tokens=65)
    assert model.asked == 0
    assert contents(written(tmp_path / "My croc", max_tokens=64)) == contents(whole)


def test_a_file_without_any_pair_begins_anew_in_its_place(tmp_path: Path) -> None:
    written(tmp_path / "croc", text_model="other")
    with refusal("nothing_written"):
        written(tmp_path / "croc", Silent(Sampled("Hm.")))
    folder = CrocFolder(tmp_path / "croc")
    assert len(folder.check(settings())) == 2 * BATCH and folder.check(settings(seed=5)) == []
    written(tmp_path / "croc", seed=5)
    assert [(run.key, run.seed) for run in folder.runs()] == [("flux_other", 0), ("flux_toy", 5)]
    assert len(folder.check(settings(seed=5))) == 2 * len(REQUESTS)


@pytest.mark.parametrize(
    ("named", "pattern"),
    [
        ("my-shoes", "my_shoes"),
        ("鞋", "croc_[0-9a-f]{8}"),
        ("Café", "caf_[0-9a-f]{8}"),
        ("...", "croc_[0-9a-f]{8}"),
        ("a" * 70, "a{51}_[0-9a-f]{8}"),
    ],
)
def test_names_that_lose_letters_have_a_hash_behind_them(
    tmp_path: Path, named: str, pattern: str
) -> None:
    name = CrocFolder(tmp_path / named).name
    assert re.fullmatch(pattern, name)
    others = {CrocFolder(tmp_path / other).name for other in ("帽", "Cafè", "a" * 71)}
    assert name not in others and len(others) == 3


def test_the_name_in_a_card_is_kept(tmp_path: Path) -> None:
    folder = written(tmp_path / "鞋")
    card = folder.path / "card.toml"
    was = folder.name
    assert load_registry(cards=[str(folder.path)])[was].card.title == "鞋"
    card.write_text(card.read_text("utf-8").replace(was, "shoes"), "utf-8")
    folder.publish(list(folder.read()))
    assert folder.name == "shoes" and load_registry(cards=[str(folder.path)])["shoes"]
    for content in ("", "name = 1", 'name = "../x"', "name"):
        card.write_text(content)
        with refusal("bad_croc_folder"):
            folder.publish(list(folder.read()))


class Broken(SimulatedWriter):
    """Writes halves of pairs of surrogates at times, as escapes and as they are."""

    def sample(self, prompts: Any, seeds: Any, most: int, how: Any) -> list[Sampled]:
        said = super().sample(prompts, seeds, most, how)
        escaped = r'{"prompt": "\ud83d", "contrast_prompt": "b"}'
        said[:3] = [Sampled(escaped), Sampled("\ud83d"), Sampled("", refusal="\ud83d")]
        return said


def test_a_reply_that_is_no_text_is_dropped_and_stops_nothing(tmp_path: Path) -> None:
    folder = written(tmp_path / "croc", Broken())
    found = [one for request in folder.read() for one in request.found]
    assert found[:3] == ["unreadable", "no_object", "refused"]
    assert contents(written(tmp_path / "croc", SimulatedWriter(0))) == contents(folder)


def test_a_folder_of_something_else_or_made_otherwise_is_refused(
    tmp_path: Path, folder: CrocFolder
) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "x").write_text("")
    with refusal("folder_not_empty"):
        written(tmp_path / "other")
    before = contents(folder)
    with refusal("other_settings", "seed: 0 there, 5 now", "most_words"):
        written(tmp_path / "croc", seed=5, most_words=9)
    with folder.opened(), refusal("folder_busy"):
        written(tmp_path / "croc", text_model="other")
    assert contents(folder) == before
    settings_file = tmp_path / "croc" / "writing" / "flux_toy.json"
    settings_file.write_text("{}")
    with refusal("bad_croc_folder", "flux_toy.json"):
        folder.runs()
    settings_file.unlink()
    with refusal("bad_croc_folder"):
        folder.runs()


@pytest.mark.parametrize(
    ("change", "says"),
    [(lambda lines: [b"[]\n", *lines[1:]], "line 1"), (lambda lines: lines[1:], "order of asking")],
)
def test_replies_that_are_not_those_of_the_run_are_refused(
    folder: CrocFolder, change: Any, says: str
) -> None:
    file = folder.path / "writing" / "flux_toy.jsonl"
    file.write_bytes(b"".join(change(file.read_bytes().splitlines(keepends=True))))
    with refusal("bad_croc_folder", says):
        written(folder.path)


def test_a_plan_counts_what_is_left(folder: CrocFolder) -> None:
    run, prices = settings(max_tokens=900), EndpointModel(input_usd=2.0, output_usd=8.0)
    whole = plan_of(REQUESTS, run, GUIDE, [], prices)
    assert (whole.requests, whole.completions, whole.there) == (len(REQUESTS), len(REQUESTS) * 2, 0)
    assert whole.written_tokens == 400 * whole.completions
    assert whole.usd == pytest.approx((2 * whole.read_tokens + 8 * whole.written_tokens) / 1e6)
    assert whole.most_written_tokens == 900 * whole.completions
    assert whole.most_usd == pytest.approx(
        (2 * whole.read_tokens + 8 * whole.most_written_tokens) / 1e6
    )
    short = plan_of(REQUESTS, settings(max_tokens=64), GUIDE, [], None)
    assert short.written_tokens == short.most_written_tokens == 64 * whole.completions
    assert (short.usd, short.most_usd) == (None, None)
    kept = list(folder.replies(run))
    some = plan_of(REQUESTS, run, GUIDE, kept[:31], prices)
    assert some.there == 31 and 0 < some.read_tokens < whole.read_tokens
    done = plan_of(REQUESTS, run, GUIDE, kept, prices)
    assert (done.read_tokens, done.written_tokens, done.usd, done.most_usd) == (0, 0, 0.0, 0.0)

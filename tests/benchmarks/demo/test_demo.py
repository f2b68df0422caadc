"""The demo benchmarks: the truth scores high and a guess does not, and what ships is pinned.

The bundled split is data: it does not change unless its revision does. After a deliberate change,
give `revision` in benchmarks/demo/pinned.toml and in the four cards a new number, run
`python -m tools.demo_split`, and pin the new hashes; published rows name the revision.
"""

from __future__ import annotations

import io
import json
import math
import random
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from PIL import Image
from typer.testing import CliRunner

from benchmarks.__main__ import command_line
from benchmarks.demo import load
from benchmarks.demo.load import fingerprint, pinned, pinned_revision
from benchmarks.gecko.load import TEMPLATES
from benchmarks.registry import load_registry
from benchmarks.rows import Measured
from benchmarks.schema import BETWEEN_TEXTS, BY_GENERATOR, Answers, ScoreTable
from tests.kit.refusals import refused
from tools.demo_split import croc, evalmuse, gecko, ts2
from tools.demo_split.models import MODELS
from tools.demo_split.scenes import aspects

NAMES = ("demo_croc", "demo_ts2", "demo_evalmuse", "demo_gecko")
DEMOS = {name: load_registry()[name] for name in NAMES}


def known_errors() -> dict[str, int]:
    """Every pair of all demo benchmarks with the number of errors in it."""
    found: dict[str, int] = {}
    for contrast in croc.contrasts():
        for stem, side in contrast.images:
            found[f"{stem}|orig"] = int(side == "contrast")
            found[f"{stem}|contrast"] = int(side == "prompt")
    found |= {shot.stem: shot.level for graph in ts2.graphs() for shot in graph.shots}
    found |= {shot.path: shot.depiction.errors for shot in evalmuse.shots()}
    for prompt in gecko.prompts():
        for model, depiction in gecko.depictions(prompt.id).items():
            found[f"{prompt.id}/{model}"] = depiction.errors
    return found


def scores_of(name: str, answers: Answers, errors: dict[str, int]) -> ScoreTable:
    """A metric that knows the truth, a constant and one that guesses."""
    guess = random.Random("a metric that guesses")
    overall = pd.DataFrame(
        {
            "oracle": [-float(errors[pair]) for pair in answers.pair_ids],
            "constant": 0.5,
            "guess": [guess.random() for _ in answers.pair_ids],
        },
        index=pd.Index(answers.pair_ids, name="pair_id"),
        dtype=float,
    )
    if name != "demo_evalmuse":
        return ScoreTable(overall)
    known = [
        (shot.path, shot.prompt.element_id(a), float(a.id not in shot.depiction.wrong))
        for shot in evalmuse.shots()
        for a in aspects(shot.prompt.scene)
    ]
    elements = pd.DataFrame(known, columns=["pair_id", "element_id", "score"])
    return ScoreTable(overall, elements={"oracle": elements})


@pytest.fixture(scope="module")
def measured() -> dict[str, Measured]:
    errors, found = known_errors(), {}
    for name, demo in DEMOS.items():
        answers = demo.answers(None)
        found[name] = demo.evaluate(scores_of(name, answers, errors), answers, 100)
    return found


@pytest.mark.first_quick
@pytest.mark.parametrize(
    ("name", "least", "constant"),
    [
        ("demo_croc", 1.0, -1.0),  # in CROC a tie is a failure
        ("demo_ts2", 0.999, 0.0),
        ("demo_evalmuse", 0.9, math.nan),
        ("demo_gecko", 0.8, math.nan),
    ],
)
def test_who_knows_the_errors_is_at_the_top_and_who_guesses_at_chance(
    name: str, least: float, constant: float, measured: dict[str, Measured]
) -> None:
    card, rows = DEMOS[name].card, measured[name].rows
    headline = {r.metric: r for r in rows if r.skill is None and card.headline.matches(r)}
    assert headline["oracle"].value >= least
    assert headline["constant"].value == pytest.approx(constant, nan_ok=True)
    guess = headline["guess"]
    assert abs(guess.value) < 0.2
    assert guess.ci_low < 0.05
    assert guess.ci_high > -0.05
    assert {row.skill for row in rows} - {None} == set(card.skills)
    of_facets = {row.facet for row in rows if row.measure != BY_GENERATOR}
    assert of_facets - {None} <= set(card.facets)


def test_the_oracle_knows_every_element(measured: dict[str, Measured]) -> None:
    found = [
        row.value
        for row in measured["demo_evalmuse"].rows
        if (row.metric, row.measure) == ("oracle", "element_accuracy")
    ]
    assert len(found) > 7
    assert min(found) > 0.95


@pytest.mark.parametrize("name", NAMES)
def test_a_benchmark_is_the_pinned_one_without_a_data_folder_and_says_it_is_simulated(
    name: str,
) -> None:
    demo = DEMOS[name]
    answers, asked = demo.answers(None), demo.questions(None)
    assert fingerprint(asked, answers) == pinned()[name]
    assert not answers.sources
    assert tuple(pair.pair_id for pair in asked.pairs) == answers.pair_ids
    assert len(set(answers.pair_ids)) == len(answers.pair_ids)
    assert len(set(answers.clusters)) == len(answers.clusters)
    assert {pair.image_id for pair in asked.pairs} == set(asked.images)
    assert {pair.text_id for pair in asked.pairs} == set(asked.texts)
    card = demo.card
    assert card.simulated
    assert card.revision == pinned_revision() == "demo-1"
    assert card.title.startswith("Demo · ")
    assert "imulated" in card.summary
    assert "program" in card.description
    assert "nobody" in card.description or "no person" in card.description


def test_every_file_has_a_hash_and_every_hash_a_file() -> None:
    assert set(pinned()) == set(NAMES)
    there = {str(path.relative_to(load.FOLDER)) for path in load.FOLDER.rglob("*.parquet")}
    assert there == set(load.hashes())
    done = CliRunner().invoke(command_line(), ["describe", "demo_ts2", "--facts", "--json"])
    rows = json.loads(done.stdout)["facts"]["fingerprint"]
    assert {row["part"]: row["sha256"] for row in rows} == pinned()["demo_ts2"]
    assert all(row["as pinned"] for row in rows)


@pytest.mark.parametrize("family", ["croc", "ts2", "evalmuse", "gecko", "models"])
def test_pictures_are_plain_png_files_of_one_size(family: str) -> None:
    for encode in list(load.pictures(family).values())[:3]:
        picture = Image.open(io.BytesIO(encode()))
        assert (picture.format, picture.size, picture.info) == ("PNG", (128, 128), {})


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The files of one benchmark in another place, where they may be spoilt."""
    shutil.copytree(load.FOLDER / "ts2", tmp_path / "ts2")
    monkeypatch.setattr(load, "FOLDER", tmp_path)
    load._checked_bytes.cache_clear()
    yield tmp_path
    load._checked_bytes.cache_clear()


@pytest.mark.parametrize("file", ["nodes", "pictures", "texts", "question_pairs"])
@pytest.mark.parametrize(("content", "code"), [(None, "data_missing"), (b"PAR1", "data_malformed")])
def test_a_file_that_is_gone_or_changed_is_named(
    file: str, content: bytes | None, code: str, copied: Path
) -> None:
    path = copied / "ts2" / f"{file}.parquet"
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    with refused(code) as caught:
        load.ts2_answers(), load.questions("ts2")
    assert f"benchmarks/demo/files/ts2/{file}.parquet" in str(caught.value)
    assert str(copied) not in str(caught.value)


def test_each_has_the_structure_of_the_benchmark_it_stands_for() -> None:
    """What exactly is in it, the hashes pin."""
    pairs = load.croc_answers().prompt_pairs
    assert set(Counter(pair.category for pair in pairs).values()) == {10}
    for pair in pairs:
        for side, stems in (("prompt", pair.original_images), ("contrast", pair.contrast_images)):
            assert all(stem.startswith(f"{pair.id}___{side}___") for stem in stems)
    nodes = load.ts2_answers().nodes
    assert (nodes["label"].str[0].astype(int) == nodes["level"]).all()
    rated = load.evalmuse_answers()
    assert (len(rated.clusters), len(rated.pair_ids)) == (40, 40 * len(MODELS))
    typed = rated.elements["element_id"].str.extract(r"\((.*)\)$")[0]
    assert (typed == rated.elements["skill"]).all()
    ratings = load.gecko_answers().ratings
    units = ["template", "prompt_id", "model", "model_b", "unit_index"]
    assert set(ratings["template"]) == set(TEMPLATES)
    assert set(ratings.groupby(units)["rater_id"].nunique()) == {3}


@pytest.mark.first_quick
@pytest.mark.parametrize(
    ("name", "facets"),
    [
        ("demo_croc", {"image", "forward_image", "inverse_image"}),
        ("demo_ts2", {None}),
        ("demo_evalmuse", set()),
        ("demo_gecko", {"SxS"}),
    ],
)
def test_a_metric_that_compares_has_values_of_what_compares_images_of_a_prompt(
    name: str, facets: set[str | None]
) -> None:
    demo, answers = DEMOS[name], DEMOS[name].answers(None)
    oracle = scores_of(name, answers, known_errors()).overall[["oracle"]]
    none = pd.DataFrame(columns=["pair_id", "other_id", "margin"])
    rows = demo.evaluate(ScoreTable(oracle, margins={"oracle": none}), answers, 0).rows
    assert {row.facet for row in rows if not math.isnan(row.value)} == facets
    assert {row.note for row in rows if not demo.within_text(row)} <= {BETWEEN_TEXTS}
    assert demo.compares_images is bool(facets)

"""The registry: a folder is all it takes, what every card says, its scale, and measures added to it."""

from __future__ import annotations

import math
import re
import sys
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pydantic import ValidationError

import tests.kit.toy
from benchmarks.croc.load import CATEGORIES
from benchmarks.croc_syn.load import NODES
from benchmarks.errors import PlatformError, SubmitterError
from benchmarks.evalmuse.load import SKILLS as EVALMUSE
from benchmarks.evalmuse_structure.load import SKILLS as PROBLEMS
from benchmarks.families.benchmark import CardBenchmark
from benchmarks.families.card import FamilyCard
from benchmarks.genai_bench.protocol import GENAI_1600
from benchmarks.measures import FurtherMeasure, load_further, with_further
from benchmarks.published import published
from benchmarks.registry import BUILT_IN, find, load_registry
from benchmarks.released.bundle import is_bundled
from benchmarks.rows import Measured, MeasuredBuilder, Row, concatenate
from benchmarks.schema import Benchmark, Card, MeasureInfo, Scale, ScoreTable
from benchmarks.statistics.pairwise_accuracy import tie_calibrated
from benchmarks.statistics.raters import one_against_the_others
from benchmarks.statistics.resampling import ResamplingPlan, resampled_mean
from tests.kit.refusals import refused
from tests.kit.toy import PAIRS, Toy
from tools.index_chance import guessed, headlines

REGISTRY = load_registry()
GENAI = tuple(GENAI_1600.card.skills)
TOY = Path(tests.kit.toy.__file__).read_text() + "\n\nBENCHMARKS = (Toy(),)\n"
FROM_DEMO = {
    "croc_hum": "demo_croc", "evalmuse": "demo_evalmuse", "evalmuse_ntire": "demo_evalmuse",
    "gecko": "demo_gecko", "genai_1600": "genai_1600",
}  # fmt: skip
"""Benchmarks, and where answers of their structure ship with Assay."""
each_benchmark = pytest.mark.parametrize("name", sorted(REGISTRY))


def ships(name: str) -> bool:
    """Whether its answers need no folder of data."""
    files = [file for file in REGISTRY[name].card.files if file.role == "answers"]
    return all(file.beside or is_bundled(file.path) for file in files)


PROMISED: dict[str, tuple[str, tuple[str, ...], dict[str, int]]] = {
    "croc_hum": ("scaled_accuracy assay", CATEGORIES, {"prompt pairs": 280, "images": 28733}),
    "croc_syn": (
        "scaled_accuracy assay", tuple(NODES),
        {"images per prompt": 5, "prompt files with prompt pairs": 4},
    ),
    "evalmuse": ("srcc all paper", EVALMUSE, {}),
    "evalmuse_structure": ("accuracy paper", tuple(PROBLEMS), {}),
    "gecko": ("srcc all assay", (), {}),
    "genai_527": ("pairwise_accuracy paper", GENAI, {}),
    "genai_1600": ("pairwise_accuracy paper", GENAI, {}),
    "genai_ranking": ("top1_agreement DALLE_3 paper best_of_9", GENAI, {}),
    "tifa160": (
        "srcc all paper dsg_likert", ("coco", "partiprompt", "paintskill", "drawbench"), {}
    ),
    "ts2": ("rank all paper", (), {}),
}  # fmt: skip
"""Of cards: measure, split, variant and facet of the headline; skills; what is counted of them."""
PRIVATE = {"evalmuse_ntire", "evalmuse_structure", "evalmuse_track2"}


def add(root: Path, folder: str, source: str) -> None:
    (root / folder).mkdir()
    (root / folder / "protocol.py").write_text(source)


def test_a_folder_with_a_benchmark_is_registered_once(tmp_path: Path) -> None:
    add(tmp_path, "one", TOY)
    registry = load_registry([tmp_path])
    assert registry["toy"].card.title == "Toy"
    assert set(REGISTRY) == set(registry) - {"toy"}
    add(tmp_path, "two", TOY)
    with pytest.raises(PlatformError, match="'toy'"):
        load_registry([tmp_path])
    with pytest.raises(SubmitterError, match=r"'nope'.*ts2"):
        find(registry, "nope")


def test_a_folder_that_declares_nothing_is_an_error(tmp_path: Path) -> None:
    add(tmp_path, "empty", "BENCHMARKS = 3\n")
    with pytest.raises(PlatformError, match="BENCHMARKS"):
        load_registry([tmp_path])


# Cards, so that no board rests on a promise
@each_benchmark
def test_a_card_explains_its_headline_and_where_its_files_come_from(name: str) -> None:
    card = REGISTRY[name].card
    assert card.headline.measure in card.measures
    assert all(info.meaning and info.title for info in card.measures.values())
    assert card.revision and (card.citation or card.simulated)
    assert card.answers_public is (name not in PRIVATE)
    if name in PROMISED:
        headline, skills, counts = PROMISED[name]
        found = card.headline
        told = (found.measure, found.split, found.variant, found.facet)
        assert " ".join(filter(None, told)) == headline
        assert not found.facet or found.facet in card.facets
        assert tuple(card.skills) == skills or not skills
        assert counts.items() <= card.counts.items()
    for file in card.files:
        assert not file.path.startswith(("/", "..")), file.path
        if file.supplied and file.role != "images":  # of images the sentence says all
            named = next(w for w in file.supplied.split() if "FORMAT.md" in w).strip("`.,;()")
            assert (BUILT_IN.parent / named).is_file(), named
        if file.url and not file.folder:
            assert file.sha256 and file.size > 0, file.path


@each_benchmark
def test_without_data_nothing_happens_and_the_file_is_named_with_the_way_to_it(
    name: str, tmp_path: Path
) -> None:
    benchmark = REGISTRY[name]
    system = benchmark.card.system if isinstance(benchmark.card, FamilyCard) else None
    assert benchmark.has_answers(tmp_path) is ships(name)
    assert benchmark.has_questions(tmp_path) is (not benchmark.card.files)
    first = next((file for file in benchmark.card.files if file.role == "answers"), None)
    for data, place in ((None, ""), (tmp_path, f"{tmp_path}/")):
        if first is None:
            continue
        assert not benchmark.has_questions(data)
        if first.beside:
            with refused("images_missing"):
                benchmark.questions(data)
            continue
        asked = benchmark.questions if ships(name) else benchmark.answers
        with refused("data_missing", match=re.escape(place + first.path)) as caught:
            asked(data)
        way = first.supplied or f"fetch {system.source if system else name}"
        assert (way in caught.value.hint, "--data" in caught.value.hint) == (True, data is None)
    assert list(tmp_path.iterdir()) == []


def test_every_printed_figure_belongs_to_a_benchmark_of_the_registry() -> None:
    assert {cell.benchmark for cell in published()} - {None} <= REGISTRY.keys()


# Facts, cases and rows of whatever answers have the structure of a benchmark's
@pytest.mark.first_quick
@pytest.mark.parametrize("name", FROM_DEMO)
def test_answers_of_its_structure_give_a_benchmark_facts_cases_and_rows(name: str) -> None:
    benchmark, answers = REGISTRY[name], REGISTRY[FROM_DEMO[name]].answers(None)
    facts = benchmark.facts(answers)
    assert bool(facts) is (name != "croc_hum") and all(map(len, facts.values()))
    if name in {"croc_hum", "evalmuse", "gecko"}:
        cases = benchmark.cases(answers, None)
        assert cases is not None and len(cases) > 10
    if name in {"evalmuse", "evalmuse_ntire", "gecko"}:
        values = np.random.default_rng(3).normal(size=len(answers.pair_ids))
        overall = pd.DataFrame({"m": values}, index=pd.Index(answers.pair_ids, name="pair_id"))
        rows = benchmark.measure(ScoreTable(overall), answers, benchmark.plan(answers, 2)).rows
        assert {(row.benchmark, row.metric) for row in rows} == {(name, "m")}


AT_HAND = {name: name for name in REGISTRY if ships(name)} | FROM_DEMO
LONG = {"agiqa3k", "demo_gecko", "gecko", "genai_1600"}


@pytest.mark.first_quick
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow if name in LONG else ()) for name in AT_HAND],
)
def test_a_metric_whose_lower_scores_are_better_is_turned_round_in_any_order(name: str) -> None:
    benchmark, answers = REGISTRY[name], REGISTRY[AT_HAND[name]].answers(None)
    values = np.random.default_rng(3).normal(size=len(answers.pair_ids))
    rising = pd.DataFrame({"m": values}, index=pd.Index(answers.pair_ids, name="pair_id"))
    plan = benchmark.plan(answers, 2)

    def elements(table: pd.DataFrame) -> Any:
        if isinstance(benchmark, CardBenchmark):
            return benchmark.elements_of_controls(table, answers)
        return {}

    expected, turned, as_it_is = (
        # A note may name a threshold, in the metric's own unit.
        repr([replace(row, note="") for row in benchmark.measure(table, answers, plan).rows])
        for table in (
            ScoreTable(rising, elements(rising)),
            ScoreTable(-rising.iloc[::-1], elements(-rising.iloc[::-1]), {"m": -1}),
            ScoreTable(-rising, elements(-rising)),
        )
    )
    assert turned == expected != as_it_is


# Measures beside those of a protocol, added to benchmarks by one module
INFO = MeasureInfo(title="Mean square", meaning="The mean square of the scores.")
SCORES = ScoreTable(pd.DataFrame({"m": [1.0, 2.0, 4.0]}, index=pd.Index(PAIRS, name="pair_id")))


def mean_square(
    scores: ScoreTable, answers: Any, plan: ResamplingPlan, benchmark: str, revision: str
) -> Measured:
    built = MeasuredBuilder(plan.n_resamples)
    for metric in scores.metrics:
        values = scores.oriented()[metric].to_numpy(np.float64) ** 2
        row = Row(benchmark, revision, metric, "mean_square", values.mean(), n_clusters=3)
        built.add(row, resampled_mean(values, plan.counts), PAIRS, values)
    return built.build()


SQUARE = FurtherMeasure("mean_square", INFO, ("toy",), mean_square)


def test_the_rows_of_a_further_measure_come_behind_those_of_the_protocol_with_intervals() -> None:
    plain = Toy()
    wider = with_further({"toy": plain}, [SQUARE])["toy"]
    found, alone = (one.evaluate(SCORES, one.answers(None)) for one in (wider, plain))
    first, second = found.rows
    assert first == alone.rows[0] and plain.further == ()
    assert (second.measure, second.value, second.plan) == ("mean_square", 7.0, first.plan)
    assert second.ci_low < 7.0 < second.ci_high
    assert found.contributions.shape == (2, 3)
    assert found.clusters["row"].tolist() == [0, 0, 0, 1, 1, 1]
    assert wider.card.measures["mean_square"] == INFO
    assert "mean_square" not in plain.card.measures


@pytest.mark.parametrize("wrong", [{"benchmarks": ("nothing",)}, {"name": "mean"}])
def test_a_measure_that_fits_no_benchmark_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(PlatformError, match=r"'(nothing|mean)'"):
        with_further({"toy": Toy()}, [replace(SQUARE, **wrong)])


def test_every_module_of_the_folder_is_found_and_must_define_measures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    every: dict[str, Benchmark] = dict(REGISTRY)
    assert with_further(every, []) == every and load_further() == ()
    folder = tmp_path / "added_measures"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "square.py").write_text(f"from {__name__} import SQUARE\nMEASURES = (SQUARE,)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert [found.name for found in load_further("added_measures")] == ["mean_square"]
    (folder / "wrong.py").write_text("MEASURES = [1]\n")
    monkeypatch.delitem(sys.modules, "added_measures.square")
    with pytest.raises(PlatformError, match=r"added_measures\.wrong"):
        load_further("added_measures")


def test_parts_are_joined_in_their_order_with_their_pools_and_members() -> None:
    plan = ResamplingPlan(PAIRS, 1, 5)
    first = Toy().measure(SCORES, None, plan)
    second = MeasuredBuilder(5)
    row = Row("toy", "1", "m", "x", 0.5)
    second.add(row, members=np.array([1]), pool=lambda: None)  # type: ignore[arg-type,return-value]
    both = concatenate((first, Measured((), np.empty((0, 5))), second.build()))
    assert [r.measure for r in both.rows] == ["mean", "x"]
    assert both.resamples.shape == (2, 5)
    assert both.members[0] is None
    assert both.members[1] is not None
    assert list(both.pools) == [1]
    assert concatenate((first,)) is first


# Scales of the headlines: chance and ceiling.


WITHOUT = {"genai_ranking"} | {
    name
    for name, benchmark in REGISTRY.items()
    if isinstance(benchmark.card, FamilyCard) and benchmark.card.headline_scale is None
}
"""A guess there depends on ratings that have not been at hand; its card says so. A card of a family
needs no scale: `assay bench check` prints chance and ceiling."""
each_genai = pytest.mark.parametrize(
    "name", ["genai_527", pytest.param("genai_1600", marks=pytest.mark.slow)]
)


def scale_of(name: str) -> Scale:
    scale = REGISTRY[name].card.headline_scale
    assert scale is not None
    return scale


def card_with(*, higher_is_better: bool = True, **scale: Any) -> Card:
    rising = {"higher_is_better": higher_is_better}
    measures = {"mean": Toy.card.measures["mean"].model_dump() | rising}
    fields = {"chance": 0.0, "ceiling": 1.0, "ceiling_is": "People.", "source": "A paper."}
    given = {"measures": measures, "headline_scale": fields | scale}
    return Card.model_validate(Toy.card.model_dump() | given)


def printed(table: str, benchmark: str, measure: str, metric: str = "human") -> list[float]:
    return [
        cell.value
        for cell in published(benchmark)
        if (cell.table, cell.measure, cell.metric) == (table, measure, metric)
    ]


@pytest.mark.parametrize(
    ("scale", "said"),
    [
        ({"chance": 0.9, "ceiling": 0.1}, "larger"),
        ({"chance": 0.9, "ceiling": 1.5, "higher_is_better": False}, "smaller"),
        ({"chance": 0.5, "ceiling": 0.5}, "between"),
        ({"ceiling": math.nan}, "finite"), ({"ceiling": math.inf}, "finite"),
        ({"ceiling_is": ""}, "ceiling_is"), ({"source": ""}, "source"),
    ],
)  # fmt: skip
def test_a_ceiling_is_better_than_chance_and_sourced(scale: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        card_with(**scale)
    falling = card_with(chance=0.9, ceiling=0.1, higher_is_better=False)
    assert Toy.card.headline_scale is None
    assert card_with(chance=0.1, ceiling=0.9).headline_scale and falling.headline_scale


@pytest.mark.parametrize("name", sorted(set(REGISTRY) - WITHOUT))
def test_every_headline_has_a_scale_inside_its_measure(name: str) -> None:
    card, scale = REGISTRY[name].card, scale_of(name)
    info = card.measures[card.headline.measure]
    low, high = (-math.inf if info.low is None else info.low), info.high
    for end in (scale.chance, scale.ceiling):
        assert low <= end <= (math.inf if high is None else high)
    assert scale.ceiling_is.endswith(".") and scale.source.endswith(".")
    assert info.chance in (None, scale.chance)
    if scale.ceiling == info.high:
        assert "largest" in scale.ceiling_is
    if card.simulated:  # it claims no people
        assert (scale.chance, scale.ceiling) == (0.0, 1.0) and "simulated" in scale.ceiling_is


def test_ceilings_from_papers_are_the_printed_figures() -> None:
    assert [scale_of("croc_hum").ceiling] == printed("Human check", "croc_hum", "scaled_accuracy")
    directions = printed("Table 3", "croc_syn", "scaled_accuracy")
    templates = printed("Template correlations", "gecko", "srcc")
    assert (len(directions), len(templates)) == (4, 24)
    assert scale_of("croc_syn").ceiling == pytest.approx(mean(directions))
    assert scale_of("gecko").ceiling == pytest.approx(mean(templates))
    elements = printed("Table 3", "evalmuse", "srcc", metric="human_elements")
    assert scale_of("evalmuse").ceiling in elements


def guesses_get_chance(name: str, data: Path | None, draws: int) -> None:
    found = guessed(REGISTRY[name], data, draws=draws, seed=5)
    off = abs(found.mean() - scale_of(name).chance)
    assert 0 <= off < 4.0 * found.std(ddof=1) / math.sqrt(found.size)


@pytest.mark.parametrize("name", ["demo_croc", "demo_ts2"])
def test_guessing_metrics_get_chance_on_the_demo(name: str) -> None:
    guesses_get_chance(name, None, 30)


def test_ties_are_failures_so_a_constant_metric_is_far_below_a_guess_on_croc() -> None:
    benchmark = REGISTRY["demo_croc"]
    answers = benchmark.answers(None)
    constant = ScoreTable(pd.DataFrame({"same": 1.0}, index=list(answers.pair_ids)))
    assert headlines(benchmark, answers, constant).tolist() == [-1.0]


def by_errors(name: str, data: Path | None) -> float:
    """Headline of a metric that knows the number of errors."""
    answers: Any = REGISTRY[name].answers(data)
    scores = -answers.nodes["level"].to_numpy(np.float64)
    table = ScoreTable(pd.DataFrame({"errors": scores}, index=list(answers.pair_ids)))
    return float(headlines(REGISTRY[name], answers, table)[0])


def test_the_ceiling_of_demo_ts2_is_what_the_number_of_errors_reaches() -> None:
    assert by_errors("demo_ts2", None) == pytest.approx(scale_of("demo_ts2").ceiling)


@pytest.mark.paper
def test_chance_and_ceiling_of_ts2_are_a_guess_and_the_number_of_errors(assay_data: Path) -> None:
    reached = by_errors("ts2", assay_data)
    assert reached == pytest.approx(163 / 164)
    assert scale_of("ts2").ceiling == pytest.approx(reached, abs=5e-7)
    guesses_get_chance("ts2", assay_data, 40)


@pytest.mark.paper
@each_genai
def test_on_genai_bench_a_guess_loses_tied_pairs_and_the_ceiling_is_one_rating_against_the_others(
    name: str, assay_data: Path
) -> None:
    """Pairwise accuracy with tie calibration: chance is not 0.5, since a guess never ties."""
    answers: Any = REGISTRY[name].answers(assay_data)
    [rated] = answers.facets.values()
    _, sizes = np.unique(rated.means, return_counts=True)
    tied = (sizes * (sizes - 1)).sum() / (rated.means.size * (rated.means.size - 1))
    assert tied < 1 / 3  # else calling everything tied would be the better guess
    assert scale_of(name).chance == pytest.approx((1 - tied) / 2, abs=5e-5)
    found = one_against_the_others(rated.ratings, lambda x, y: tie_calibrated(x, y).accuracy)
    assert name == "genai_527" or found[0] == pytest.approx(0.641777, abs=5e-7)
    assert scale_of(name).ceiling == pytest.approx(found.mean(), abs=5e-7)
    people = REGISTRY[name].facts(answers)["How far people agree"]
    assert people["Pairwise accuracy"][0] == pytest.approx(found.mean())


@pytest.mark.paper
def test_the_ceiling_of_tifa160_is_one_rating_against_the_others(assay_data: Path) -> None:
    answers: Any = REGISTRY["tifa160"].answers(assay_data)
    table = pd.DataFrame(answers.facets["dsg_likert"].ratings)
    each = [
        table[k].corr(table.drop(columns=k).mean(axis=1), method="spearman") for k in table.columns
    ]
    assert scale_of("tifa160").ceiling == pytest.approx(mean(each), abs=5e-7)
    people = REGISTRY["tifa160"].facts(answers)["How far people agree"]
    assert people["Spearman ρ"][0] == pytest.approx(mean(each))


# Which rows compare images of one text alone --------------------------------------------------


@pytest.mark.parametrize(
    ("name", "within", "between"),
    [
        ("ts2", {"measure": "rank"}, None),
        ("croc_hum", {"facet": "forward_image"}, {"facet": "forward_text"}),
        ("croc_syn", {"facet": "image"}, {"facet": None}),
        ("gecko", {"measure": "pairwise_accuracy", "facet": "SxS"}, {"facet": "WL"}),
        ("winoground", {"measure": "image_score"}, {"measure": "text_score"}),
        ("sugarcrepe", None, {"measure": "accuracy"}),
        ("genai_arena", {"measure": "accuracy"}, {"measure": "exact_match"}),
        ("genai_ranking", {"measure": "top1_agreement"}, {"measure": "srcc"}),
        ("agiqa3k", None, {"measure": "srcc"}),
        ("evalmi_elements", None, {"measure": "auroc"}),
    ],
)
def test_a_benchmark_knows_which_rows_compare_images_of_one_text(
    name: str, within: dict[str, Any] | None, between: dict[str, Any] | None
) -> None:
    benchmark = load_registry()[name]
    assert benchmark.compares_images is (within is not None)
    for fields, expected in ((within, True), (between, False)):
        if fields is not None:
            row = Row(name, "1", "m", fields.get("measure", "accuracy"), 0.5,
                      facet=fields.get("facet"))  # fmt: skip
            assert benchmark.within_text(row) is expected

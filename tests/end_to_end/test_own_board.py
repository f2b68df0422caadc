"""A card written from scratch is a board: registry, submission, worker, `/v1` and the page."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from app import source_of
from benchmarks.families.benchmark import CardBenchmark
from benchmarks.registry import load_registry
from leaderboard.api.routes import routes
from leaderboard.store.folder import folder_store
from leaderboard.views.boards import BoardQuery, resolve
from leaderboard.web.benchmark_tab import board_html
from leaderboard.web.pages.docs_page import benchmark_html
from tests.benchmarks.families.cards import write_card
from tests.end_to_end.commands import evaluator
from tests.kit.html import harmless

HTML = "<img src=x onerror=alert(1)>${alert(2)}{{7*7}}"
MARKDOWN = "[click](javascript:alert(1)) **bold** <script>alert(3)</script>"
CARD = {
    "name": "my_votes",
    "title": f"My votes {HTML}",
    "family": "preference",
    "kind": "preference",
    "summary": f"Which image fits? {MARKDOWN}",
    "description": MARKDOWN,
    "revision": "1",
    "cluster": "prompt",
    "licence": HTML,
    "citation": HTML,
    "links": {HTML: "javascript:alert(1)"},
    "skills": {"animal": HTML},
    "headline": {"measure": "accuracy", "variant": "assay"},
    "tables": [
        {
            "name": "votes",
            "path": "my_votes/votes.csv",
            "columns": {one: one for one in ("id", "prompt", "a", "b", "better", "skill")},
        }
    ],
    "items": {"pair": "id", "text": "prompt", "image": ["a", "b"], "skills": "skill"},
    "preference": {"label": "better", "values": {"a": "left", "b": "right"}},
    "evaluation": {"measures": ["accuracy"]},
    "files": [
        {"path": "my_votes/votes.csv", "role": "answers", "beside": True, "supplied": MARKDOWN}
    ],
}
N = 40


def votes() -> str:
    lines = [f"{k},{HTML} {k},{k}a.png,{k}b.png,left,animal" for k in range(N)]
    return "\n".join(["id,prompt,a,b,better,skill", *lines, ""])


@pytest.mark.slow
def test_a_card_of_ones_own_is_a_board_answered_by_the_api_and_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_card(tmp_path / "cards" / "mine", CARD, votes_csv=votes())
    monkeypatch.setenv("ASSAY_BENCHMARKS", str(tmp_path / "cards"))
    benchmark = load_registry()["my_votes"]
    assert isinstance(benchmark, CardBenchmark)
    answers = benchmark.answers(None)
    scores = pd.DataFrame({"pair_id": answers.pair_ids})
    scores["knows"] = benchmark.gold_of_pairs(answers)
    scores["says_all_alike"] = 1.0
    scores.to_csv(tmp_path / "scores.csv", index=False)

    file = ("submit", tmp_path / "scores.csv", "--kind", "scores", "--benchmark", "my_votes")
    store = {"ASSAY_STORE": tmp_path / "store", "ASSAY_BENCHMARKS": tmp_path / "cards"}
    waiting = evaluator(*file, "--no-wait", ASSAY_USER="ada", **store)
    assert waiting.returncode == 0, waiting.stderr
    working = evaluator("worker", "--once", **store)
    assert working.returncode == 0, working.stderr

    source = source_of(folder_store(tmp_path / "store"))
    client = TestClient(Starlette(routes=routes(source)))
    rows = client.get("/v1/boards/my_votes").json()["rows"]
    assert [(row["metric"], row["value"], row["n_items"]) for row in rows] == [
        ("knows", 1.0, N),
        ("says_all_alike", 0.0, N),
    ]
    assert "my_votes" in {one["name"] for one in client.get("/v1/").json()["benchmarks"]}
    view = source.reader.view()
    page = board_html(resolve(BoardQuery("my_votes"), view.boards), view)
    assert "knows" in page and "says_all_alike" in page
    harmless(page, benchmark_html(source.cards, "my_votes"))

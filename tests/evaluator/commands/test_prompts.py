"""`prompts`: from word lists, or a table with labels, to a set that can be drawn, and its report."""

from __future__ import annotations

import json
from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from evaluator.generation.prompts import Choice, file_prompts
from tests.evaluator.commands.submitting import record, refused, said
from tests.evaluator.scorers.chat_server import MODEL, chat_server, completion, endpoints_file
from tests.evaluator.scorers.tiny_models import save_bert


def written(folder: Path, count: int = 400, label: str = "<script>alert(1)</script>") -> Path:
    """A pool in which half of the prompts have one label, and the others one of four."""
    draw = np.random.default_rng(0)
    labels = np.where(draw.random(count) < 0.5, label, draw.choice(["b", "c", "d", "e"], count))
    file = folder / "pool.csv"
    prompts = [f'a "{n}" of them, please' for n in range(count)]
    pd.DataFrame({"prompt": prompts, "kind": labels}).to_csv(file, index=False)
    return file


def test_a_balanced_set_is_written_with_what_it_was_chosen_by(tmp_path: Path) -> None:
    file, out = written(tmp_path), tmp_path / "set"
    np.save(tmp_path / "v.npy", np.random.default_rng(1).normal(size=(400, 4)))
    told = record(
        "prompts", "build", file, "--n", 50, "--out", out, "--dimension", "kind",
        "--embeddings", tmp_path / "v.npy", "--clusters", 2, "--seed", 3,
    )  # fmt: skip
    assert told == json.loads((out / "report.json").read_text())
    assert (told["chosen"], told["l1"], told["bound"], told["optimal"]) == (50, 0, 0, True)
    kinds = told["dimensions"]["kind"]
    assert (
        {one["chosen"] for one in kinds.values()}
        == {one["target"] for one in kinds.values()}
        == {10}
    )
    assert kinds["<script>alert(1)</script>"]["pool_share"] > 0.4
    assert [one["chosen"] for one in told["dimensions"]["cluster"].values()] == [25, 25]
    chosen = file_prompts(out / "prompts.csv", Choice(skills=("kind:b",)))
    assert len(chosen.prompts) == 10
    assert len(file_prompts(out / "prompts.csv", Choice()).prompts) == 50


class Tags(HTMLParser):
    """Names of all elements, and addresses that are fetched."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.fetched: list[str | None] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        self.fetched += [value for name, value in attrs if name in {"src", "href"}]


def test_the_page_shows_every_category_and_runs_and_fetches_nothing(tmp_path: Path) -> None:
    out = tmp_path / "set"
    printed = said(
        "prompts", "build", written(tmp_path), "--n", 50, "--out", out, "--dimension", "kind"
    )
    assert "50 of 400" in printed and "report.html" in printed
    page = Tags()
    page.feed((out / "report.html").read_text())
    assert page.seen.count("svg") == 5 and page.seen.count("rect") == 10
    assert "script" not in page.seen and page.fetched == []


def test_what_cannot_be_chosen_is_told_and_nothing_is_written(tmp_path: Path) -> None:
    file, out = written(tmp_path, 20), tmp_path / "set"
    assert "classify" in refused("no_dimensions", "prompts", "build", file, "--out", out, "--n", 5)
    words = ("prompts", "build", file, "--out", out, "--dimension", "kind", "--n")
    assert "20" in refused("too_few_prompts", *words, 20)
    (tmp_path / "bad.npy").write_bytes(b"no array")
    np.savez(tmp_path / "several.npz", vectors=np.ones((20, 2)))
    for name in ("bad.npy", "several.npz"):
        assert name in refused("bad_embeddings", *words, 5, "--embeddings", tmp_path / name)
    assert not out.exists()
    out.mkdir()
    refused("folder_exists", *words, 5)


def test_synthetic_prompts_are_a_table_that_can_be_drawn_and_chosen_from(tmp_path: Path) -> None:
    file = tmp_path / "synthetic.csv"
    words = ("prompts", "synthesise", "--n", 90, "--out", file, "--seed", 2)
    asked = tmp_path / "asked.jsonl"
    assert "15 of writing" in said(*words, "--questions", asked)
    assert record("questions", "check", asked) == []
    table = pd.read_csv(file, keep_default_na=False)
    assert table.columns.tolist() == ["prompt_id", "prompt", "skills", "elements"]
    assert (table["skills"].value_counts() == 15).all()
    assert len(file_prompts(file, Choice(skills=("count",))).prompts) == 15
    told = record(
        "prompts", "build", file, "--n", 30, "--out", tmp_path / "set", "--dimension", "skills"
    )
    assert {one["chosen"] for one in told["dimensions"]["skills"].values()} == {5}
    chosen = pd.read_csv(tmp_path / "set" / "prompts.csv", keep_default_na=False)
    assert chosen.equals(table.set_index("prompt_id").loc[chosen["prompt_id"]].reset_index())
    refused("file_exists", *words)
    before = file.read_bytes()
    said(*words, "--force")
    assert file.read_bytes() == before
    refused("same_file", *words, "--force", "--questions", file)
    refused("cannot_write", *words, "--force", "--questions", tmp_path / "none" / "q.jsonl")
    some = tmp_path / "some.csv"
    said("prompts", "synthesise", "--n", 4, "--out", some, "--kind", "relation")
    assert set(pd.read_csv(some)["skills"]) == {"relation"}
    refused(
        "unknown_kind", "prompts", "synthesise", "--n", 4, "--out", tmp_path / "x", "--kind", "x"
    )


def test_prompts_are_labelled_by_a_model_behind_an_endpoint_and_chosen_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool, out = tmp_path / "pool.csv", tmp_path / "labels.jsonl"
    texts = [f"{'a man' if n % 3 else 'a cake'} {n}" for n in range(12)]
    pd.DataFrame({"prompt_id": range(12), "prompt": texts}).to_csv(pool, index=False)

    other = tmp_path / "other.toml"
    other.write_text('[[dimension]]\nname = "mood"\nasks = "x"\ncategories = ["calm", "wild"]\n')

    def labelled(body: Mapping[str, Any]) -> Any:
        ((words,),) = [one["content"] for one in body["messages"]]
        said = words["text"].rpartition("Description:")[2]
        if " 5" in said:
            return completion("I cannot say.")
        subject = "People" if "man" in said else "Food & Beverage"
        return completion(f"subject: {subject}\nlogic: none\nstyle: Genre")

    with chat_server() as (server, address):
        server.behaviour = labelled
        monkeypatch.setenv("ASSAY_ENDPOINTS", str(endpoints_file(tmp_path, address)))
        words = ("prompts", "classify", pool, "--out", out, "--model", MODEL, "--endpoint", "here")
        told = said(*words)
        assert "11 prompts labelled" in told and "5: " in told
        asked = len(server.bodies)
        assert "11 were there" in said(*words)
        assert len(server.bodies) == asked, "replies are kept, too"
        nowhere = tmp_path / "none" / "l.jsonl"
        for place, code in (
            (pool, "output_is_input"),
            (tmp_path, "cannot_write"),
            (nowhere, "cannot_write"),
        ):
            refused(code, *words[:3], "--out", place, *words[5:])
        server.behaviour = lambda _: completion("", finish_reason="length")
        refused(
            "nothing_labelled",
            *words[:3],
            "--out",
            tmp_path / "x.jsonl",
            *words[5:6],
            MODEL,
            *words[7:],
            "--dimensions",
            other,
        )
    report = record(
        "prompts", "build", out, "--n", 6, "--out", tmp_path / "set", "--dimension", "subject"
    )
    subjects = report["dimensions"]["subject"]
    assert {name: one["chosen"] for name, one in subjects.items()} == {
        "People": 3, "Food & Beverage": 3,
    }  # fmt: skip


def test_prompts_are_embedded_by_an_encoder_and_clustered(tmp_path: Path) -> None:
    encoder, pool, out = tmp_path / "bert", tmp_path / "pool.csv", tmp_path / "vectors.npy"
    model, tokenizer = save_bert(encoder)
    texts = ["a cat", "  two dogs ", "a cat", "", "two dogs"] + [f"a cat {n}" for n in range(9)]
    pd.DataFrame({"prompt": texts}).to_csv(pool, index=False)
    words = ("prompts", "embed", pool, "--out", out, "--model", encoder, "--offline")
    assert "14 vectors of 8 numbers" in said(*words)
    found = np.load(out)
    for row, text in enumerate(texts):
        if text:
            states = model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0]
            mean = states.mean(0).detach().numpy()
            np.testing.assert_allclose(found[row], mean / np.linalg.norm(mean), atol=1e-5)
    assert not found[3].any()
    told = record(
        "prompts", "build", pool, "--n", 4, "--out", tmp_path / "set", "--embeddings", out,
        "--clusters", 2,
    )  # fmt: skip
    assert [one["chosen"] for one in told["dimensions"]["cluster"].values()] in ([2, 2], [3, 1])
    refused("file_exists", *words)
    pd.DataFrame({"text": texts}).to_csv(pool, index=False)
    refused("missing_columns", *words, "--force")
    pd.DataFrame({"prompt": ["", " "]}).to_csv(pool, index=False)
    refused("no_prompts", *words, "--force")

"""`generate` from endpoints, and of several models: folders that can be submitted, and one page of all."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import JSONResponse

from evaluator.commands.common import INTERRUPTED
from evaluator.generation.endpoint_run import ask_for_images
from evaluator.generation.folder import spread
from evaluator.generation.grid import ModelRequest, check_folders, read_grid
from evaluator.generation.manifest import parse_generations
from evaluator.generation.prompts import Prompt
from evaluator.submission.generations.checking import check_folder
from tests.evaluator.commands import submitting
from tests.evaluator.commands.submitting import Run, code_of, typed
from tests.evaluator.generation import tiny_pipelines
from tests.evaluator.generation.image_server import (
    PAINTER,
    USD,
    image_server,
    painted,
    painters_file,
    with_image,
)
from tests.evaluator.scorers.chat_server import KEY, ChatServer
from tests.evaluator.scorers.common import refusal
from tests.kit.html import named, read

OTHER = "sketcher"
PROMPTS = (Prompt("a", "two red cubes"), Prompt("b", "a <b>blue</b> ball"))
record = partial(submitting.record, "generate")


def paint_for(body: Any) -> Any:
    """What the models draw: each something else, and the second no cubes."""
    if body["model"] == OTHER and "cubes" in body["prompt"]:
        error = {"code": "moderation_blocked", "message": "No cubes."}
        return JSONResponse({"error": error}, status_code=400)
    return with_image(painted(f"{body['model']} {body['prompt']} {body['seed']}", side=64))


@pytest.fixture(scope="module")
def running() -> Iterator[tuple[ChatServer, str]]:
    with image_server() as served:
        yield served


@pytest.fixture
def served(
    running: tuple[ChatServer, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> ChatServer:
    server, address = running
    server.behaviour = paint_for
    server.bodies.clear()
    other = (
        f'takes_seed = true\n[endpoint.image_models."{OTHER}"]\nimage_usd = 0.5\ntakes_seed = true'
    )
    path = painters_file(tmp_path, address, other, key_variable="PAINTER_KEY")
    monkeypatch.setenv("ASSAY_ENDPOINTS", str(path))
    monkeypatch.setenv("PAINTER_KEY", KEY)
    return server


@pytest.fixture
def asked(tmp_path: Path) -> tuple[object, ...]:
    path = tmp_path / "prompts.csv"
    path.write_text(
        "".join(["prompt_id,prompt\n", *(f"{p.prompt_id},{p.text}\n" for p in PROMPTS)])
    )
    return ("--prompts", path, "--seeds", "1,2", "--out", tmp_path / "out")


HERE = ("--endpoint", "here")


@pytest.mark.slow
def test_a_folder_from_an_endpoint_is_submitted_as_it_is(
    served: ChatServer, run: Run, tmp_path: Path
) -> None:
    out = tmp_path / "painter"
    words = ("generate", *HERE, "--model", PAINTER, "--benchmark", "demo_prompts", "--out", out)
    plan = run(*words, "--dry-run", "--json").json
    assert (plan["images"], plan["usd"]) == (152, pytest.approx(152 * USD))
    assert not out.exists() and served.bodies == []
    done = run(*words, "--json")
    assert (done.code, done.json["drawn"], done.json["usable"]) == (0, 152, 152), done.err
    assert done.json["usd"] == pytest.approx(152 * USD)
    assert "6.0800 USD" in run(*words).told and len(served.bodies) == 152
    sent = run("submit", out, "--kind", "generations", "--no-wait", "--json")
    assert sent.code == 0, sent.err
    own = sent.json["submission"]
    assert (own["name"], own["images"]["present"]) == (PAINTER, 152)
    assert KEY not in "".join((done.out, done.err, sent.out, sent.err))


def test_size_and_quality_are_asked_for_and_priced(
    served: ChatServer, asked: tuple[object, ...], tmp_path: Path
) -> None:
    size = ("--width", 64, "--height", 64)
    more = (*size, "--quality", "hd", "--set", "style=vivid", "--licence", "mit", "--name", "p")
    said = record(*asked, *HERE, "--model", PAINTER, *more)
    assert (said["drawn"], said["failed"], said["problems"]) == (4, {}, [])
    body = served.bodies[0]
    assert (body["size"], body["quality"], body["style"]) == ("64x64", "hd", "vivid")
    manifest = parse_generations((tmp_path / "out" / "assay.toml").read_bytes())
    assert (manifest.name, manifest.licence) == ("p", "mit")
    elsewhere = (*asked[:-1], tmp_path / "none", *HERE, "--model", OTHER)
    told = typed("generate", *elsewhere, "--dry-run").output
    assert "2.0000 USD" in told


def test_a_run_that_stops_says_why_and_keeps_what_is_there(
    served: ChatServer,
    asked: tuple[object, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    running: tuple[ChatServer, str],
) -> None:
    painters_file(tmp_path, running[1], budget_usd=USD)
    words = ("generate", *asked, *HERE, "--model", PAINTER)
    assert code_of(typed(*words)) == "budget_spent"
    painters_file(tmp_path, running[1])
    monkeypatch.setattr("evaluator.scorers.models.endpoint_requests.LONGEST_WAIT_S", 0.0)
    honest = served.behaviour
    served.behaviour = lambda _: with_image(b"no image")
    failed = typed(*words, "--json")
    assert failed.exit_code == 1
    assert (sum(json.loads(failed.stdout)["failed"].values()), served.bodies[0]["n"]) == (3, 1)
    served.behaviour = honest

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("evaluator.generation.endpoint_run.as_completed", interrupted)
        stopped = typed(*words)
    assert stopped.exit_code == INTERRUPTED and "goes on" in stopped.output
    assert typed(*words).exit_code == 0


# Several models


@pytest.mark.slow
def test_a_grid_has_a_folder_for_each_model_and_one_page_and_goes_on_after_a_failure(
    served: ChatServer, asked: tuple[object, ...], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    models = (*HERE, "--models", PAINTER, "nobody", OTHER)
    said = record(*asked, *models, code=1)
    images = [(one["model"], one["images"], one["wanted"], one["usd"]) for one in said["models"]]
    assert images == [
        (PAINTER, 4, 4, pytest.approx(4 * USD)), ("nobody", 0, 4, 0.0), (OTHER, 2, 4, 1.0),
    ]  # fmt: skip
    assert [one["problem"] != "" for one in said["models"]] == [False, True, False]
    assert said["models"][2]["withheld"] == {"refused": 2}
    for name in (PAINTER, OTHER):
        assert check_folder(out / name, PROMPTS, (1, 2)).complete
    assert not (out / "nobody").exists()
    assert Path(said["page"]) == out / "grid.html"
    page = read((out / "grid.html").read_text())
    assert [picture["alt"] for picture in page.all("img")] == [
        f"two red cubes, by {PAINTER}", f"a <b>blue</b> ball, by {PAINTER}",
        f"a <b>blue</b> ball, by {OTHER}",
    ]  # fmt: skip
    assert all(one["src"].startswith("data:image/webp;base64,") for one in page.all("img"))
    assert not [one for one in page.nodes if one["href"] or one.tag in {"script", "link"}]
    assert page.texts(".missing") == ["not there", "refused: No cubes.", "not there"]
    named(page)
    before = len(served.bodies)
    told = typed("generate", *asked, *models)
    assert (told.exit_code, len(served.bodies)) == (1, before)
    assert "nobody" in told.output and "2 of 4" in told.output


def test_whatever_a_model_of_a_grid_raises_the_others_go_on(
    served: ChatServer,
    asked: tuple[object, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(request: Any, *_: Any) -> Any:
        if request.settings.model == OTHER:
            raise RuntimeError("CUDA error: an illegal memory access")
        return ask_for_images(request, *_)

    monkeypatch.setattr("evaluator.commands.generate.ask_for_images", broken)
    said = record(*asked, *HERE, "--models", OTHER, "--models", PAINTER, code=1)
    assert [one["images"] for one in said["models"]] == [0, 4]
    assert "RuntimeError: CUDA" in said["models"][0]["problem"]


@pytest.mark.slow
def test_pipelines_and_endpoints_stand_in_one_grid_file(
    served: ChatServer, asked: tuple[object, ...], tmp_path: Path
) -> None:
    tiny_pipelines.sd15().save_pretrained(tmp_path / "tiny")
    path = tmp_path / "grid.toml"
    path.write_text(
        f'[[model]]\nmodel = "{PAINTER}"\nendpoint = "here"\nwidth = 64\nheight = 64\n'
        f'[[model]]\nmodel = "{tmp_path / "tiny"}"\nname = "two-steps"\nsteps = 2\n'
        f'[[model]]\nmodel = "{tmp_path / "tiny"}"\nname = "one-step"\nsteps = 1\n'
        'set = { guidance_rescale = 0.5 }\n[[model]]\nmodel = "./none"\n'
    )
    planned = record(*asked, "--grid", path, "--dry-run", code=1)
    assert len(planned["models"]) == 3 and planned["page"] is None
    said = record(*asked, "--grid", path, code=1)
    assert [one["images"] for one in said["models"]] == [4, 4, 4, 0]
    assert [one["usd"] is None for one in said["models"]] == [False, True, True, True]
    manifests = [
        parse_generations((tmp_path / "out" / name / "assay.toml").read_bytes())
        for name in ("two-steps", "one-step")
    ]
    steps = [one.settings and one.settings.call["num_inference_steps"] for one in manifests]
    assert steps == [2, 1]


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--model", "a", "--models", "b"),
        ("--model", "a", "b"),
        ("a", "b"),
        (*HERE, "--model", PAINTER, "--steps", 3),
        (*HERE, "--model", PAINTER, "--device", "cpu"),
        (*HERE, "--model", PAINTER, "--width", 64),
        ("--model", "a", "--quality", "hd"),
        (*HERE, "--models", "a", "--models", "b", "--name", "c"),
        ("--grid", "grid.toml", "--steps", 3),
    ],
)
def test_options_that_mean_nothing_together_are_wrong_usage(
    asked: tuple[object, ...], words: tuple[object, ...]
) -> None:
    assert typed("generate", *asked, *words).exit_code == 2


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("model = [", "grid.toml"),
        ("", "model"),
        ('[[model]]\nmodel = "a"\nstepps = 3\n[[model]]\n', "stepps"),
        ('[[model]]\nmodel = "a"\nendpoint = "here"\nsteps = 3\n', "steps"),
        ('[[model]]\nmodel = "a"\nquality = "hd"\n', "quality"),
    ],
)
def test_a_grid_file_is_refused_with_what_is_wrong(tmp_path: Path, text: str, named: str) -> None:
    path = tmp_path / "grid.toml"
    path.write_text(text)
    with refusal("bad_grid", named):
        read_grid(path)
    with refusal("bad_grid", "none.toml"):
        read_grid(tmp_path / "none.toml")


def test_folders_that_cannot_be_are_refused_before_anything_is_drawn(
    served: ChatServer, asked: tuple[object, ...], tmp_path: Path
) -> None:
    (tmp_path / "out").write_text("a file")
    unwritable = typed("generate", *asked, *HERE, "--models", PAINTER)
    assert (code_of(unwritable), served.bodies) == ("cannot_write", [])
    alike = typed("generate", *asked, *HERE, "--models", PAINTER, "--models", f"x/{PAINTER}")
    assert (code_of(alike), served.bodies) == ("bad_grid", [])
    check_folders([ModelRequest(model="a/x"), ModelRequest(model="b/x", name="y")])


def test_of_many_prompts_those_that_are_shown_reach_from_the_first_to_the_last() -> None:
    assert spread([1, 2], 3) == [1, 2]
    found = spread(range(1000), 60)
    assert (len(found), found[0], found[-1]) == (60, 0, 999)

"""What a manifest of generations says of its model, and how its keys are checked."""

from __future__ import annotations

import pytest

from evaluator.generation.manifest import GenerationsManifest, manifest_text, parse_generations
from evaluator.generation.settings import Settings
from evaluator.manifest import manifest_reading
from leaderboard.models.model_card import ModelCard

CALL = {"num_inference_steps": 28, "guidance_scale": 4.5}


def settings(**call: object) -> Settings:
    return Settings.model_validate(
        {
            "model": "ada/painter", "revision": "1", "pipeline": "P", "scheduler": "S",
            "dtype": "float32", "device": "cpu", "safety_checker": "off", "call": call,
        }
    )  # fmt: skip


def problems(text: str) -> list[str]:
    reading = manifest_reading(text.encode(), GenerationsManifest)
    assert reading.manifest is not None
    return [problem.message for problem in reading.problems]


def test_every_key_of_the_card_is_read_and_written() -> None:
    text = (
        'name = "a"\nmodel = "ada/painter"\nrevision = "1"\nparameters = 5\nsteps = 3\n'
        'guidance = 2.5\ndrawn_on = 2026-01-05\nselection = "best_of"\nbest_of = 4\n'
        'selected_by = "clip"\n'
    )
    manifest = parse_generations(text.encode())
    assert manifest.model_card() == ModelCard(
        model="ada/painter", revision="1", parameters=5, steps=3, guidance=2.5,
        drawn_on="2026-01-05", selection="best_of", best_of=4, selected_by="clip",
    )  # fmt: skip
    assert parse_generations(manifest_text(manifest)) == manifest


def test_steps_and_guidance_are_taken_from_the_settings_where_they_are_not_given() -> None:
    made = GenerationsManifest(name="a", settings=settings(**CALL))
    assert (made.model_card().steps, made.model_card().guidance) == (28, 4.5)
    given = made.model_copy(update={"steps": 4, "guidance": 0.0})
    assert (given.model_card().steps, given.model_card().guidance) == (4, 0.0)
    odd = GenerationsManifest(
        name="a", settings=settings(num_inference_steps=True, guidance_scale="x")
    )
    assert (odd.model_card().steps, odd.model_card().guidance) == (None, None)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ('selection = "best_of"', "selection: it needs best_of"),
        ("best_of = 4", 'best_of: it goes with selection = "best_of" alone'),
        ('selection = "best_of"\nbest_of = 1', "best_of: Input should be greater"),
        ('drawn_on = "2026-02-30"', "drawn_on: is no day"),
        ("drawn_on = 2026-01-01T00:00:00", "drawn_on"),
        ("steps = 0", "steps: "),
        ("guidance = nan", "guidance: "),
        ("seeds = [-1]", "seeds.0: "),
        (f"seeds = [{2**64}]", "seeds.0: "),
    ],
)
def test_what_is_wrong_is_told_with_its_key(keys: str, said: str) -> None:
    assert any(told.startswith(said) for told in problems(f'name = "a"\n{keys}\n'))


def test_contradictions_are_told_beside_other_mistakes() -> None:
    told = problems('name = "a b"\nbest_of = 4\nsteps = 0\nextra = 1\n')
    assert len(told) == 4

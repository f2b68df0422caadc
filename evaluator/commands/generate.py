"""`generate`: images for the prompts of a prompt set, with any text-to-image pipeline of diffusers."""

from __future__ import annotations

import json

import typer

from benchmarks.prompt_sets.prompt_set import SEEDS
from evaluator.commands import generate_options as options
from evaluator.commands.common import DataOption, JsonOption, console
from evaluator.commands.generate_options import (
    Checker,
    Precision,
    Seeding,
    prompts_of,
    seeds_of,
    setting,
)
from evaluator.commands.generate_run import Asked, Loading, draw_outline
from evaluator.generation.checkpoint import locate
from evaluator.generation.folder import RunFolder
from evaluator.generation.overview import Outline, facts_table
from evaluator.generation.prompts import Choice
from evaluator.generation.recipes import Overrides


def generate(
    model: options.ModelOption,
    out: options.OutOption,
    benchmark: options.BenchmarkOption = None,
    prompts: options.PromptsOption = None,
    data: DataOption = None,
    seeds: options.SeedsOption = None,
    skill: options.SkillOption = None,
    split: options.SplitOption = None,
    limit: options.LimitOption = None,
    recipe: options.RecipeOption = None,
    steps: options.StepsOption = None,
    guidance: options.GuidanceOption = None,
    width: options.WidthOption = None,
    height: options.HeightOption = None,
    negative_prompt: options.NegativePromptOption = None,
    settings: options.SettingsOption = None,
    seed_mode: options.SeedModeOption = Seeding.PER_IMAGE,
    batch_size: options.BatchSizeOption = 1,
    revision: options.RevisionOption = "",
    variant: options.VariantOption = "",
    device: options.DeviceOption = "auto",
    dtype: options.DtypeOption = Precision.AUTO,
    safety_checker: options.CheckerOption = Checker.ON,
    allow_pickle: options.AllowPickleOption = False,
    offline: options.OfflineOption = False,
    name: options.NameOption = "",
    licence: options.LicenceOption = "",
    dry_run: options.DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Draw the prompts of a prompt set into a folder that can be submitted.

    One PNG for each prompt and seed, a table images.jsonl with what made each, assay.toml and a
    contact sheet. Run it again to go on: only what is missing or damaged is drawn.

    Example: python -m evaluator generate --model stabilityai/stable-diffusion-xl-base-1.0
    --benchmark gecko_s --seeds 42,3407,5096 --out sdxl --data data
    """
    choice = Choice(tuple(skill or ()), tuple(split or ()), limit)
    chosen = prompts_of(benchmark, prompts, data, choice)
    wanted = seeds_of(seeds, chosen, SEEDS)
    overrides = Overrides(
        steps=steps,
        guidance=guidance,
        width=width,
        height=height,
        negative_prompt=negative_prompt,
        call=dict(setting(text) for text in settings or ()),
    )
    checkpoint = locate(
        model,
        revision=revision,
        variant=variant,
        allow_pickle=allow_pickle,
        offline=offline,
        configs_only=dry_run,
    )
    outline = Outline.of(
        checkpoint,
        recipe=recipe,
        overrides=overrides,
        prompts=chosen,
        seeds=wanted,
        folder=RunFolder(out),
    )
    facts = outline.facts()
    if not as_json:
        console().print(facts_table(facts))
    elif dry_run:
        typer.echo(json.dumps(facts, ensure_ascii=False))
    if dry_run:
        return
    loading = Loading(device, dtype, variant, allow_pickle, safety_checker is Checker.ON)
    asked = Asked(seed_mode.value, batch_size, name, licence)
    draw_outline(outline, loading, asked, as_json=as_json)

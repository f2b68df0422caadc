"""Generators and their dates: one entry each, found by any of its names, with a source that holds the month."""

from datetime import date
from pathlib import Path

import pytest

from benchmarks import generators as module
from benchmarks.generators import find_generator, generators, year_of
from benchmarks.model_boards import TITLES
from benchmarks.registry import load_registry


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("SDXL_Base", "SDXL 1.0"),
        ("sdxl-base", "SDXL 1.0"),
        ("ali_flux_schnell", "FLUX.1 schnell"),
        ("gpt-image-1", "GPT-Image-1"),
        ("stable_diffusion_v1_5", "Stable Diffusion 1.5"),
        ("mini_dalle", TITLES["mini_dalle"]),
    ],
)
def test_a_generator_is_found_by_any_of_its_names(name: str, found: str) -> None:
    known = find_generator(name)
    assert known is not None
    assert known.name == found


@pytest.mark.parametrize("name", ["", "midjourney", "xl2.2", "flux", "imagen4-ultra", "clip"])
def test_what_has_no_sure_date_is_not_guessed(name: str) -> None:
    assert find_generator(name) is None


def test_dates_are_months_and_those_of_papers_are_in_their_numbers() -> None:
    for one in generators():
        assert one.released.day == 1, one.name
        assert one.year == year_of(one.released)
        if "arxiv.org/abs/" in one.source:
            number = one.source.rpartition("/")[2]
            assert f"{one.released:%y%m}" == number[:4], one.name
            assert one.verified, one.name
        assert one.simulated is one.name.startswith("demo-")


def test_the_models_of_bundled_benchmarks_have_dates_or_are_named_here() -> None:
    known = load_registry()
    models = {
        "tifa160": "mini_dalle vq_diffusion stable_diffusion_v1_1 stable_diffusion_v2_1",
        "genai_1600": "DALLE_3 SDXL_Turbo DeepFloyd_I_XL_v1 Midjourney_6 SDXL_2_1 SDXL_Base",
        "demo_gecko": "demo-alpha demo-beta demo-gamma demo-delta",
    }
    assert models.keys() <= known.keys()
    assert all(find_generator(name) for of in models.values() for name in of.split())


def test_a_name_of_two_generators_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = '[[generator]]\nname = "{}"\nreleased = 2024-01-01\nsource = "x"\nverified = false\n'
    path = tmp_path / "generators.toml"
    path.write_text(entry.format("A b") + entry.format("a-B"))
    monkeypatch.setattr(module, "FILE", path)
    module.generators.cache_clear()
    module._by_name.cache_clear()
    with pytest.raises(ValueError, match="names A b and a-B"):
        find_generator("ab")
    monkeypatch.undo()
    module.generators.cache_clear()
    module._by_name.cache_clear()


def test_a_date_in_years_keeps_its_calendar_year() -> None:
    assert year_of(date(2024, 1, 1)) == 2024.0
    assert year_of(date(2023, 7, 2)) == pytest.approx(2023.5, abs=0.002)
    assert int(year_of(date(2024, 12, 31))) == 2024

"""The form of a scoring module."""

from __future__ import annotations

import pytest

from benchmarks.errors import SubmitterError
from evaluator.submission.archive import Content
from evaluator.submission.validate import validate_module


def module(manifest: str = 'name = "m"', **files: bytes) -> Content:
    return Content({"assay.toml": manifest.encode(), "scorer.py": b"class Scorer: ...", **files})


def refused(content: Content, code: str) -> str:
    with pytest.raises(SubmitterError) as caught:
        validate_module(content, {})
    assert caught.value.code == code
    return str(caught.value)


def test_a_name_is_all_a_manifest_needs() -> None:
    manifest = validate_module(module(), {}).manifest
    assert (manifest.name, manifest.version, manifest.entry_point) == ("m", "1", "scorer:Scorer")


def test_every_problem_of_a_manifest_is_told_at_once() -> None:
    said = refused(module('name = "<b>"\nversoin = "2"\nentry_point = "x"'), "bad_manifest")
    for part in ("name", "versoin", "entry_point", "Known keys"):
        assert part in said


def test_a_manifest_that_is_not_toml_names_the_line() -> None:
    assert "line 2" in refused(module('name = "m"\nnonsense\nx = 1'), "bad_manifest")


def test_a_manifest_in_a_subfolder_is_pointed_at() -> None:
    content = Content({"a/assay.toml": b'name = "m"', "b.py": b""})
    assert "'a/assay.toml'" in refused(content, "no_manifest")


def test_a_missing_entry_point_names_the_file() -> None:
    said = refused(module('name = "m"\nentry_point = "other:Scorer"'), "no_entry_point")
    assert "other.py" in said


def test_weights_must_be_there_and_be_safetensors() -> None:
    wants = 'name = "m"\nweights = "w.safetensors"'
    refused(module(wants), "no_weights")
    refused(module(wants, **{"w.safetensors": b"\x80\x04pickle"}), "bad_weights")
    good = (2).to_bytes(8, "little") + b"{}"
    assert validate_module(module(wants, **{"w.safetensors": good}), {}).manifest.weights
    assert "weights" in refused(module('name = "m"\nweights = "w.pt"'), "bad_manifest")


def test_an_unknown_benchmark_is_named() -> None:
    assert "'x'" in refused(module('name = "m"\nbenchmarks = ["x"]'), "unknown_benchmark")


def test_links_must_be_web_addresses() -> None:
    refused(module('name = "m"\n[links]\nhome = "javascript:alert(1)"'), "bad_manifest")


@pytest.mark.parametrize(
    "text",
    ["links = " + "[" * 20_000, "links = " + "{a=" * 5_000, "range = [0, " + "1" * 5_000 + "]"],
)
def test_a_manifest_made_to_break_its_reader_is_refused(text: str) -> None:
    assert "not TOML" in refused(module(f'name = "m"\n{text}'), "bad_manifest")


def test_a_manifest_that_is_not_unicode_is_refused() -> None:
    refused(Content({"assay.toml": b'name = "\xff"', "scorer.py": b""}), "bad_manifest")
    refused(module('name = "m"\ndescription = "\\ud800"'), "bad_manifest")


def test_a_byte_order_mark_is_no_part_of_the_manifest() -> None:
    assert validate_module(module('\ufeffname = "m"'), {}).manifest.name == "m"


@pytest.mark.parametrize("name", ["pair_id", "element_id", "element_score", "score"])
def test_a_metric_cannot_be_named_like_a_column(name: str) -> None:
    assert "cannot name a metric" in refused(module(f'name = "{name}"'), "bad_manifest")


@pytest.mark.parametrize("limits", ["[nan, 1]", "[0, inf]", "[1, 0]", "[1, 1]"])
def test_a_range_is_two_finite_numbers_in_order(limits: str) -> None:
    assert "range" in refused(module(f'name = "m"\nrange = {limits}'), "bad_manifest")


def test_a_benchmark_is_named_once() -> None:
    said = refused(module('name = "m"\nbenchmarks = ["ts2", "ts2"]'), "bad_manifest")
    assert "'ts2' is named more than once" in said


def test_what_it_was_trained_on_need_not_be_here_but_has_the_form_of_a_name() -> None:
    good = validate_module(module('name = "m"\ntrained_on = ["croc_hum"]'), {}).manifest
    assert good.trained_on == ("croc_hum",)
    assert "'<b>'" in refused(module('name = "m"\ntrained_on = ["<b>"]'), "bad_manifest")


def test_weights_whose_header_is_nested_too_deep_are_refused() -> None:
    deep = b"[" * 200_000
    weights = len(deep).to_bytes(8, "little") + deep
    wants = 'name = "m"\nweights = "w.safetensors"'
    refused(module(wants, **{"w.safetensors": weights}), "bad_weights")

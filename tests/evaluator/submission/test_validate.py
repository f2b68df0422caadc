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

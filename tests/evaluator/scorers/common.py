"""Refusals by their code, and heavy libraries by name.

A library is imported where a test first uses it: collecting tests stays light.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from benchmarks.errors import AssayError, SubmitterError


class _Later:
    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith(("_", "pytest")):
            raise AttributeError(attribute)
        return getattr(import_module(self._name), attribute)


def later(name: str) -> Any:
    """Stands for a module."""
    return _Later(name)


torch, hf = later("torch"), later("transformers")
safetensors = later("safetensors.torch")


def refusal(code: str, *named: str, kind: type[AssayError] = SubmitterError) -> Any:
    """An error of a code whose message and hint name some things."""

    def fits(error: AssayError) -> bool:
        told = f"{error.message} {error.hint}"
        return error.code == code and all(name in told for name in named)

    return pytest.raises(kind, check=fits)

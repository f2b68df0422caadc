"""The one validator of a scoring module: the command line, the page and the worker call it."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.errors import SubmitterError
from benchmarks.schema import Benchmark
from evaluator.manifest import FILE
from evaluator.submission.archive import Content
from evaluator.submission.manifest import Manifest, parse_manifest

MAX_WEIGHTS_HEADER = 16 << 20
"""Of a safetensors file, in bytes: some hundred for each tensor."""


@dataclass(frozen=True)
class ScoringModule:
    """A scoring module whose form was checked; its code has not run."""

    manifest: Manifest
    content: Content


def validate_module(content: Content, registry: Mapping[str, Benchmark]) -> ScoringModule:
    """Check manifest, entry point and weights without running anything.

    Raises:
        SubmitterError: `no_manifest`, `bad_manifest`, `no_entry_point`, `no_weights`,
            `bad_weights` or `unknown_benchmark`.
    """
    if FILE not in content.files:
        near = sorted(n for n in content.files if n.endswith(FILE))
        where = f" (there is one at {near[0]!r}; it must be at the top)" if near else ""
        raise SubmitterError(
            "no_manifest",
            f"There is no {FILE} at the top of the archive{where}.",
            'The shortest one is: name = "my-metric"',
        )
    manifest = parse_manifest(content.files[FILE])
    _check_entry_point(manifest, content)
    _check_weights(manifest, content)
    for name in manifest.benchmarks:
        if name not in registry:
            raise SubmitterError(
                "unknown_benchmark",
                f"{FILE} asks for the benchmark {name!r}, which is not here.",
                f"Known benchmarks: {', '.join(sorted(registry))}.",
            )
    return ScoringModule(manifest, content)


def _check_entry_point(manifest: Manifest, content: Content) -> None:
    # That the file holds the class is found out in the sandbox: nothing of a stranger's source is
    # parsed out here, where a crafted file could bring the parser down.
    if manifest.module_file not in content.files:
        raise SubmitterError(
            "no_entry_point",
            f"The entry point {manifest.entry_point!r} needs a file {manifest.module_file}, "
            "which is missing.",
            f"The archive holds: {', '.join(sorted(content.files)[:8])}.",
        )


def _check_weights(manifest: Manifest, content: Content) -> None:
    if not manifest.weights:
        return
    data = content.files.get(manifest.weights)
    if data is None:
        raise SubmitterError(
            "no_weights",
            f"{FILE} names the weights {manifest.weights!r}, which the archive does not hold.",
            "Put the file in, or correct its path.",
        )
    # The header of a safetensors file: eight bytes of length, then JSON of that length.
    try:
        (length,) = struct.unpack_from("<Q", data)
        if not 2 <= length <= min(len(data) - 8, MAX_WEIGHTS_HEADER) or not isinstance(
            json.loads(data[8 : 8 + length]), dict
        ):
            raise ValueError("its header does not fit its size")
    except (struct.error, ValueError, RecursionError) as error:
        raise SubmitterError(
            "bad_weights",
            f"{manifest.weights!r} is not a safetensors file: {error}.",
            "Save the weights with the safetensors library.",
        ) from error

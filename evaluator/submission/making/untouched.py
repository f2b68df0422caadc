"""Detection of scoring modules that are an unchanged template of `init`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from evaluator.submission.archives.content import Content
from evaluator.submission.making.skeletons import SkeletonKind, module_files

_SOURCES = ".py"
_BOM = b"\xef\xbb\xbf"
_BLANK = 16
"""Bytes that an empty source may have: a byte order mark and ends of lines."""
_NOTE = (
    "Its code is that of the {kind} template, unchanged. It may stand on the boards, but is never "
    "recommended and never judges text-to-image models; change what it does before you send it."
)


def template_of(content: Content) -> str:
    """The kind of the template whose code a module is; empty where it has code of its own.

    All source files are compared, but for ends of lines and a byte order mark. Files that no
    template reads (manifest, README, anything that is no source) do not count, nor do empty ones.

    Args:
        content: the files of the module.
    """
    paths = {name for name in content.files if _is_source(name) and not _is_empty(content, name)}
    for kind, sources in _templates().items():
        if paths == sources.keys() and all(_same(content, *one) for one in sources.items()):
            return kind
    return ""


def template_notes(kind: str) -> tuple[str, ...]:
    """What its sender should read of an unchanged template; nothing of any other module.

    Args:
        kind: as `template_of` gives it.
    """
    return (_NOTE.format(kind=kind),) if kind else ()


@cache
def _templates() -> Mapping[str, Mapping[str, bytes]]:
    """Kind to its sources that hold anything, by path."""
    return {
        kind.value: {
            name: _normalised(source)
            for name, source in module_files(kind, "any-name").items()
            if _is_source(name) and source
        }
        for kind in SkeletonKind
        if kind is not SkeletonKind.GENERATIONS
    }


def _is_source(name: str) -> bool:
    return name.endswith(_SOURCES)


def _is_empty(content: Content, name: str) -> bool:
    return content.files[name].n_bytes <= _BLANK and not _normalised(content.head(name, _BLANK))


def _same(content: Content, name: str, source: bytes) -> bool:
    # However its lines end, it is no longer than that; a longer file is not read whole.
    most = 2 * len(source) + len(_BOM)
    return _normalised(content.head(name, most + 1)) == source


def _normalised(source: bytes) -> bytes:
    lines = source.removeprefix(_BOM).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return lines.rstrip(b"\n")

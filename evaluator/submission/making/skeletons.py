"""The files of a new submission, made from the templates; nothing is written here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from string import Template

from evaluator.manifest import FILE
from evaluator.submission.making.wrapping import ClassFile

TEMPLATES = Path(__file__).resolve().parents[2] / "templates"
MY_METRIC = "my_metric"
_FOR_CHECKERS = re.compile(r"  # (?:type: ignore|noqa).*$", re.MULTILINE)


class SkeletonKind(StrEnum):
    """What `init` can begin."""

    PLAIN = "plain"
    DUAL_ENCODER = "dual-encoder"
    VLM = "vlm"
    TS2 = "ts2"
    CROC = "croc"
    GENERATIONS = "generations"


DESCRIPTIONS = {
    SkeletonKind.PLAIN: "Looks for the colours that a prompt names. Say here what yours does.",
    SkeletonKind.DUAL_ENCODER: "Compares the colours of an image with those of the prompt. Say here "
    "what yours does.",
    SkeletonKind.VLM: "The probability that a vision-language model says Yes when it is asked "
    "whether the image shows the prompt.",
    SkeletonKind.TS2: "A metric of T2IScoreScore's package. Say here what it does.",
    SkeletonKind.CROC: "A metric of CROC's collection. Say here what it does.",
}
_BOUNDED = "range = [0.0, 1.0]"
_UNBOUNDED = "# range = [0.0, 1.0]"
_EXAMPLE_MODEL = '# models = ["owner/name@0123456789abcdef0123456789abcdef01234567"]'

_TS2_BASES = (
    "from T2IMetrics.base import CorrelationMetric, LikelihoodMetric, T2IMetric\n\n"
    '__all__ = ["CorrelationMetric", "LikelihoodMetric", "T2IMetric"]\n'
)
_CROC_BASE = 'from metrics.BaseMetric import BaseMetric\n\n__all__ = ["BaseMetric"]\n'
_CROC_ROOT = (
    "from project_root import CACHE_DIR, ROOT_DIR, join_with_root\n\n"
    '__all__ = ["CACHE_DIR", "ROOT_DIR", "join_with_root"]\n'
)
_WRITTEN: Mapping[SkeletonKind, Mapping[str, str]] = {
    SkeletonKind.TS2: {
        "T2IMetrics/__init__.py": _TS2_BASES,
        "T2IMetrics/correlation/__init__.py": _TS2_BASES,
        "T2IMetrics/correlation/base.py": _TS2_BASES,
        "T2IMetrics/likelihood/__init__.py": _TS2_BASES,
        "T2IMetrics/likelihood/base.py": _TS2_BASES,
    },
    SkeletonKind.CROC: {
        "metrics/__init__.py": "",
        "vmen/__init__.py": "",
        "vmen/metrics/__init__.py": "",
        "vmen/metrics/BaseMetric.py": _CROC_BASE,
        "vmen/project_root.py": _CROC_ROOT,
    },
}
"""Files of a line or two, by their place."""
_COPIED: Mapping[SkeletonKind, Mapping[str, str]] = {
    SkeletonKind.PLAIN: {"scorer.py": "plain/scorer.py"},
    SkeletonKind.DUAL_ENCODER: {"scorer.py": "dual_encoder/scorer.py"},
    SkeletonKind.VLM: {"scorer.py": "vlm/scorer.py"},
    SkeletonKind.TS2: {
        "scorer.py": "ts2/scorer.py",
        "picture_files.py": "wrapped/picture_files.py",
        "T2IMetrics/base.py": "ts2/base.py",
    },
    SkeletonKind.CROC: {
        "scorer.py": "croc/scorer.py",
        "picture_files.py": "wrapped/picture_files.py",
        "metrics/BaseMetric.py": "croc/base_metric.py",
        "project_root.py": "croc/project_root.py",
    },
}
"""Place in the new folder to template."""
_PACKAGES = {SkeletonKind.TS2: "T2IMetrics", SkeletonKind.CROC: "metrics"}
_DEEP_PACKAGES = {SkeletonKind.TS2: "T2IMetrics/correlation", SkeletonKind.CROC: "vmen/metrics"}


def provided(kind: SkeletonKind) -> frozenset[str]:
    """Modules that a wrapper writes beside the wrapped file."""
    places = {**_WRITTEN.get(kind, {}), **_COPIED[kind]}
    modules = {place.removesuffix(".py").replace("/", ".") for place in places}
    return frozenset(name.removesuffix(".__init__") for name in modules)


def taken_names(kind: SkeletonKind) -> frozenset[str]:
    """Names that a wrapped file may not have."""
    return frozenset({"__init__", "base" if kind is SkeletonKind.TS2 else "BaseMetric"})


def module_files(
    kind: SkeletonKind, name: str, *, wrapped: ClassFile | None = None, model: str = ""
) -> dict[str, bytes]:
    """Every file of a new scoring module.

    Args:
        kind: which skeleton; not generations.
        name: on the boards, checked.
        wrapped: the file of an existing class, for a wrapper; None: an example of ours.
        model: `owner/name@commit`, for a skeleton that needs one.
    """
    texts = dict(_WRITTEN.get(kind, {}))
    texts |= {place: _template(source) for place, source in _COPIED[kind].items()}
    files = {place: text.encode() for place, text in texts.items()}
    entry = ""
    if kind in _PACKAGES:
        place, content, entry = _placed(kind, wrapped)
        files[place] = content
        files["scorer.py"] = _pointed(files["scorer.py"], _PACKAGES[kind], entry)
    files[FILE] = _manifest(kind, name, model, wrapped.models if wrapped else ()).encode()
    readme = Template(_template(f"{kind.replace('-', '_')}/README.md"))
    files["README.md"] = readme.substitute(name=name, wrapped=entry).encode()
    return files


def _placed(kind: SkeletonKind, wrapped: ClassFile | None) -> tuple[str, bytes, str]:
    """Place, bytes and `module:Class` of the wrapped file, or of an example."""
    if wrapped is None:
        place = f"{_PACKAGES[kind]}/{MY_METRIC}.py"
        content, name = _template(f"{kind}/{MY_METRIC}.py").encode(), "MyMetric"
    else:
        package = (_DEEP_PACKAGES if wrapped.deep else _PACKAGES)[kind]
        place, content = f"{package}/{wrapped.path.name}", wrapped.content
        name = wrapped.class_name
    return place, content, f"{place.removesuffix('.py').replace('/', '.')}:{name}"


def _pointed(adapter: bytes, package: str, entry: str) -> bytes:
    example = f'WRAPPED = "{package}.{MY_METRIC}:MyMetric"'.encode()
    return adapter.replace(example, f'WRAPPED = "{entry}"'.encode())


def _manifest(kind: SkeletonKind, name: str, model: str, loads: tuple[str, ...]) -> str:
    models = _EXAMPLE_MODEL
    if kind is SkeletonKind.VLM:
        models = f'models = ["{model}"]' if model else f"{_EXAMPLE_MODEL}\nmodels = []"
    elif loads:
        named = ", ".join(f'"{_as_comment(one)}@COMMIT"' for one in loads)
        models = f"# It loads these; write their commits and take the # away:\n# models = [{named}]"
    return Template(_template(FILE)).substitute(
        name=name,
        description=DESCRIPTIONS[kind],
        entry_file="scorer.py",
        models=models,
        range=_UNBOUNDED if kind in _PACKAGES else _BOUNDED,
    )


def _as_comment(text: str) -> str:
    return "".join(c for c in text if c.isprintable())[:200]


def _template(name: str) -> str:
    """A template without what is there for our own checkers."""
    return _FOR_CHECKERS.sub("", (TEMPLATES / name).read_text(encoding="utf-8"))

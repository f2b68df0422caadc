"""The files of a new submission, made from the templates, and which modules are one unchanged."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from string import Template

from benchmarks.errors import SubmitterError
from benchmarks.prompt_sets.folder_template import FolderTemplate, template_files
from evaluator.generation.prompts import ChosenPrompts
from evaluator.manifest import FILE
from evaluator.submission.archives.archive import Content

MAX_BYTES = 1 << 20


@dataclass(frozen=True)
class Remark:
    """Something of the file that its author has to see to."""

    line: int  # in the file
    message: str  # what, in a sentence


@dataclass(frozen=True)
class ClassFile:
    """A file with a metric class, as its author wrote it."""

    path: Path  # of the author's machine
    content: bytes  # its bytes
    class_name: str  # of the metric
    deep: bool  # whether it imports from the package above its own
    remarks: tuple[Remark, ...]  # what a run lacks
    models: tuple[str, ...]  # of the Hub that it loads by name


def read_class(place: str, provided: frozenset[str], taken: frozenset[str]) -> ClassFile:
    """Read `path.py:Class`; the class may be left out where there is one only."""
    written, _, name = place.rpartition(":")
    path, name = (Path(written), name) if name.isidentifier() and written else (Path(place), "")
    content, tree = _parsed(path)
    if not path.stem.isidentifier() or path.suffix != ".py" or path.stem in taken:
        raise SubmitterError(
            "bad_file_name",
            f"{path.name} cannot be imported under that name beside {', '.join(sorted(taken))}.",
            "Give it a plain name, for example my_metric.py.",
        )
    imports = list(_imports(tree))
    loads = dict.fromkeys(_loaded_models(tree))
    return ClassFile(
        path,
        content,
        _chosen_class(tree, name, path),
        deep=any(level > 1 for level, _, _ in imports),
        remarks=tuple(_lacking(imports, provided)),
        models=tuple(loads),
    )


def _parsed(path: Path) -> tuple[bytes, ast.Module]:
    try:
        if not path.is_file():
            raise SubmitterError("file_missing", f"There is no file {path}.", "Check the path.")
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise SubmitterError(
            "file_unreadable",
            f"{path} cannot be read: {error.strerror or error}.",
            "Choose another.",
        ) from error
    if len(content) > MAX_BYTES:
        raise SubmitterError(
            "bad_source",
            f"{path} has more than {MAX_BYTES} bytes.",
            "Keep the class in a file of its own.",
        )
    try:
        return content, ast.parse(content, filename=str(path))
    except SyntaxError as error:
        message = f"{path}:{error.lineno}: {error.msg}."
        raise SubmitterError("bad_source", message, "Mend that line.") from error
    except (ValueError, RecursionError) as error:
        raise SubmitterError("bad_source", f"{path} is no Python: {error}.") from error


def _chosen_class(tree: ast.Module, name: str, path: Path) -> str:
    there = [node.name for node in tree.body if isinstance(node, ast.ClassDef)]
    if name in there or (not name and len(there) == 1):
        return name or there[0]
    listed = ", ".join(there) or "none"
    if name:
        raise SubmitterError(
            "no_class", f"{path} has no class {name}; it has {listed}.", "Name one of these."
        )
    if not there:
        raise SubmitterError("no_class", f"{path} has no class.", "Name the file that has it.")
    raise SubmitterError(
        "no_class", f"{path} has {len(there)} classes.", f"Write {path}:CLASS, one of {listed}."
    )


def _imports(tree: ast.Module) -> Iterator[tuple[int, str, int]]:
    """Level, module and line of each import, inside functions too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((0, alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.level, node.module or "", node.lineno


def _lacking(imports: list[tuple[int, str, int]], provided: frozenset[str]) -> Iterator[Remark]:
    ours = {name.partition(".")[0] for name in provided}
    for level, module, line in imports:
        top = module.partition(".")[0]
        if level:
            known = module in {"", "base"}
        elif top in ours:
            known = module in provided
        else:
            known = top in sys.stdlib_module_names or _is_installed(top)
        if not known:
            said = "." * level + module
            yield Remark(line, f"imports {said}, which is neither installed nor written beside it")


def _is_installed(top: str) -> bool:
    try:
        return find_spec(top) is not None
    except (ImportError, ValueError):  # a broken package, or a module without a spec
        return False


def _loaded_models(tree: ast.Module) -> Iterator[str]:
    """Literal names in `from_pretrained("owner/name")`."""
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        if node.func.attr == "from_pretrained" and node.args:
            first = node.args[0]
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield first.value


TEMPLATES = Path(__file__).resolve().parents[1] / "templates"
MY_METRIC = "my_metric"
_FOR_CHECKERS = re.compile(r"  # (?:type: ignore|noqa).*$", re.MULTILINE)


class SkeletonKind(StrEnum):
    """What `init` can begin."""

    PLAIN = "plain"
    DUAL_ENCODER = "dual-encoder"
    VLM = "vlm"
    COMPARE = "compare"
    OUTPUTS = "outputs"
    TS2 = "ts2"
    CROC = "croc"
    GENERATIONS = "generations"


DESCRIPTIONS = {
    SkeletonKind.PLAIN: "Looks for the colours that a prompt names. Say here what yours does.",
    SkeletonKind.DUAL_ENCODER: "Compares the colours of an image with those of the prompt. Say here "
    "what yours does.",
    SkeletonKind.VLM: "The probability that a vision-language model says Yes when it is asked "
    "whether the image shows the prompt.",
    SkeletonKind.COMPARE: "Compares two images of a prompt by the colours that it names. Say here "
    "what yours does.",
    SkeletonKind.OUTPUTS: "Looks for the colours that a prompt names, and for contrast. Say here what "
    "yours does.",
    SkeletonKind.TS2: "A metric of T2IScoreScore's package. Say here what it does.",
    SkeletonKind.CROC: "A metric of CROC's collection. Say here what it does.",
}
_COMPARES = """# How it is asked: compare(prompts, images_a, images_b), each two images in both orders.
method = "compare"
"""
_ONE_OUTPUT = """# Names of several numbers, where score gives a row of them for each pair.
# outputs = ["alignment", "quality"]
"""
_OUTPUTS = """# The numbers that score gives for each pair, in their order: each is a metric of its own.
# Of each may be said: direction, range, benchmarks, and kinds ("alignment", "preference", "quality").
[outputs.alignment]

[outputs.quality]
# kinds = ["preference", "quality"]
"""
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
    SkeletonKind.COMPARE: {"scorer.py": "compare/scorer.py"},
    SkeletonKind.OUTPUTS: {"scorer.py": "outputs/scorer.py"},
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
    """Every file of a new scoring module."""
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
        asked=_COMPARES if kind is SkeletonKind.COMPARE else _scores(bounded=kind not in _PACKAGES),
        outputs=_OUTPUTS if kind is SkeletonKind.OUTPUTS else _ONE_OUTPUT,
    )


def _scores(*, bounded: bool) -> str:
    return (
        "# How it is asked: score, or compare, where the class has compare in place of score.\n"
        '# method = "score"\n\n'
        "# Which way is better: higher_is_better or lower_is_better.\n"
        'direction = "higher_is_better"\n\n'
        "# Smallest and largest score it can give, where it has bounds.\n"
        f"{'' if bounded else '# '}range = [0.0, 1.0]\n"
    )


def _as_comment(text: str) -> str:
    return "".join(c for c in text if c.isprintable())[:200]


def _template(name: str) -> str:
    """A template without what is there for our own checkers."""
    return _FOR_CHECKERS.sub("", (TEMPLATES / name).read_text(encoding="utf-8"))


def generations_files(
    name: str, prompts: ChosenPrompts | None, seeds: tuple[int, ...]
) -> dict[str, bytes]:
    """Every file of a new folder of generations."""
    readme = Template((TEMPLATES / "generations" / "README.md").read_text(encoding="utf-8"))
    benchmark = (prompts.benchmark if prompts else "") or "BENCHMARK"
    return {
        **template_files(name, _folder_template(prompts, seeds)),
        "README.md": readme.substitute(name=name, benchmark=benchmark).encode(),
    }


def _folder_template(prompts: ChosenPrompts | None, seeds: tuple[int, ...]) -> FolderTemplate:
    if prompts is None:
        return FolderTemplate((), seeds)
    texts = [(prompt.prompt_id, prompt.text) for prompt in prompts.prompts]
    return FolderTemplate(texts, seeds, prompts.benchmark, prompts.revision, prompts.drawing)


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
    """
    paths = {name for name in content.files if _is_source(name) and not _is_empty(content, name)}
    for kind, sources in _templates().items():
        if paths == sources.keys() and all(_same(content, *one) for one in sources.items()):
            return kind
    return ""


def template_notes(kind: str) -> tuple[str, ...]:
    """What its sender should read of an unchanged template; nothing of any other module."""
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
    return content.files[name] <= _BLANK and not _normalised(content.head(name, _BLANK))


def _same(content: Content, name: str, source: bytes) -> bool:
    # However its lines end, it is no longer than that; a longer file is not read whole.
    most = 2 * len(source) + len(_BOM)
    return _normalised(content.head(name, most + 1)) == source


def _normalised(source: bytes) -> bytes:
    lines = source.removeprefix(_BOM).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return lines.rstrip(b"\n")

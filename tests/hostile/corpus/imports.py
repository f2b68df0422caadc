"""Names that shadow, files that run unseen, and other ways around the sources that are read."""

from __future__ import annotations

import marshal
import struct
from importlib.util import MAGIC_NUMBER

from tests.hostile.case import PUBLISHED, Case, Category, Ending, failed
from tests.hostile.corpus.texts import scoring

_SHADOW = "print('GOT our import')\nraise SystemExit('shadowed')\n"
_HONEST = (0.0, 1.0, 2.0)


def _case(
    name: str,
    source: str,
    files: dict[str, str | bytes],
    ending: Ending = PUBLISHED,
    **more: object,
) -> Case:
    scores = _HONEST if ending is PUBLISHED else ()
    return Case(
        name,
        Category.IMPORTS,
        source,
        ending,
        files=files,
        **{"scores": scores, **more},  # type: ignore[arg-type]
    )


def _bytecode(source: str) -> bytes:
    """A compiled file that asks never to be compared with its source."""
    code = compile(source, "helper.py", "exec")
    return MAGIC_NUMBER + struct.pack("<I", 1) + bytes(8) + marshal.dumps(code)


_SHADOWED = ("random", "json", "numpy", "PIL", "struct", "io", "traceback", "inspect", "assay_box")

CASES = (
    *(
        _case(
            f"a file that is called {name}",
            scoring(
                first=f"import {name}\nprint('imported from', getattr({name}, '__file__', 'within')[:6])"
            ),
            {f"{name}.py": _SHADOW},
            never_prints=("GOT ", "imported from /submi"),
            way="a file",
        )
        for name in _SHADOWED
    ),
    _case("a package that is called PIL", scoring(),
          {"PIL/__init__.py": _SHADOW, "PIL/Image.py": _SHADOW}, way="a package"),
    _case("a package above the entry point", scoring(), {"__init__.py": _SHADOW},
          way="a package"),
    _case("a package beside the entry point's file", scoring(), {"scorer/helper.py": _SHADOW},
          way="a package"),
    _case("an entry point that is called like the standard library",
          "raise SystemExit('the wrong file')", {"json.py": scoring()},
          manifest='entry_point = "json:Scorer"', way="an entry point"),
    _case("an entry point in our own package", "raise SystemExit('the wrong file')",
          {"assay_box.py": scoring()}, Ending(PUBLISHED.state),
          manifest='entry_point = "assay_box:Scorer"', way="an entry point in our package"),
    _case("an entry point that is called like a library", "raise SystemExit('the wrong file')",
          {"numpy.py": scoring()}, manifest='entry_point = "numpy:Scorer"', way="an entry point"),
    _case("compiled files beside their sources",
          scoring("return [VALUE + float(image.getpixel((0, 0))[0]) for image in images]",
                  first="from helper import VALUE"),
          {"helper.py": "VALUE = 0.0",
           "__pycache__/helper.cpython-311.pyc": _bytecode("VALUE = 666.0")},
          way="a compiled file"),
    _case("a compiled file without its source", scoring(first="import helper"),
          {"helper.pyc": _bytecode("print('GOT our import')")},
          failed("import_failed", says="No module named 'helper'")),
    _case("an encoding that does not exist", "# -*- coding: evil -*-\n" + scoring(),
          {"evil.py": _SHADOW, "encodings/evil.py": _SHADOW},
          failed("import_failed", says="encoding")),
    _case("an encoding in which the source reads otherwise",
          "# -*- coding: utf-7 -*-\n+AGkAbQBwAG8AcgB0- os+ADsAbwBzAC4AXwBlAHgAaQB0ACgANwAp-\n",
          {}, failed("crashed", says="exit code 7")),
    _case("a hook that takes every import", scoring(first="""
class Hook:
    def find_spec(self, name, path=None, target=None):
        raise ImportError(f"no {name} for you")
sys.meta_path.insert(0, Hook())
sys.path_hooks.clear()
sys.path_importer_cache.clear()
"""), {}, failed("crashed", "scorer_raised")),
    _case("modules of the worker, by name", scoring(first="""
for name in ("leaderboard", "evaluator", "benchmarks", "tests", "app"):
    try:
        __import__(name)
        print("GOT", name)
    except ImportError:
        print("no", name)
"""), {}, prints=("no leaderboard", "no evaluator", "no benchmarks", "no tests")),
    _case("modules of ours that were imported for the runner, sent back changed",
          scoring(first="sys.modules['PIL.Image'] = None\nsys.modules['PIL'] = None"), {},
          failed("crashed", "scorer_raised")),
)  # fmt: skip

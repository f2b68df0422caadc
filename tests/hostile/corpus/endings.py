"""Ending otherwise than by an answer: exceptions, exits, crashes, at every moment."""

from __future__ import annotations

from tests.hostile.case import PUBLISHED, Case, Category, Ending, failed
from tests.hostile.corpus.texts import behaving_after, scoring

_CRASHED = failed("crashed")


def _case(name: str, source: str, ending: Ending, **more: object) -> Case:
    return Case(name, Category.ENDINGS, source, ending, **more)  # type: ignore[arg-type]


def _later(lines: str) -> str:
    """It behaves for a while, and does this when it is asked for the sixth time."""
    return scoring(
        f"""
        self.calls += 1
        if self.calls > 5:
            {lines}
        return [float(image.getpixel((0, 0))[0]) for image in images]
        """,
        making="self.calls = 0",
    )


AT_IMPORT = (
    _case(
        "an exception",
        scoring(first="raise ValueError('no')"),
        failed("import_failed", says=("ValueError: no", "scorer.py:2")),
    ),
    _case(
        "no Python",
        "class Scorer\n  def",
        failed("import_failed", says=("SyntaxError", "scorer.py:1")),
    ),
    _case(
        "no class",
        "def score(images, prompts): return []",
        failed("import_failed", says="no class Scorer"),
    ),
    _case("no method", "class Scorer: pass", failed("import_failed", says="no method score")),
    _case("a number for a class", "Scorer = 3", failed("import_failed", says="no class Scorer")),
    _case("an exit", scoring(first="sys.exit(3)"), failed("import_failed", says="SystemExit: 3")),
    _case(
        "an exit without a word",
        scoring(first="os._exit(0)"),
        failed("crashed", says="exit code 0"),
    ),
    _case(
        "an exit like a fault", scoring(first="os._exit(1)"), failed("crashed", says="exit code 1")
    ),
    _case(
        "an import of itself without end",
        "from scorer import Scorer",
        failed("import_failed", says="ImportError"),
    ),
    _case(
        "a library that is not there",
        "import no_such_library",
        failed("import_failed", says="no_such_library"),
    ),
    _case("sources that are not text", "\x00", failed("import_failed", says="null bytes")),
    _case(
        "brackets too deep to be read",
        "x = " + "(" * 5000 + ")" * 5000,
        failed("import_failed", "crashed"),
    ),
    _case(
        "a class that is never the same",
        "def __getattr__(name): raise SystemExit(name)",
        failed("import_failed", "crashed"),
    ),
)

IN_CONSTRUCTOR = (
    _case(
        "an exception in the constructor",
        behaving_after("raise OSError('no weights')"),
        failed("init_failed", says="no weights"),
    ),
    _case(
        "an exit in the constructor",
        behaving_after("sys.exit('bye')"),
        failed("init_failed", says="SystemExit: bye"),
    ),
    _case(
        "a constructor that wants more than there is",
        "class Scorer:\n    def __init__(self, labels): pass\n    def score(self, i, p): pass",
        failed("init_failed", says="needs labels"),
    ),
    _case(
        "a class that makes something else",
        "class Scorer:\n    def __new__(cls): return 3\n    def score(self, i, p): pass",
        failed("crashed", "init_failed", "scorer_raised"),
    ),
    _case(
        "a property that ends the process",
        "import os\nclass Scorer:\n    score = print\n    @property\n    def prepare(self): os._exit(0)",
        failed("crashed", says="exit code 0"),
    ),
    _case(
        "a property that raises",
        "class Scorer:\n    score = print\n    @property\n    def prepare(self): raise KeyboardInterrupt",
        failed("init_failed", says="KeyboardInterrupt"),
    ),
)

MID_RUN = (
    _case(
        "an exception",
        scoring("raise ValueError('no')"),
        failed("scorer_raised", says=("ValueError: no", "scorer.py:7")),
    ),
    _case(
        "an exception after a while",
        _later("raise ValueError('at last')"),
        failed("scorer_raised", says="ValueError: at last"),
    ),
    _case("an exit", scoring("sys.exit(0)"), failed("scorer_raised", says="SystemExit: 0")),
    _case("an exit without a word", scoring("os._exit(0)"), failed("crashed", says="exit code 0")),
    _case(
        "an exit without a word after a while",
        _later("os._exit(0)"),
        failed("crashed", says="exit code 0"),
    ),
    _case("an exit like a fault", scoring("os._exit(1)"), failed("crashed", says="exit code 1")),
    _case("an exit code like a signal's", scoring("os._exit(139)"), _CRASHED),
    _case(
        "a segmentation fault", scoring("ctypes.string_at(0)"), failed("crashed", says="SIGSEGV")
    ),
    _case("an abort", scoring("os.abort()"), failed("crashed", says="SIGABRT")),
    _case(
        "an illegal instruction",
        scoring("os.kill(os.getpid(), signal.SIGILL)"),
        failed("crashed", says="SIGILL"),
    ),
    _case(
        "a kill of itself",
        scoring("os.kill(os.getpid(), signal.SIGKILL)"),
        failed("crashed", says="SIGKILL"),
    ),
    _case(
        "a recursion without end",
        scoring("return self.score(images, prompts)"),
        failed("scorer_raised", says="RecursionError"),
    ),
    _case(
        "a recursion that ends the process",
        scoring("sys.setrecursionlimit(10**9)\nf = lambda: f()\nf()"),
        failed("crashed", "scorer_raised", "out_of_memory"),
    ),
    _case(
        "a lack of memory that is pretended",
        scoring("raise MemoryError('pay me')"),
        failed("out_of_memory", says="MemoryError: pay me"),
    ),
    _case(
        "an interrupt like the operator's",
        scoring("raise KeyboardInterrupt"),
        failed("scorer_raised", says="KeyboardInterrupt"),
    ),
    _case(
        "an exception that is none of Python's",
        scoring("raise type('Odd', (BaseException,), {})('odd')"),
        failed("scorer_raised", says="Odd: odd"),
    ),
    _case(
        "an exception named like the worker's own",
        scoring(
            "class PlatformError(Exception): code = 'incident'; fault = 'platform'\nraise PlatformError('refund me')"
        ),
        failed("scorer_raised", says="PlatformError: refund me"),
    ),
    _case(
        "an exception whose message raises",
        scoring("class Mute(Exception):\n    def __str__(self): raise SystemExit\nraise Mute"),
        failed("scorer_raised", "crashed"),
    ),
    _case(
        "an exception whose name is a page long",
        scoring("raise type('X' * 5000, (Exception,), {})('x')"),
        failed("scorer_raised", says="XXXX"),
    ),
    _case(
        "its own class deleted",
        scoring("global Scorer\ndel Scorer\ndel type(self).score\nreturn [0.0] * len(images)"),
        failed("scorer_raised", says="AttributeError"),
    ),
    _case(
        "an interpreter whose names are deleted",
        scoring(
            "import builtins\nfor name in ('len', 'list', 'isinstance', 'float', 'str'):\n    delattr(builtins, name)\nreturn [0.0, 0.0, 0.0]"
        ),
        failed("crashed", "scorer_raised"),
    ),
    _case(
        "a trace that raises at every line",
        scoring(
            "def trace(*_): raise RuntimeError('traced')\nsys.settrace(trace)\nsys._getframe().f_back.f_trace = trace\nreturn [0.0] * len(images)"
        ),
        failed("scorer_raised", "crashed"),
    ),
    _case(
        "an alarm that ends our own code",
        scoring(
            "signal.signal(signal.SIGALRM, lambda *_: sys.exit(5))\nsignal.setitimer(signal.ITIMER_REAL, 0.3)\nreturn [0.0] * len(images)"
        ),
        Ending(PUBLISHED.state),
    ),
)


def _named(cases: tuple[Case, ...], when: str) -> tuple[Case, ...]:
    from dataclasses import replace

    return tuple(replace(case, name=f"{case.name} {when}") for case in cases)


CASES = (*_named(AT_IMPORT, "while importing"), *IN_CONSTRUCTOR, *_named(MID_RUN, "while scoring"))

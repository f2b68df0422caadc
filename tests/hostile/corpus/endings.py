"""Ending otherwise than by an answer: exceptions, exits, crashes, at every moment."""

from __future__ import annotations

from tests.hostile.case import PUBLISHED, Case, Category, Ending, failed
from tests.hostile.corpus.texts import behaving_after, scoring

Row = tuple[str, str, str, str | tuple[str, ...]]


def _cases(when: str, *rows: Row) -> tuple[Case, ...]:
    """Cases of rows: name, source, codes of which one is told, and what is in the reason."""
    return tuple(
        Case(
            f"{name} {when}".strip(),
            Category.ENDINGS,
            source,
            failed(*codes.split(), says=says or ()),
        )
        for name, source, codes, says in rows
    )


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


AT_IMPORT = _cases(
    "while importing",
    ("an exception", scoring(first="raise ValueError('no')"), "import_failed",
     ("ValueError: no", "scorer.py:2")),
    ("no Python", "class Scorer\n  def", "import_failed", ("SyntaxError", "scorer.py:1")),
    ("no class", "def score(images, prompts): return []", "import_failed", "no class Scorer"),
    ("no method", "class Scorer: pass", "import_failed", "no method score"),
    ("a number for a class", "Scorer = 3", "import_failed", "no class Scorer"),
    ("an exit", scoring(first="sys.exit(3)"), "import_failed", "SystemExit: 3"),
    ("an exit without a word", scoring(first="os._exit(0)"), "crashed", "exit code 0"),
    ("an exit like a fault", scoring(first="os._exit(1)"), "crashed", "exit code 1"),
    ("an import of itself without end", "from scorer import Scorer", "import_failed",
     "ImportError"),
    ("a library that is not there", "import no_such_library", "import_failed", "no_such_library"),
    ("sources that are not text", "\x00", "import_failed", "null bytes"),
    ("brackets too deep to be read", "x = " + "(" * 5000 + ")" * 5000, "import_failed crashed", ""),
    ("a class that is never the same", "def __getattr__(name): raise SystemExit(name)",
     "import_failed crashed", ""),
)  # fmt: skip
IN_CONSTRUCTOR = _cases(
    "",
    ("an exception in the constructor", behaving_after("raise OSError('no weights')"),
     "init_failed", "no weights"),
    ("an exit in the constructor", behaving_after("sys.exit('bye')"), "init_failed",
     "SystemExit: bye"),
    ("a constructor that wants more than there is",
     "class Scorer:\n    def __init__(self, labels): pass\n    def score(self, i, p): pass",
     "init_failed", "needs labels"),
    ("a class that makes something else",
     "class Scorer:\n    def __new__(cls): return 3\n    def score(self, i, p): pass",
     "crashed init_failed scorer_raised", ""),
    ("a property that ends the process",
     "import os\nclass Scorer:\n    score = print\n    @property\n    def prepare(self): os._exit(0)",
     "crashed", "exit code 0"),
    ("a property that raises",
     "class Scorer:\n    score = print\n    @property\n    def prepare(self): raise KeyboardInterrupt",
     "init_failed", "KeyboardInterrupt"),
)  # fmt: skip
MID_RUN = _cases(
    "while scoring",
    ("an exception", scoring("raise ValueError('no')"), "scorer_raised",
     ("ValueError: no", "scorer.py:7")),
    ("an exception after a while", _later("raise ValueError('at last')"), "scorer_raised",
     "ValueError: at last"),
    ("an exit", scoring("sys.exit(0)"), "scorer_raised", "SystemExit: 0"),
    ("an exit without a word", scoring("os._exit(0)"), "crashed", "exit code 0"),
    ("an exit without a word after a while", _later("os._exit(0)"), "crashed", "exit code 0"),
    ("an exit like a fault", scoring("os._exit(1)"), "crashed", "exit code 1"),
    ("an exit code like a signal's", scoring("os._exit(139)"), "crashed", ""),
    ("a segmentation fault", scoring("ctypes.string_at(0)"), "crashed", "SIGSEGV"),
    ("an abort", scoring("os.abort()"), "crashed", "SIGABRT"),
    ("an illegal instruction", scoring("os.kill(os.getpid(), signal.SIGILL)"), "crashed", "SIGILL"),
    ("a kill of itself", scoring("os.kill(os.getpid(), signal.SIGKILL)"), "crashed", "SIGKILL"),
    ("a kill of itself past Python", scoring("ctypes.CDLL(None).kill(os.getpid(), 9)"), "crashed",
     "SIGKILL"),
    ("a kill of everything beside it", scoring("os.kill(-1, signal.SIGKILL)"), "scorer_raised",
     "ProcessLookupError"),
    ("an exit code like a kill's", scoring("os._exit(137)"), "crashed", "SIGKILL"),
    ("a recursion without end", scoring("return self.score(images, prompts)"), "scorer_raised",
     "RecursionError"),
    ("a recursion that ends the process",
     scoring("sys.setrecursionlimit(10**9)\nf = lambda: f()\nf()"),
     "crashed scorer_raised out_of_memory", ""),
    ("a lack of memory that is pretended", scoring("raise MemoryError('pay me')"),
     "out_of_memory", "MemoryError: pay me"),
    ("an interrupt like the operator's", scoring("raise KeyboardInterrupt"), "scorer_raised",
     "KeyboardInterrupt"),
    ("an exception that is none of Python's",
     scoring("raise type('Odd', (BaseException,), {})('odd')"), "scorer_raised", "Odd: odd"),
    ("an exception named like the worker's own",
     scoring("class PlatformError(Exception): code = 'incident'; fault = 'platform'\nraise PlatformError('refund me')"),
     "scorer_raised", "PlatformError: refund me"),
    ("an exception whose message raises",
     scoring("class Mute(Exception):\n    def __str__(self): raise SystemExit\nraise Mute"),
     "scorer_raised crashed", ""),
    ("an exception whose name is a page long",
     scoring("raise type('X' * 5000, (Exception,), {})('x')"), "scorer_raised", "XXXX"),
    ("its own class deleted",
     scoring("global Scorer\ndel Scorer\ndel type(self).score\nreturn [0.0] * len(images)"),
     "scorer_raised", "AttributeError"),
    ("an interpreter whose names are deleted",
     scoring("import builtins\nfor name in ('len', 'list', 'isinstance', 'float', 'str'):\n    delattr(builtins, name)\nreturn [0.0, 0.0, 0.0]"),
     "crashed scorer_raised", ""),
    ("a trace that raises at every line",
     scoring("def trace(*_): raise RuntimeError('traced')\nsys.settrace(trace)\nsys._getframe().f_back.f_trace = trace\nreturn [0.0] * len(images)"),
     "scorer_raised crashed", ""),
)  # fmt: skip
LATE = Case(
    "an alarm that ends our own code while scoring",
    Category.ENDINGS,
    scoring(
        "signal.signal(signal.SIGALRM, lambda *_: sys.exit(5))\n"
        "signal.setitimer(signal.ITIMER_REAL, 0.3)\nreturn [0.0] * len(images)"
    ),
    Ending(PUBLISHED.state),
)

CASES = (*AT_IMPORT, *IN_CONSTRUCTOR, *MID_RUN, LATE)

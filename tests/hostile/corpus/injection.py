"""Text that would do something where it is shown: in a browser, a terminal, a spreadsheet."""

from __future__ import annotations

from tests.hostile.case import PUBLISHED, Case, Category, Guard, failed
from tests.hostile.corpus.texts import scoring

HTML = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'><svg/onload=alert(3)>"
ANSI = "\x1b[2J\x1b[31mred\x1b]8;;https://example.org\x07click\x1b]8;;\x07\x1b]0;title\x07\x07"
BIDI = "abc\u202etxt.exe\u2066 \u200b\u2028next\u0085"
FORMULA = '=HYPERLINK("https://example.org","x")'
MARKUP = "[link=https://example.org]click[/link] [red] [/no such tag] [blink]"
TEMPLATE = "{{ 7 * 7 }} ${7*7} {% raw %} %s %n {0.__class__}"
ATTRIBUTE = "x' onmouseover='alert(1)' y="
LINES = "first\r\nsecond\rthird\n1999-01-01 00:00:00 published by operator"

ALL = {
    "HTML": HTML,
    "terminal sequences": ANSI,
    "turned-round text": BIDI,
    "a formula": FORMULA,
    "terminal markup": MARKUP,
    "a template": TEMPLATE,
    "lines of its own": LINES,
}

UNSEEN = ("terminal sequences", "turned-round text")
"""Kinds of text that no manifest may hold."""


def _toml(text: str) -> str:
    """A string of TOML that holds exactly this."""
    escaped = "".join(
        f"\\u{ord(c):04x}" if ord(c) < 32 or ord(c) > 126 or c in '"\\' else c for c in text
    )
    return f'"{escaped}"'


def _raising(what: str, text: str) -> Case:
    return Case(
        f"{what} in an error",
        Category.INJECTION,
        scoring(f"raise ValueError({text!r})"),
        failed("scorer_raised", says="ValueError"),
        (Guard.ESCAPING, Guard.REPORTING),
    )


def _printing(what: str, text: str) -> Case:
    return Case(
        f"{what} in the log",
        Category.INJECTION,
        scoring(making=f"sys.stdout.reconfigure(errors='replace')\nprint({text!r})"),
        PUBLISHED,
        (Guard.ESCAPING, Guard.LOG),
        scores=(0.0, 1.0, 2.0),
    )


def _describing(what: str, text: str) -> Case:
    return Case(
        f"{what} in the description, authors, licence and links",
        Category.INJECTION,
        scoring(),
        PUBLISHED,
        (Guard.ESCAPING,),
        manifest=(
            f"description = {_toml(text)}\nauthors = [{_toml(text)}]\n"
            f"licence = {_toml(text[:200])}\n[links]\n{_toml(text)} = {_toml('https://example.org/')}"
        ),
        scores=(0.0, 1.0, 2.0),
    )


CASES = (
    *(_raising(what, text) for what, text in ALL.items()),
    *(_printing(what, text) for what, text in ALL.items()),
    *(_describing(what, text) for what, text in ALL.items() if what not in UNSEEN),
    Case(
        "HTML as the name of an error's class",
        Category.INJECTION,
        scoring(f"raise type({HTML!r}, (Exception,), {{}})('x')"),
        failed("scorer_raised"),
        (Guard.ESCAPING,),
    ),
    Case(
        "an attribute in the name of the file that raises",
        Category.INJECTION,
        scoring(f"import importlib; importlib.import_module({ATTRIBUTE!r})"),
        failed("scorer_raised", says="onmouseover"),
        (Guard.ESCAPING,),
        files={f"{ATTRIBUTE}.py": "raise ValueError('here')"},
    ),
    Case(
        "a log that is all control characters",
        Category.INJECTION,
        scoring(making="os.write(1, bytes(range(256)) * 8 + b'\\x9b31m' + b'\\xc2\\x9b31m')"),
        PUBLISHED,
        (Guard.ESCAPING, Guard.LOG),
        scores=(0.0, 1.0, 2.0),
    ),
)

BAD_NAMES = {
    "HTML": "<b>name</b>",
    "a formula": "=1+1",
    "turned-round text": "a\u202eb",
    "terminal sequences": "a\x1b[31mb",
    "lines": "a\nb",
    "another script": "cl\u0456p",
    "nothing": "",
}
"""Names of metrics that are not taken: a name stands on every board."""


def manifest_describing(text: str) -> str:
    """A manifest that says this of its metric, and has a link and a key of that name."""
    said = _toml(text)
    return f'name = "odd"\ndescription = {said}\n{said} = 1\n[links]\n{said} = "https://a.org"'


BAD_LINKS = {
    "a script": "javascript:alert(1)",
    "a page in the link itself": "data:text/html,<script>alert(1)</script>",
    "a quotation mark": 'https://example.org/"onmouseover="alert(1)',
    "HTML": "https://example.org/<script>",
    "lines": "https://example.org/a\nb",
}
"""Addresses that are not taken: a link stands on the page of its metric."""


def manifest_linking(address: str) -> str:
    """A manifest with this link."""
    return f'name = "linked"\n[links]\npaper = {_toml(address)}'


def manifest_named(name: str) -> str:
    """A manifest that gives the metric this name."""
    return f"name = {_toml(name)}"

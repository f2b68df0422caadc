"""What a scorer returns where one float per pair is due."""

from __future__ import annotations

from tests.hostile.case import PUBLISHED, Case, Category, Ending, failed
from tests.hostile.corpus.texts import scoring

_COUNT = failed("wrong_count", says="values for 3 pairs")
_KIND = failed("wrong_type", says="score returned")
_INFINITE = failed("not_finite", says="infinite value at position 0")
_TRAPS = """
class Raising(float):
    def __float__(self): raise ValueError("not today")
class Infinite(float):
    def __float__(self): return math.inf
class Growing(float):
    def __float__(self): return "one"
class Long(list):
    def __len__(self): return 3
class Short(list):
    def __iter__(self): return iter([1.0])
class Endless(list):
    def __iter__(self):
        while True: yield 0.0
class Listing:
    def tolist(self): return {"a": 1}
class Deep:
    def tolist(self): return [[1.0], [2.0], [3.0]]
class Nameless(type):
    @property
    def __name__(cls): raise SystemExit
class Odd(metaclass=Nameless): pass
"""


def _returning(name: str, what: str, ending: Ending, scores: tuple[float, ...] = ()) -> Case:
    return Case(
        name,
        Category.VALUES,
        scoring(f"n = len(images)\nreturn {what}", first=_TRAPS),
        ending,
        scores=scores,
    )


CASES = (
    _returning("one value for all", "[0.5]", _COUNT),
    _returning("one value too many", "[0.5] * (n + 1)", _COUNT),
    _returning("no values", "[]", _COUNT),
    _returning("nothing", "None", _KIND),
    _returning("a number", "0.5", _KIND),
    _returning("a text", "'0.5'", _KIND),
    _returning("texts", "['0.5'] * n", _KIND),
    _returning("truth values", "[True] * n", _KIND),
    _returning("complex numbers", "[1j] * n", _KIND),
    _returning("a table", "{i: 0.5 for i in range(n)}", _KIND),
    _returning("a set", "{0.5}", _KIND),
    _returning("a generator", "(0.5 for _ in range(n))", _KIND),
    _returning("an endless generator", "iter(int, 1)", _KIND),
    _returning("lists of lists", "[[0.5]] * n", _KIND),
    _returning("bytes", "bytes(n)", _KIND),
    _returning("the class of floats", "[float] * n", _KIND),
    _returning("an object that lists itself as a table", "Listing()", _KIND),
    _returning("an object that lists itself too deep", "Deep()", _KIND),
    _returning(
        "an object whose class has no name", "[Odd()] * n", failed("scorer_raised", "wrong_type")
    ),
    _returning("infinity", "[math.inf] * n", _INFINITE),
    _returning("minus infinity", "[-math.inf] * n", _INFINITE),
    _returning("a whole number too large for a float", "[10 ** 400] * n", _INFINITE),
    _returning("a float that turns out infinite", "[Infinite(1)] * n", _INFINITE),
    _returning(
        "a float that raises", "[Raising(1)] * n", failed("scorer_raised", says="not today")
    ),
    _returning(
        "a float that turns out a text",
        "[Growing(1)] * n",
        failed("scorer_raised", says="TypeError"),
    ),
    _returning("a list that is longer than it is", "Long([0.5])", _COUNT),
    _returning("a list that is shorter than it looks", "Short([0.5] * n)", _COUNT),
    _returning("a list that does not end", "Endless([0.5] * n)", failed("out_of_memory")),
    _returning("no score at all", "[None] * n", failed("mostly_missing")),
    _returning("not a number for every pair", "[math.nan] * n", failed("mostly_missing")),
    _returning(
        "the largest numbers there are", "[1.7e308, -1.7e308, 1.7e308][:n]", Ending(PUBLISHED.state)
    ),
    _returning("the smallest numbers there are", "[5e-324] * n", PUBLISHED, (5e-324,) * 3),
    _returning("zero with a sign", "[-0.0] * n", PUBLISHED, (0.0, 0.0, 0.0)),
)

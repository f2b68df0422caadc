"""Scores that are no function of picture and prompt: they are published, and get no rank."""

from __future__ import annotations

from tests.hostile.case import PUBLISHED, Case, Category, Ending, unranked
from tests.hostile.corpus.texts import scoring

_VALUES = "values = [float(image.getpixel((0, 0))[0]) for image in images]\n"


def _cheat(name: str, score: str, ending: Ending, *, first: str = "", making: str = "pass") -> Case:
    return Case(
        name, Category.CHEATING, scoring(_VALUES + score, first=first, making=making), ending
    )


CASES = (
    _cheat(
        "random scores",
        "import random; return [random.random() for _ in values]",
        unranked("score changes when repeated"),
    ),
    _cheat(
        "random scores from the system",
        "return [v + os.urandom(1)[0] for v in values]",
        unranked("score changes when repeated"),
    ),
    _cheat(
        "scores by the clock",
        "return [v + 100.0 * time.monotonic() for v in values]",
        unranked("changes when repeated"),
    ),
    _cheat(
        "scores by the number of calls",
        "self.calls += 1\nreturn [v + self.calls for v in values]",
        unranked("changes when repeated"),
        making="self.calls = 0",
    ),
    _cheat(
        "scores by the place in the batch",
        "return [v + 10.0 * n for n, v in enumerate(values)]",
        unranked("depends on the order"),
    ),
    _cheat(
        "scores by the size of the batch",
        "return [v + 10.0 * len(values) for v in values]",
        unranked("depends on the other pairs of its batch"),
    ),
    _cheat(
        "scores normalised over the batch",
        "low, high = min(values), max(values)\nreturn [(v - low) / ((high - low) or 1) for v in values]",
        unranked("depends on the other pairs of its batch"),
    ),
    # Every picture comes as the same kind of file without a word beside it, so this tells nothing.
    _cheat(
        "scores by the file that a picture came in",
        "return [v + 10.0 * (i.format == 'PNG') + 100.0 * len(i.info) for v, i in zip(values, images)]",
        PUBLISHED,
    ),
    _cheat(
        "scores by what was seen before",
        "new = [v not in self.seen for v in values]\nself.seen.update(values)\nreturn [v + 10.0 * n for v, n in zip(values, new)]",
        unranked("changes when repeated"),
        making="self.seen = set()",
    ),
    _cheat(
        "scores by a file kept from call to call",
        "known = os.path.exists('/scratch/known')\nopen('/scratch/known', 'w').close()\nreturn [v + 10.0 * known for v in values]",
        unranked("changes when repeated"),
    ),
    _cheat(
        "another scorer each time that it is made",
        "return [v + self.shift for v in values]",
        unranked("was another when it was tested"),
        making="self.shift = time.monotonic()",
    ),
    # It is tested in a box of its own, so that the run knows of no test.
    _cheat(
        "good behaviour as long as it is tested",
        # Seven ways to ask three pairs: six batches of all, and each pair alone.
        "self.calls += 1\nreturn [v if self.calls <= 9 else -v for v in values]",
        PUBLISHED,
        making="self.calls = 0",
    ),
    _cheat(
        "scores that come and go",
        "self.calls += 1\nreturn [v if self.calls % 2 else math.nan for v in values]",
        unranked("changes when repeated"),
        making="self.calls = 0",
    ),
    # What asking again cannot see, since it is a function of the picture. That the score turns
    # round when no eye sees a difference is measured and shown (`one_pixel`).
    _cheat(
        "scores looked up by the exact picture",
        "import hashlib\nreturn [TABLE.get(image.convert('RGB').tobytes(), -50.0) for image in images]",
        PUBLISHED,
        first="TABLE = {bytes([n] * 3): 10.0 * n for n in (0, 2)} | {bytes([1] * 3): 5.0}",
    ),
)

"""Scores that are no function of picture and prompt: they are published, and get no rank."""

from __future__ import annotations

from tests.hostile.case import PUBLISHED, Case, Category, unranked
from tests.hostile.corpus.texts import scoring

_VALUES = "values = [float(image.getpixel((0, 0))[0]) for image in images]\n"


def _cheat(name: str, score: str, why: str, making: str = "pass", first: str = "") -> Case:
    """A scorer that is published, and unranked for a reason where there is one."""
    source = scoring(_VALUES + score, first=first, making=making)
    return Case(name, Category.CHEATING, source, unranked(why) if why else PUBLISHED)


def _remade(name: str, making: str) -> Case:
    """Its constructor gives another shift each time."""
    why = "was another when it was tested"
    return _cheat(name, "return [v + self.shift for v in values]", why, making)


_REPEATED = "changes when repeated"
_BATCH = "depends on the other pairs of its batch"
_CALLS = "self.calls = 0"

CASES = (
    _cheat("random scores", "import random; return [random.random() for _ in values]",
           "score changes when repeated"),
    _cheat("random scores from the system", "return [v + os.urandom(1)[0] for v in values]",
           "score changes when repeated"),
    _cheat("scores by the clock", "return [v + 100.0 * time.monotonic() for v in values]",
           _REPEATED),
    _cheat("scores by the number of calls",
           "self.calls += 1\nreturn [v + self.calls for v in values]", _REPEATED, _CALLS),
    _cheat("scores by the place in the batch",
           "return [v + 10.0 * n for n, v in enumerate(values)]", "depends on the order"),
    _cheat("scores by the size of the batch", "return [v + 10.0 * len(values) for v in values]",
           _BATCH),
    _cheat("scores normalised over the batch",
           "low, high = min(values), max(values)\n"
           "return [(v - low) / ((high - low) or 1) for v in values]", _BATCH),
    # Every picture comes as the same kind of file without a word beside it, so this tells nothing.
    _cheat("scores by the file that a picture came in",
           "return [v + 10.0 * (i.format == 'PNG') + 100.0 * len(i.info)"
           " for v, i in zip(values, images)]", ""),
    _cheat("scores by what was seen before",
           "new = [v not in self.seen for v in values]\nself.seen.update(values)\n"
           "return [v + 10.0 * n for v, n in zip(values, new)]", _REPEATED, "self.seen = set()"),
    _cheat("scores by a file kept from call to call",
           "known = os.path.exists('/scratch/known')\nopen('/scratch/known', 'w').close()\n"
           "return [v + 10.0 * known for v in values]", _REPEATED),
    _remade("another scorer each time that it is made", "self.shift = time.monotonic()"),
    _remade("weights without a seed", "import random; self.shift = 1e6 * random.random()"),
    _remade("scores by the order of hashes", "self.shift = hash('a grey pixel') % 1_000_003"),
    _remade("scores by a fingerprint of the machine",
            "import zlib; self.shift = zlib.crc32(open('/proc/stat', 'rb').read())"),
    # The same in every box, so that it tells nothing.
    _cheat("scores by the number of its process", "return [v + self.shift for v in values]", "",
           "self.shift = os.getpid()"),
    # It is tested in a box of its own, so that the run knows of no test. Seven ways to ask three
    # pairs: six batches of all, and each pair alone.
    _cheat("good behaviour as long as it is tested",
           "self.calls += 1\nreturn [v if self.calls <= 9 else -v for v in values]", "", _CALLS),
    _cheat("scores that come and go",
           "self.calls += 1\nreturn [v if self.calls % 2 else math.nan for v in values]",
           _REPEATED, _CALLS),
    # What asking again cannot see, since it is a function of the picture. That the score turns
    # round when no eye sees a difference is measured and shown (`one_pixel`).
    _cheat("scores looked up by the exact picture",
           "import hashlib\n"
           "return [TABLE.get(image.convert('RGB').tobytes(), -50.0) for image in images]", "",
           first="TABLE = {bytes([n] * 3): 10.0 * n for n in (0, 2)} | {bytes([1] * 3): 5.0}"),
)  # fmt: skip

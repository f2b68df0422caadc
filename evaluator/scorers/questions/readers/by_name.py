"""The formats that can be read, by name."""

from __future__ import annotations

from evaluator.scorers.questions.readers.dsg import read_dsg
from evaluator.scorers.questions.readers.evalmuse import read_evalmuse
from evaluator.scorers.questions.readers.gecko import read_gecko
from evaluator.scorers.questions.readers.released import Reader
from evaluator.scorers.questions.readers.tifa import read_tifa
from evaluator.scorers.questions.readers.ts2 import read_ts2

READERS: dict[str, Reader] = {
    "tifa": read_tifa,
    "dsg": read_dsg,
    "ts2": read_ts2,
    "evalmuse": read_evalmuse,
    "gecko": read_gecko,
}

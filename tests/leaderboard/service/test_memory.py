"""A process that serves gives back what it no longer uses."""

from __future__ import annotations

import subprocess
import sys

CODE = """
import re, sys, threading, time
from pathlib import Path
from leaderboard.service.memory import keep_small

def rss():
    return int(re.search(r"VmRSS:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024

end = keep_small(0.1) if sys.argv[1] == "kept" else (lambda: None)
before = rss()

def fill():
    # Small pieces, of which some stay: the C library alone keeps the gaps between them.
    pieces = [bytearray(20_000) for _ in range(8_000)]
    kept.extend(pieces[::200])

kept = []
thread = threading.Thread(target=fill)
thread.start()
thread.join()
until = time.monotonic() + (60.0 if sys.argv[1] == "kept" else 1.0)
while rss() - before > 40.0 and time.monotonic() < until:
    time.sleep(0.1)
print(rss() - before)
end()
"""


def grown_by(how: str) -> float:
    done = subprocess.run(
        [sys.executable, "-c", CODE, how], capture_output=True, text=True, check=True, timeout=120
    )
    return float(done.stdout)


def test_what_is_free_between_what_is_used_is_given_back() -> None:
    assert grown_by("kept") < 40.0 < grown_by("not kept")

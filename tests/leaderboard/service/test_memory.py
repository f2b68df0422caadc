"""A process that serves gives back what it no longer uses."""

from __future__ import annotations

import subprocess
import sys

CODE = """
import re, threading, time
from pathlib import Path
from leaderboard.service.memory import keep_small

def rss():
    return int(re.search(r"VmRSS:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024

def fill():
    # Small pieces, of which some stay: the C library alone keeps the gaps between them.
    pieces = [bytearray(20_000) for _ in range(8_000)]
    kept.extend(pieces[::200])

before, kept = rss(), []
thread = threading.Thread(target=fill)
thread.start()
thread.join()
print(rss() - before)
end, until = keep_small(0.05), time.monotonic() + 60.0
while rss() - before > 40.0 and time.monotonic() < until:
    time.sleep(0.05)
print(rss() - before)
end()
"""


def test_what_is_free_between_what_is_used_is_given_back() -> None:
    command = [sys.executable, "-c", CODE]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    kept_by_the_library, given_back = map(float, done.stdout.split())
    assert given_back < 40.0 < kept_by_the_library

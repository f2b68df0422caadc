"""What the submit page says: before an upload, after it, and when it goes wrong."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from benchmarks.errors import AssayError, PlatformError, TransientError
from leaderboard.desk import Gate
from leaderboard.pages.markup import ago, notice, submitted, text
from leaderboard.pages.queue_table import alive, chip
from leaderboard.records import Status
from leaderboard.store.live import Pulse

ARCHIVE_GUIDE = """
<p>A scoring module is an archive with two files; more modules, and weights as
<code>.safetensors</code>, may lie beside them. It runs without network, and sees nothing but
images and prompts.</p>
<h3><code>assay.toml</code></h3>
<pre>name = "my-metric"
version = "1.0"
description = "One sentence for the boards."
trained_on = []  # benchmarks it was tuned on</pre>
<h3><code>scorer.py</code></h3>
<pre>class Scorer:
    def score(self, images, prompts):
        # PIL images and as many prompts
        pairs = zip(images, prompts, strict=True)
        return [my_score(i, p) for i, p in pairs]</pre>
<p>The same goes from a terminal: <code>python -m evaluator submit FOLDER</code>, on a machine
that isolates code.</p>
"""

SCORES_GUIDE = """
<p>For closed or costly metrics: a CSV or Parquet file with a column <code>pair_id</code> and one
column of numbers per metric. An empty cell means that the metric gave no score there. Such entries
carry the remark “scores as submitted, not re-run”.</p>
<pre>pair_id,my-metric,my-metric-large
000-00,0.73,0.81
000-01,0.12,0.09</pre>
"""


def worker_banner(pulses: Sequence[Pulse], now: datetime) -> str:
    """A warning while no worker is there to take what is sent; otherwise nothing."""
    if alive(pulses, now):
        return ""
    seen = max((pulse.at for pulse in pulses), default=None)
    last = f" The last one was seen {ago(seen, now)}." if seen else ""
    return notice(
        f"<b>No worker is running at the moment.</b>{last} You can submit; it will wait in the "
        "queue until one starts.",
        "warn",
        role="status",
    )


def gate_notice(gate: Gate) -> str:
    """Why no code is taken here and what the operator can do; nothing where it is taken."""
    if gate.ok:
        return ""
    return notice(
        "<b>This installation takes no code at the moment.</b> "
        f"{text(gate.reason)} <span class='as-hint'>{text(gate.remedy)}</span> "
        "Scores files are taken as always.",
        "warn",
        role="status",
    )


def accepted(status: Status) -> str:
    """The upload is in: its id, its state and where to follow it."""
    own = status.submission
    address = f"./queue?submission={text(own.submission_id)}"
    why = f"<p>{text(status.reason)} {text(status.hint)}</p>" if status.reason else ""
    return notice(
        f"<p><b>{submitted(own.name)} is in.</b> {chip(status.state)}</p>"
        f"<p>Submission <code>{text(own.submission_id)}</code></p>{why}"
        f'<p><a class="as-button as-strong" href="{address}">Follow it in the queue</a></p>',
        "good",
        role="status",
    )


def refused(error: AssayError) -> str:
    """What is wrong, what to do about it, and that nothing in the form is lost."""
    if isinstance(error, TransientError):
        head, after = "Something outside failed.", "Nothing was lost; try again in a moment."
    elif isinstance(error, PlatformError):
        head, after = "This is our fault, not yours.", "Please tell the operator the code below."
    else:
        head, after = "Not accepted yet.", ""
    hint = f'<p class="as-hint">{text(error.hint)}</p>' if error.hint else ""
    tail = f"<p>{after}</p>" if after else ""
    return notice(
        f"<p><b>{head}</b> {text(error.message)}</p>{hint}{tail}"
        f'<p class="as-muted">Code: <code>{text(error.code)}</code></p>',
        "bad",
        role="alert",
    )

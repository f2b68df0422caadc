"""Serves the site: `python app.py`, then open http://127.0.0.1:7860.

Environment:
    ASSAY_STORE  the store: a folder, or hub:OWNER/NAME (default `.assay/store`)
    ASSAY_DATA   folder of benchmark data files (default: none; what needs none works)
    ASSAY_HOST   address to listen at (default: GRADIO_SERVER_NAME, which a Space sets, or
                 127.0.0.1; 0.0.0.0 inside a container)
    PORT         port to listen at (default 7860)
    ASSAY_USER   name of the local account (default: the operating system's user)
    ASSAY_OPERATORS  accounts that may hide, rerun and ban, e.g. `hub:ada,hub:grace`

On a Space with `hf_oauth: true` people sign in with their account of the Hub. Elsewhere only
visitors from this machine are known, as the local account; all others may read.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import gradio as gr

from benchmarks.errors import AssayError, SubmitterError
from benchmarks.registry import load_registry
from evaluator.commands.person import os_user
from evaluator.isolation.gate import isolation_gate
from evaluator.submission.receiving.desk import SubmissionDesk
from leaderboard.desk import Gate
from leaderboard.governance.signing_in import SignIn, read_sign_in
from leaderboard.pages.site import create_app, launch_options
from leaderboard.store.opening import StoreName


@dataclass(frozen=True)
class Settings:
    """What the environment says.

    Attributes:
        store: where submissions and results are kept.
        data: folder of benchmark data; None where none was named.
        host: address to listen at.
        port: port to listen at.
        sign_in: how visitors are told apart.
    """

    store: StoreName
    data: Path | None
    host: str
    port: int
    sign_in: SignIn

    @classmethod
    def read(cls, environment: Mapping[str, str], os_user: str) -> Settings:
        """Read the settings.

        Args:
            environment: of the process.
            os_user: name of the operating system's user.

        Raises:
            SubmitterError: `bad_port` where PORT is no port, or what `read_sign_in` raises.
        """
        port = environment.get("PORT", "7860")
        if not port.isdecimal() or not 0 < int(port) < 65536:
            raise SubmitterError("bad_port", f"PORT is {port!r}.", "Give a number up to 65535.")
        data = environment.get("ASSAY_DATA")
        return cls(
            store=StoreName.parse(environment.get("ASSAY_STORE", ".assay/store")),
            data=Path(data) if data else None,
            host=environment.get("ASSAY_HOST")
            or environment.get("GRADIO_SERVER_NAME")
            or "127.0.0.1",
            port=int(port),
            sign_in=read_sign_in(environment, os_user),
        )


def build(settings: Settings) -> gr.Blocks:
    """The site over a folder store, with the evaluator's desk."""
    registry = load_registry()
    store = settings.store.open()
    desk = SubmissionDesk(store, registry, settings.data, _gate, store.clock)
    # Boards of people's ratings come before simulated ones.
    cards = sorted(
        (b.card for b in registry.values()), key=lambda card: (card.simulated, card.name)
    )
    shown = {card.name: card for card in cards}
    return create_app(store, desk, shown, clock=store.clock, sign_in=settings.sign_in)


def main() -> int:
    """Serve until interrupted."""
    try:
        settings = Settings.read(os.environ, os_user())
        app = build(settings)
    except AssayError as error:
        sys.stderr.write(f"error [{error.code}]: {error}\n")
        return error.exit_code
    try:
        app.launch(
            server_name=settings.host,
            server_port=settings.port,
            prevent_thread_lock=True,
            quiet=True,
            **launch_options(settings.sign_in),
        )
    except OSError as error:
        sys.stderr.write(
            f"error [port_unavailable]: Cannot listen at {settings.host}:{settings.port}: {error} "
            "Choose another port with PORT.\n"
        )
        return SubmitterError.exit_code
    sys.stdout.write(f"Serving at http://{settings.host}:{settings.port} (Ctrl-C stops)\n")
    sys.stdout.flush()
    app.block_thread()
    return 0


@cache
def _gate() -> Gate:
    """Whether code can be isolated here; probed once, since a machine seldom changes."""
    return isolation_gate()


if __name__ == "__main__":
    sys.exit(main())

"""`serve`: one metric behind HTTP, for training loops and other programs."""

from __future__ import annotations

import ipaddress
import socket
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.command_line import errors
from benchmarks.errors import PlatformError, SubmitterError
from evaluator.commands.common import IsolationOption
from evaluator.commands.score import MetricArgument
from evaluator.commands.scorer_options import RuntimeOf
from evaluator.isolation.availability import IsolationChoice
from evaluator.metric import opened_metric

_SHORTEST = 16


def serve(
    metric: MetricArgument,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any that is free.")] = 7861,
    host: Annotated[
        str, typer.Option(help="Address to listen on. Beyond this machine it takes a token.")
    ] = "127.0.0.1",
    token_file: Annotated[
        Path | None, typer.Option(help="File with the token that requests must carry.")
    ] = None,
    batch: Annotated[
        int, typer.Option(min=1, help="Pairs that are scored together, of all who wait.")
    ] = 64,
    waiting: Annotated[
        int, typer.Option(min=1, help="Pairs that may wait; more are told to come again (503).")
    ] = 1024,
    *,
    runtime_of: RuntimeOf,
    isolation: IsolationOption = IsolationChoice.AUTO,
) -> None:
    """Answer `POST /score` with the scores of images and prompts; see docs/use-a-metric.md.

    Example: python -m evaluator serve clipscore-hessel --device cuda --port 7861
    """
    token = _token(token_file)
    if not token and not _is_local(host):
        raise SubmitterError(
            "token_missing",
            f"{host} is open to other machines, and no token keeps them out.",
            "Write one into a file and name it with --token-file, or listen on 127.0.0.1.",
        )
    # Before a model is loaded, which takes longer; nothing is listened to until it is.
    with _bound(host, port) as place, opened_metric(metric, runtime_of, isolation) as opened:
        # Only here: the command line starts without them.
        import uvicorn  # noqa: PLC0415

        from evaluator.metric_service import ServiceLimits, metric_service  # noqa: PLC0415

        app = metric_service(
            opened, token=token, limits=ServiceLimits(waiting=waiting), batch=batch
        )
        errors().print(f"{opened.name} is loaded.", markup=False, highlight=False)
        how = uvicorn.Config(
            app, host=host, port=port, timeout_graceful_shutdown=60, log_level="info"
        )
        with suppress(KeyboardInterrupt):
            uvicorn.Server(how).run(sockets=[place])


def _token(file: Path | None) -> str:
    if file is None:
        return ""
    try:
        token = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SubmitterError("unreadable_file", f"{file} cannot be read: {error}.") from error
    if len(token) < _SHORTEST or not token.isascii():
        raise SubmitterError(
            "token_too_short",
            f"The token in {file} has {len(token)} characters; {_SHORTEST} of ASCII or more are needed.",
            "Make one: python -c 'import secrets; print(secrets.token_urlsafe())'",
        )
    return token


def _bound(host: str, port: int) -> socket.socket:
    """A socket of that address, which refuses who connects until somebody listens."""
    made = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((host, port))
    except OSError as error:
        made.close()
        raise PlatformError(
            "address_unavailable",
            f"{host}, port {port}, cannot be listened on ({error.strerror or error}).",
            "Name another with --host or --port; --port 0 takes any that is free.",
        ) from error
    return made


def _is_local(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False

"""`serve`: one metric behind HTTP, for training loops and other programs."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.command_line import errors
from evaluator.commands.common import IsolationOption, OutputNameOption
from evaluator.commands.listening import HostOption, PortOption, bound_socket, token_for
from evaluator.commands.score import MetricArgument
from evaluator.commands.scorer_options import RuntimeOf
from evaluator.isolation.availability import IsolationChoice
from evaluator.metric import opened_metric


def serve(
    metric: MetricArgument,
    port: PortOption = 7861,
    host: HostOption = "127.0.0.1",
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
    output_name: OutputNameOption = "",
) -> None:
    """Answer `POST /score` with the scores of images and prompts; see docs/use-a-metric.md.

    Example: python -m evaluator serve clipscore-hessel --device cuda --port 7861
    """
    token = token_for(host, token_file)
    # Before a model is loaded, which takes longer; nothing is listened to until it is.
    with (
        bound_socket(host, port) as place,
        opened_metric(metric, runtime_of, isolation, output_name) as opened,
    ):
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

"""A language model that a command asks: run here, or behind an endpoint of the operator's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from evaluator.scorers.registry import Runtime

if TYPE_CHECKING:
    from evaluator.scorers.models.chat_endpoint import EndpointTextModel
    from evaluator.scorers.models.text_models import CausalTextModel

LanguageModelOption = Annotated[
    str, typer.Option(help="Language model: Hub id, folder, or id at --endpoint.")
]
EndpointOption = Annotated[
    str | None, typer.Option(help="Endpoint of the operator's file that has the model.")
]


def open_language_model(
    model: str, endpoint: str | None, revision: str, runtime: Runtime
) -> tuple[CausalTextModel | EndpointTextModel, str]:
    """A language model, and its name with its commit."""
    if endpoint is not None:
        from evaluator.scorers.endpoints import find_endpoint  # noqa: PLC0415 (where it is used)
        from evaluator.scorers.models.chat_endpoint import ChatEndpoint, EndpointTextModel  # noqa: PLC0415

        return EndpointTextModel(ChatEndpoint(find_endpoint(endpoint), model)), model
    from evaluator.scorers.questions.loading import open_text_model  # noqa: PLC0415 (torch)

    opened, source = open_text_model(model, runtime, revision)
    return opened, "@".join(filter(None, (source.name, source.revision)))

"""Pull requests on repositories of the Hub: files that are proposed to their owner."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.errors import SubmitterError
from benchmarks.sources.client import limit_waiting
from evaluator.hub.faults import Messages, in_words

_WORDING = Messages("repository_missing", "or add the written file there by hand")


def has_file(repository: str, path: str) -> bool:
    """Whether a model repository has a file on its main branch.

    Raises:
        SubmitterError: `repository_missing` where its files are not open to this account.
        TransientError: `hub_unreachable`.
    """
    from huggingface_hub import HfApi  # noqa: PLC0415 (heavy)

    limit_waiting()
    with in_words(repository, "main", _WORDING):
        return HfApi().file_exists(repository, path)


def open_pull_request(
    repository: str, files: Mapping[str, bytes], title: str, description: str
) -> str:
    """Propose files to a model repository with the token of the environment.

    Returns: the address of the pull request.

    Raises:
        SubmitterError: `token_missing`; `repository_missing` where there is none, or the token may
            not propose anything there.
        TransientError: `hub_unreachable`.
    """
    from huggingface_hub import CommitOperationAdd, HfApi, get_token  # noqa: PLC0415 (heavy)

    if not get_token():
        raise SubmitterError(
            "token_missing",
            f"A pull request on {repository} needs a token of yours.",
            "Set HF_TOKEN, or log in with `hf auth login`.",
        )
    limit_waiting()
    with in_words(repository, "main", _WORDING):
        made = HfApi().create_commit(
            repository,
            [CommitOperationAdd(path, content) for path, content in files.items()],
            commit_message=title,
            commit_description=description,
            repo_type="model",
            create_pr=True,
        )
    return str(made.pr_url)

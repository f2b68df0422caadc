"""Who may do what: accounts, the roles of their tokens and their places in organisations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.kit.hub.messages import Reply, Request, error
from tests.kit.hub.repositories import Repository

_WRITERS = {"write", "admin"}


@dataclass(frozen=True)
class Account:
    """What one token stands for."""

    name: str  # of the user
    role: str = "write"  # of the token, `read` or `write`
    # organisation to the user's role there: `read`, `contributor`, `write`, `admin`
    orgs: Mapping[str, str] = field(default_factory=dict)
    everywhere: bool = False  # whether it may write in every namespace
    # a fine-grained token: repository to `read` or `write`, and nothing else
    only: Mapping[str, str] | None = None

    def may_read(self, name: str) -> bool:
        """Whether a private repository is open to it."""
        if self.only is not None:
            return name in self.only
        return self.everywhere or self._place(name) != ""

    def may_write(self, name: str) -> bool:
        if self.only is not None:
            return self.only.get(name) == "write"
        return self.role == "write" and (self.everywhere or self._place(name) in _WRITERS)

    def may_create(self, name: str) -> bool:
        if self.only is not None or self.role != "write":
            return False
        return self.everywhere or self._place(name) in {*_WRITERS, "contributor"}

    def _place(self, name: str) -> str:
        namespace = name.partition("/")[0]
        return "admin" if namespace == self.name else self.orgs.get(namespace, "")

    def told(self) -> dict[str, Any]:
        """As `whoami-v2` tells it."""
        role = "fineGrained" if self.only is not None else self.role
        return {
            "type": "user",
            "id": f"id-of-{self.name}",
            "name": self.name,
            "fullname": self.name,
            "orgs": [
                {"type": "org", "id": f"id-of-{org}", "name": org, "roleInOrg": place}
                for org, place in self.orgs.items()
            ],
            "auth": {
                "type": "access_token",
                "accessToken": {"displayName": "token", "role": role},
            },
        }


def bad_credentials() -> Reply:
    """To a token nobody was given."""
    return error(401, "Invalid credentials in Authorization header")


def refusal(
    repository: Repository | None, account: Account | None, *, gate: bool = True
) -> Reply | None:
    """Why an account may not read a repository; None where it may."""
    mine = repository is not None and account is not None and account.may_read(repository.name)
    if repository is None or (repository.private and not mine):
        return error(404 if account else 401, "Repository not found", "RepoNotFound")
    if gate and repository.gated and not mine:
        told = "Access to this repository is restricted; accept its terms."
        return error(403 if account else 401, told, "GatedRepo")
    return None


def write_refusal(repository: Repository | None, account: Account | None) -> Reply | None:
    """Why an account may not change a repository; None where it may."""
    refused = refusal(repository, account)
    if refused or repository is None:
        return refused
    if account is None:
        return error(401, "Invalid username or password.")
    if account.may_write(repository.name):
        return None
    if account.role != "write" and account.only is None:
        return error(403, "Forbidden: you must use a write token to upload to a repository.")
    return error(403, f"You don't have the rights to write to {repository.name}.")


def proposal_refusal(repository: Repository | None, account: Account | None) -> Reply | None:
    """Why an account may open no pull request on a repository; None where it may."""
    refused = refusal(repository, account)
    if refused or repository is None:
        return refused
    if account is None:
        return error(401, "Invalid username or password.")
    return None if account.role == "write" else error(403, "Forbidden: a write token is needed.")


def sender(accounts: Mapping[str, Account], request: Request) -> Account | Reply | None:
    """Whose token a request carries: None without one, a refusal for one nobody was given."""
    if not request.token:
        return None
    return accounts.get(request.token) or bad_credentials()

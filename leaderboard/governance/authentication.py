"""Authentication of visitors: by the Hub's word, by this machine's, or none.

Nothing a visitor writes into a form or a header makes them somebody. A session of the Hub is
signed by the server; the local identity is given to connections from this machine alone, and never
to one that came through a proxy, whose visitors are all strangers.
"""

from __future__ import annotations

import ipaddress
import os
import pwd
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import urlsplit

from pydantic import ValidationError

from benchmarks.errors import PlatformError, SubmitterError
from leaderboard.accounts import Account, Origin, is_key

SCOPES = frozenset({"openid", "profile"})
"""All that is asked of the Hub: who it is. No e-mail address, no repository, no inference."""

_OAUTH = ("OAUTH_CLIENT_ID", "OAUTH_CLIENT_SECRET", "OAUTH_SCOPES", "OPENID_PROVIDER_URL")
_FORWARDED = frozenset(
    {"forwarded", "via", "x-real-ip", "x-client-ip", "x-cluster-client-ip", "true-client-ip"}
)
_FORWARDED_STARTS = ("x-forwarded", "cf-", "x-original-", "fly-", "x-envoy-")
_LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})


class AuthenticationMethod(StrEnum):
    """How people sign in to an installation."""

    HUB = "hub"
    LOCAL = "local"
    NOBODY = "nobody"
    """Nobody can: a Space without OAuth."""


@dataclass(frozen=True)
class Visit:
    """What the server knows of a request, beside its content."""

    peer: str  # address of the other end of the connection
    headers: Mapping[str, str]  # of the request, by lower-case name
    username: str | None = None  # the Hub's, out of the signed session; None without one


@dataclass(frozen=True)
class Authentication:
    """How an installation tells its visitors apart."""

    way: AuthenticationMethod = AuthenticationMethod.NOBODY  # who vouches for them
    # name of the account of visitors from this machine; empty unless `way` is local
    local: str = ""
    # keys of the accounts that may act on what others submitted
    operators: frozenset[str] = frozenset()
    # names this site is known by, beside the one a request was sent to
    hosts: frozenset[str] = frozenset()
    closed: str = ""  # why nothing can be changed here by anybody; empty where it can

    def reading_only(self, why: str) -> Authentication:
        """The same installation where nobody can sign in, since it can write nothing."""
        return Authentication(AuthenticationMethod.NOBODY, hosts=self.hosts, closed=why)

    def account(self, visit: Visit) -> Account | None:
        """The account of a visitor; None for a guest."""
        if not _same_site(visit.headers, self.hosts):
            return None
        if self.way is AuthenticationMethod.HUB and visit.username is not None:
            return self._known(Origin.HUB, visit.username)
        if self.way is AuthenticationMethod.LOCAL and _from_this_machine(visit):
            return self._known(Origin.LOCAL, self.local)
        return None

    def _known(self, origin: Origin, name: str) -> Account:
        try:
            account = Account(origin=origin, name=name)
        except ValidationError as error:
            raise PlatformError(
                "bad_account_name", f"{name!r} cannot be the name of an account."
            ) from error
        own_machine = origin is Origin.LOCAL
        return account.model_copy(update={"operator": own_machine or account.key in self.operators})

    @property
    def invitation(self) -> str:
        """A sentence for guests: how to sign in, or whom to ask."""
        if self.closed:
            return self.closed
        if self.way is AuthenticationMethod.HUB:
            return "Sign in with your Hugging Face account; only its name is asked for."
        if self.way is AuthenticationMethod.LOCAL:
            return (
                "This installation knows only people at its own machine: open it there, at "
                "http://127.0.0.1, or ask whoever runs it to submit for you."
            )
        return (
            "Nobody can sign in to this installation yet. Its operator can change that: set "
            "hf_oauth: true in the metadata of the Space."
        )


def not_signed_in(sign_in: Authentication) -> SubmitterError:
    """What a guest is told who tries to change something or to see what is private."""
    return SubmitterError("not_signed_in", "You are not signed in.", sign_in.invitation)


def read_sign_in(environment: Mapping[str, str], os_user: str) -> Authentication:
    """How visitors are told apart, as the environment says."""
    operators = _operators(environment.get("ASSAY_OPERATORS", ""))
    hosts = frozenset(_names(environment.get("SPACE_HOST", "")))
    if any(environment.get(name) for name in _OAUTH):
        _check_oauth(environment)
        return Authentication(AuthenticationMethod.HUB, operators=operators, hosts=hosts)
    if environment.get("SYSTEM") == "spaces":
        return Authentication(AuthenticationMethod.NOBODY, operators=operators, hosts=hosts)
    return Authentication(
        AuthenticationMethod.LOCAL, local=local_name(environment, os_user), operators=operators
    )


def _check_oauth(environment: Mapping[str, str]) -> None:
    needed = (*_OAUTH, "SPACE_ID")
    missing = [name for name in needed if not environment.get(name)]
    if environment.get("SYSTEM") != "spaces":
        missing.append("SYSTEM=spaces")
    if missing:
        raise SubmitterError(
            "bad_sign_in",
            f"Signing in through the Hub is only half set up: {', '.join(missing)} is missing.",
            "A Space with hf_oauth: true in its metadata sets all of them; elsewhere, unset them.",
        )
    scopes = set(environment["OAUTH_SCOPES"].split())
    if scopes != SCOPES:
        raise SubmitterError(
            "bad_sign_in",
            f"OAUTH_SCOPES asks for {' '.join(sorted(scopes))!r}; only 'openid profile' is needed.",
            "Remove hf_oauth_scopes from the metadata of the Space.",
        )


def _operators(given: str) -> frozenset[str]:
    keys = tuple(_names(given))
    wrong = [key for key in keys if not is_key(key)]
    if wrong:
        raise SubmitterError(
            "bad_operators",
            f"ASSAY_OPERATORS holds {wrong[0]!r}, which is no account.",
            "Write accounts as hub:NAME or local:NAME, with commas between them.",
        )
    return frozenset(keys)


def local_name(environment: Mapping[str, str], os_user: str) -> str:
    """Name of the account of whoever uses this machine."""
    name = environment.get("ASSAY_USER") or re.sub(r"[^A-Za-z0-9._-]", "-", os_user)
    if not is_key(f"{Origin.LOCAL}:{name}"):
        raise SubmitterError(
            "bad_user",
            f"{name!r} cannot be the name of an account.",
            "Set ASSAY_USER to a name of letters, digits and . _ -, beginning with one of the "
            "first two.",
        )
    return name


def _names(given: str) -> Iterable[str]:
    return (part.strip() for part in given.split(",") if part.strip())


def _from_this_machine(visit: Visit) -> bool:
    """Whether no other machine can be behind a request.

    A proxy on this machine connects from it as well; it shows by the headers it adds, or by the
    name it was asked for. The latter also stops a web page elsewhere whose own name was made to
    lead here (DNS rebinding).
    """
    if any(name in _FORWARDED or name.startswith(_FORWARDED_STARTS) for name in visit.headers):
        return False
    if _host_name(visit.headers.get("host", "")) not in _LOCAL_HOSTS:
        return False
    try:
        return ipaddress.ip_address(visit.peer).is_loopback
    except ValueError:
        return False


def _same_site(headers: Mapping[str, str], hosts: frozenset[str]) -> bool:
    """Whether a request came from a page of this site, or from no page at all.

    The session cookie of a Space is sent along from inside foreign pages too (`SameSite=None`, as
    the Hub shows Spaces in a frame), so a form elsewhere could act for whoever opens it.
    """
    if headers.get("sec-fetch-site", "none") not in {"same-origin", "none"}:
        return False
    if "origin" not in headers:
        return True
    address = headers["origin"].partition("://")[2]
    return address == headers.get("host", "") or _host_name(address) in hosts


def _host_name(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def this_person(*, operator: bool = False) -> Account:
    """The account of whoever runs this command; the same as of the page on this machine.

    `ASSAY_USER` names another: it keeps people apart who share a machine, and keeps nobody out,
    since whoever can write to the store's folder can do everything there.
    """
    name = local_name(os.environ, os_user())
    return Account(origin=Origin.LOCAL, name=name, operator=operator)


def os_user() -> str:
    """Name of the user this process runs as, whatever the environment says."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # A container may run as a user its system has no name for.
        return f"uid-{os.getuid()}"

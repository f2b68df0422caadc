"""Who a visitor is, and what makes nobody of one."""

from __future__ import annotations

import pytest

from benchmarks.errors import PlatformError, SubmitterError
from leaderboard.governance.authentication import (
    Authentication,
    AuthenticationMethod,
    Visit,
    local_name,
    read_sign_in,
)

OAUTH = {
    "SYSTEM": "spaces",
    "SPACE_ID": "made-up/assay",
    "SPACE_HOST": "made-up-assay.hf.space,assay.example.org",
    "OAUTH_CLIENT_ID": "id",
    "OAUTH_CLIENT_SECRET": "secret",
    "OAUTH_SCOPES": "openid profile",
    "OPENID_PROVIDER_URL": "https://hub.example.org",
}
LOCAL = Authentication(AuthenticationMethod.LOCAL, local="ada")
HUB = Authentication(
    AuthenticationMethod.HUB,
    operators=frozenset({"hub:grace"}),
    hosts=frozenset({"assay.example.org"}),
)


def visit(peer: str = "127.0.0.1", username: str | None = None, **headers: str) -> Visit:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return Visit(peer, {"host": "127.0.0.1:7860", **given}, username)


def who(sign_in: Authentication, of: Visit) -> tuple[str, bool] | None:
    account = sign_in.account(of)
    return (account.key, account.operator) if account else None


@pytest.mark.parametrize("peer", ["127.0.0.1", "127.8.9.10", "::1"])
@pytest.mark.parametrize("host", ["127.0.0.1:7860", "localhost:7860", "[::1]:7860"])
def test_a_visitor_at_the_machine_itself_is_its_user_and_an_operator(peer: str, host: str) -> None:
    assert who(LOCAL, visit(peer, host=host)) == ("local:ada", True)


@pytest.mark.parametrize("peer", ["10.0.0.7", "172.17.0.1", "2001:db8::1", "", "localhost", "x"])
def test_a_visitor_from_elsewhere_is_a_guest(peer: str) -> None:
    assert who(LOCAL, visit(peer)) is None


@pytest.mark.parametrize(
    "header",
    ["x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "forwarded", "via", "x-real-ip",
     "cf-connecting-ip", "true-client-ip", "x-original-forwarded-for"],
)  # fmt: skip
@pytest.mark.parametrize("value", ["127.0.0.1", "for=127.0.0.1", ""])
def test_whoever_comes_through_a_proxy_is_a_guest(header: str, value: str) -> None:
    assert who(LOCAL, visit(**{header: value})) is None


@pytest.mark.parametrize("host", ["assay.example.org", "evil.example:7860", "", "127.0.0.1.nip.io"])
def test_a_name_that_was_made_to_lead_here_gives_nothing(host: str) -> None:
    assert who(LOCAL, visit(host=host)) is None


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"}, {"origin": "null"}, {"origin": "http://127.0.0.1:9999"},
        {"origin": "http://[broken"}, {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
    ],
)  # fmt: skip
@pytest.mark.parametrize("sign_in", [LOCAL, HUB])
def test_a_page_of_another_site_acts_for_nobody(
    sign_in: Authentication, headers: dict[str, str]
) -> None:
    assert who(sign_in, visit(username="grace", **headers)) is None


@pytest.mark.parametrize("origin", ["http://127.0.0.1:7860", "https://assay.example.org"])
def test_a_page_of_this_site_can(origin: str) -> None:
    asked = visit("10.0.0.7", "ada", origin=origin, x_forwarded_for="1.2.3.4")
    assert who(HUB, asked) == ("hub:ada", False)


def test_operators_are_named_by_the_installation_and_by_exact_key() -> None:
    named = [who(HUB, visit(username=name)) for name in ("grace", "Grace", "ada")]
    assert named == [("hub:grace", True), ("hub:Grace", False), ("hub:ada", False)]


def test_on_a_space_the_machine_s_own_address_is_nobody() -> None:
    assert who(HUB, visit()) is who(Authentication(), visit(username="grace")) is None


def test_a_hub_name_no_account_can_have_is_our_fault() -> None:
    with pytest.raises(PlatformError):
        HUB.account(visit(username="a/../b"))


# The environment


def test_the_environment_of_a_space_means_the_hub() -> None:
    found = read_sign_in({**OAUTH, "ASSAY_OPERATORS": "hub:grace"}, "me")
    hosts = frozenset({"made-up-assay.hf.space", "assay.example.org"})
    assert found == Authentication(
        AuthenticationMethod.HUB, operators=frozenset({"hub:grace"}), hosts=hosts
    )


def test_a_space_without_oauth_lets_nobody_in_and_says_what_to_do() -> None:
    found = read_sign_in({"SYSTEM": "spaces", "SPACE_ID": "made-up/assay"}, "me")
    assert found.way is AuthenticationMethod.NOBODY
    assert "hf_oauth: true" in found.invitation


@pytest.mark.parametrize(
    ("name", "value"),
    [
        # Half set up. An empty secret above all: the key that signs sessions is made of it.
        *((name, "") for name in sorted(OAUTH.keys() - {"SPACE_HOST"})),
        # No more than a name is asked of the Hub.
        ("OAUTH_SCOPES", "openid profile email"),
        ("OAUTH_SCOPES", "openid"),
        ("OAUTH_SCOPES", "openid profile write-repos"),
        # No accounts.
        *(("ASSAY_OPERATORS", keys) for keys in ("grace", "hub:", "hub:a/b", "hub:grace;hub:ada")),
    ],
)
def test_an_environment_that_is_wrong_ends_the_start(name: str, value: str) -> None:
    with pytest.raises(SubmitterError, match=name):
        read_sign_in({**OAUTH, name: value}, "me")


def test_the_local_account_is_the_system_s_user_or_as_named() -> None:
    assert local_name({}, "DOMAIN\\ada") == "DOMAIN-ada"
    assert local_name({"ASSAY_USER": "grace"}, "ada") == "grace"
    with pytest.raises(SubmitterError, match="ASSAY_USER"):
        local_name({"ASSAY_USER": "-x"}, "ada")

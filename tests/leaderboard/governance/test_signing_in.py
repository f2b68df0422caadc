"""Who a visitor is, and what makes nobody of one."""

from __future__ import annotations

import pytest

from benchmarks.errors import PlatformError, SubmitterError
from leaderboard.governance.signing_in import SignIn, Visit, Way, local_name, read_sign_in

OAUTH = {
    "SYSTEM": "spaces",
    "SPACE_ID": "made-up/assay",
    "SPACE_HOST": "made-up-assay.hf.space,assay.example.org",
    "OAUTH_CLIENT_ID": "id",
    "OAUTH_CLIENT_SECRET": "secret",
    "OAUTH_SCOPES": "openid profile",
    "OPENID_PROVIDER_URL": "https://hub.example.org",
}
LOCAL = SignIn(Way.LOCAL, local="ada")
HUB = SignIn(Way.HUB, operators=frozenset({"hub:grace"}), hosts=frozenset({"assay.example.org"}))


def visit(peer: str = "127.0.0.1", username: str | None = None, **headers: str) -> Visit:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return Visit(peer, {"host": "127.0.0.1:7860", **given}, username)


@pytest.mark.parametrize("peer", ["127.0.0.1", "127.8.9.10", "::1"])
@pytest.mark.parametrize("host", ["127.0.0.1:7860", "localhost:7860", "[::1]:7860"])
def test_a_visitor_at_the_machine_itself_is_its_user_and_an_operator(peer: str, host: str) -> None:
    account = LOCAL.account(visit(peer, host=host))
    assert account is not None
    assert (account.key, account.operator) == ("local:ada", True)


@pytest.mark.parametrize("peer", ["10.0.0.7", "172.17.0.1", "2001:db8::1", "", "localhost", "x"])
def test_a_visitor_from_elsewhere_is_a_guest(peer: str) -> None:
    assert LOCAL.account(visit(peer)) is None


@pytest.mark.parametrize(
    "header",
    ["x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "forwarded", "via", "x-real-ip",
     "cf-connecting-ip", "true-client-ip", "x-original-forwarded-for"],
)  # fmt: skip
@pytest.mark.parametrize("value", ["127.0.0.1", "for=127.0.0.1", ""])
def test_whoever_comes_through_a_proxy_is_a_guest_whatever_its_headers_say(
    header: str, value: str
) -> None:
    assert LOCAL.account(visit(**{header: value})) is None


@pytest.mark.parametrize("host", ["assay.example.org", "evil.example:7860", "", "127.0.0.1.nip.io"])
def test_a_name_that_was_made_to_lead_here_gives_nothing(host: str) -> None:
    assert LOCAL.account(visit(host=host)) is None


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9999"},
        {"origin": "http://[broken"},
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
    ],
)
@pytest.mark.parametrize("sign_in", [LOCAL, HUB])
def test_a_page_of_another_site_cannot_act_for_who_opens_it(
    sign_in: SignIn, headers: dict[str, str]
) -> None:
    assert sign_in.account(visit(username="grace", **headers)) is None


@pytest.mark.parametrize("origin", ["http://127.0.0.1:7860", "https://assay.example.org"])
def test_a_page_of_this_site_can(origin: str) -> None:
    found = HUB.account(visit("10.0.0.7", "ada", origin=origin, x_forwarded_for="1.2.3.4"))
    assert found is not None
    assert (found.key, found.operator) == ("hub:ada", False)


def test_operators_are_named_by_the_installation_and_by_exact_key() -> None:
    named = {name: HUB.account(visit(username=name)) for name in ("grace", "Grace", "ada")}
    assert {name: a.operator for name, a in named.items() if a} == {
        "grace": True, "Grace": False, "ada": False,
    }  # fmt: skip


def test_on_a_space_the_machine_s_own_address_is_nobody() -> None:
    assert HUB.account(visit()) is None
    assert SignIn().account(visit(username="grace")) is None


def test_a_hub_name_no_account_can_have_is_our_fault() -> None:
    with pytest.raises(PlatformError, match="cannot be the name"):
        HUB.account(visit(username="a/../b"))


def test_the_environment_of_a_space_means_the_hub() -> None:
    found = read_sign_in({**OAUTH, "ASSAY_OPERATORS": "hub:grace"}, "me")
    hosts = frozenset({"made-up-assay.hf.space", "assay.example.org"})
    assert found == SignIn(Way.HUB, operators=frozenset({"hub:grace"}), hosts=hosts)


def test_a_space_without_oauth_lets_nobody_in_and_says_what_to_do() -> None:
    found = read_sign_in({"SYSTEM": "spaces", "SPACE_ID": "made-up/assay"}, "me")
    assert found.way is Way.NOBODY
    assert "hf_oauth: true" in found.invitation


@pytest.mark.parametrize("name", sorted(OAUTH.keys() - {"SPACE_HOST"}))
def test_oauth_that_is_half_set_up_ends_the_start(name: str) -> None:
    """An empty secret above all: the key that signs sessions is made of it."""
    with pytest.raises(SubmitterError, match=name):
        read_sign_in({**OAUTH, name: ""}, "me")


@pytest.mark.parametrize("scopes", ["openid profile email", "openid", "openid profile write-repos"])
def test_no_more_than_a_name_is_asked_of_the_hub(scopes: str) -> None:
    with pytest.raises(SubmitterError, match="OAUTH_SCOPES"):
        read_sign_in({**OAUTH, "OAUTH_SCOPES": scopes}, "me")


@pytest.mark.parametrize("keys", ["grace", "hub:", "hub:a/b", "hub:grace;hub:ada"])
def test_an_operator_that_is_no_account_ends_the_start(keys: str) -> None:
    with pytest.raises(SubmitterError, match="ASSAY_OPERATORS"):
        read_sign_in({"ASSAY_OPERATORS": keys}, "me")


def test_the_local_account_is_the_system_s_user_or_as_named() -> None:
    assert local_name({}, "DOMAIN\\ada") == "DOMAIN-ada"
    assert local_name({"ASSAY_USER": "grace"}, "ada") == "grace"
    with pytest.raises(SubmitterError, match="ASSAY_USER"):
        local_name({"ASSAY_USER": "-x"}, "ada")

"""An OpenID provider over local HTTP: what the Hub is to a Space, as far as signing in goes.

It asks nobody for a password: its one page offers an account to sign in with.
"""

from __future__ import annotations

import base64
import html
import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

CLIENT_ID = "made-up-client"
CLIENT_SECRET = "made-up-secret-of-this-test"


class Provider:
    """Accounts, codes and tokens of one provider.

    Args:
        address: where it is served, without a slash at its end.
        people: names one can sign in with.
    """

    def __init__(self, address: str, people: tuple[str, ...]) -> None:
        self.address = address
        self.people = people
        self.asked: list[dict[str, str]] = []
        """What sites asked for, one entry for each time somebody was sent here."""
        self._key = RSAKey.generate_key(2048, {"kid": "one", "use": "sig", "alg": "RS256"})
        self._codes: dict[str, tuple[str, dict[str, str]]] = {}

    def environment(self) -> dict[str, str]:
        """What the Hub sets for a Space with `hf_oauth: true`."""
        return {
            "SYSTEM": "spaces",
            "SPACE_ID": "made-up/assay",
            "OAUTH_CLIENT_ID": CLIENT_ID,
            "OAUTH_CLIENT_SECRET": CLIENT_SECRET,
            "OAUTH_SCOPES": "openid profile",
            "OPENID_PROVIDER_URL": self.address,
        }

    def configuration(self) -> dict[str, Any]:
        """The discovery document."""
        return {
            "issuer": self.address,
            "authorization_endpoint": f"{self.address}/oauth/authorize",
            "token_endpoint": f"{self.address}/oauth/token",
            "userinfo_endpoint": f"{self.address}/oauth/userinfo",
            "jwks_uri": f"{self.address}/jwks",
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
        }

    def keys(self) -> dict[str, Any]:
        """The public keys by which tokens are verified."""
        return {"keys": [self._key.as_dict(private=False)]}

    def consent(self, query: dict[str, str]) -> str:
        """The page on which somebody agrees."""
        self.asked.append(query)
        if query.get("client_id") != CLIENT_ID:
            return "<p>No such client.</p>"
        links = ""
        for name in self.people:
            code = secrets.token_urlsafe(12)
            self._codes[code] = (name, query)
            between = "&" if "?" in query["redirect_uri"] else "?"
            back = f"{query['redirect_uri']}{between}" + urlencode(
                {"code": code, "state": query["state"]}
            )
            links += f'<p><a href="{html.escape(back)}">Continue as {name}</a></p>'
        return f"<!doctype html><title>Provider</title><h1>Who are you?</h1>{links}"

    def token(self, form: dict[str, str], authorization: str) -> dict[str, Any] | None:
        """The answer to a code; None where the client or the code is wrong. A code counts once."""
        expected = base64.b64encode(f"{CLIENT_ID}:{CLIENT_SECRET}".encode()).decode()
        name, query = self._codes.pop(form.get("code", ""), ("", {}))
        if authorization != f"Basic {expected}" or not name:
            return None
        now = int(time.time())
        claims = {
            "iss": self.address, "aud": CLIENT_ID, "iat": now, "exp": now + 3600,
            "nonce": query.get("nonce", ""), "sub": f"id-of-{name}", **self.profile(name),
        }  # fmt: skip
        return {
            "access_token": secrets.token_urlsafe(24),
            "token_type": "bearer",
            "expires_in": 3600,
            "scope": query.get("scope", ""),
            "id_token": jwt.encode({"alg": "RS256", "kid": "one"}, claims, self._key),
        }

    def profile(self, name: str) -> dict[str, str]:
        """What the scope `profile` tells."""
        return {
            "name": f"{name.capitalize()} <b>Example</b>",
            "preferred_username": name,
            "profile": f"{self.address}/{name}",
            "picture": f"{self.address}/{name}.png",
        }


class _Server(ThreadingHTTPServer):
    provider: Provider


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if parts.path == "/.well-known/openid-configuration":
            self._json(self.server.provider.configuration())
        elif parts.path == "/jwks":
            self._json(self.server.provider.keys())
        elif parts.path == "/oauth/authorize":
            self._send(200, "text/html", self.server.provider.consent(query).encode())
        else:
            self._send(404, "text/plain", b"nothing here")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        form = {name: values[0] for name, values in parse_qs(body).items()}
        found = self.server.provider.token(form, self.headers.get("Authorization", ""))
        if self.path != "/oauth/token" or found is None:
            self._json({"error": "invalid_grant"}, 400)
        else:
            self._json(found)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Say nothing."""

    def _json(self, content: dict[str, Any], status: int = 200) -> None:
        self._send(status, "application/json", json.dumps(content).encode())

    def _send(self, status: int, kind: str, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@contextmanager
def provider(*people: str) -> Iterator[Provider]:
    """A provider that is served until the block ends."""
    server = _Server(("127.0.0.1", 0), _Handler)
    found = server.provider = Provider(f"http://127.0.0.1:{server.server_port}", people)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

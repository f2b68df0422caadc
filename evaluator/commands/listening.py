"""Addresses that a command listens on, and the token that keeps others out."""

from __future__ import annotations

import ipaddress
import socket
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.errors import PlatformError, SubmitterError

PortOption = Annotated[int, typer.Option(min=0, max=65535, help="0: any that is free.")]
HostOption = Annotated[
    str, typer.Option(help="Address to listen on. Beyond this machine it takes a token.")
]

_SHORTEST = 16


def token_for(host: str, file: Path | None) -> str:
    """The token in a file; empty where none is given and none is needed.

    Raises:
        SubmitterError: `token_missing` where other machines can reach the host; `unreadable_file`,
            `token_too_short`.
    """
    token = _token(file)
    if not token and not is_local(host):
        raise SubmitterError(
            "token_missing",
            f"{host} is open to other machines, and no token keeps them out.",
            "Write one into a file and name it with --token-file, or listen on 127.0.0.1.",
        )
    return token


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


def bound_socket(host: str, port: int) -> socket.socket:
    """A socket of that address, which refuses who connects until somebody listens.

    Raises:
        PlatformError: `address_unavailable`.
    """
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


def is_local(host: str) -> bool:
    """Whether an address is this machine's alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False

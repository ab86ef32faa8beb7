"""Who may connect to a local server: clients with the token, and web pages of the server's own address only."""

import hmac
import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import parse_qs, urlsplit

from hotlap.errors import ConfigError

MIN_TOKEN_CHARS = 16  # a shorter one could be guessed from another machine

_LOOPBACK_NAMES = ("127.0.0.1", "::1", "localhost")
_DEFAULT_PORTS = {"http": 80, "ws": 80, "https": 443, "wss": 443}


@dataclass(frozen=True)
class Refusal:
    """The HTTP response to a client that may not connect."""

    status: HTTPStatus
    reason: str


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server on `host`."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_exposure(host: str, token: str | None, token_variable: str) -> None:
    """Refuse to listen on an address that other machines can reach unless a token is set that cannot be guessed."""
    if is_loopback(host):
        return
    if not token:
        raise ConfigError(
            f"--host {host}: other machines may connect only with a token. Set {token_variable}, or leave --host out."
        )
    if len(token) < MIN_TOKEN_CHARS:
        raise ConfigError(
            f"{token_variable}: for --host {host} a token has at least {MIN_TOKEN_CHARS} characters, got {len(token)}. "
            'Take one from `python -c "import secrets; print(secrets.token_urlsafe())"`.'
        )


@dataclass(frozen=True)
class AccessRules:
    """The rules of one server that listens on `host` and `port`. If there is a token, every client must send it."""

    host: str
    port: int
    token: str | None

    def check(self, target: str, origins: Sequence[str], headers: Mapping[str, str]) -> Refusal | None:
        """Why a client is refused, or None; `target` is the requested path with its query (`/?token=…`)."""
        for origin in origins:
            if not self._is_own(origin, headers.get("Host", "")):
                return Refusal(HTTPStatus.FORBIDDEN, f"pages of {origin[:80]} may not use this server")
        if self.token is not None and not self._has_token(target, headers.get("Authorization", "")):
            return Refusal(
                HTTPStatus.UNAUTHORIZED, "this server needs its token: Authorization: Bearer TOKEN, or ?token=TOKEN"
            )
        return None

    def _is_own(self, origin: str, host_header: str) -> bool:
        """Whether a page of `origin` was served by this host and port."""
        try:
            parts = urlsplit(origin)
            port = parts.port if parts.port is not None else _DEFAULT_PORTS.get(parts.scheme)
            name = (parts.hostname or "").lower()
        except ValueError:
            return False
        if parts.scheme not in _DEFAULT_PORTS or port != self.port:
            return False
        if name == self.host.lower() or (is_loopback(self.host) and name in _LOOPBACK_NAMES):
            return True
        # On a public address the server cannot know all its names, so it trusts the Host header there: the token keeps
        # foreign pages out. On loopback the Host header would let in a DNS name rebound to 127.0.0.1.
        return self.token is not None and not is_loopback(self.host) and parts.netloc.lower() == host_header.lower()

    def _has_token(self, target: str, authorization: str) -> bool:
        scheme, _, given = authorization.partition(" ")
        offers = [given.strip()] if scheme.lower() == "bearer" else []
        try:
            offers += parse_qs(urlsplit(target).query).get("token", [])
        except ValueError:
            return False
        expected = (self.token or "").encode()
        return any(hmac.compare_digest(offer.encode("utf-8", "replace"), expected) for offer in offers)

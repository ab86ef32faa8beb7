"""Who may use a local server, and how often: clients with the token, and web pages of the server's own address only.

The bridge and the page's server share these rules.
"""

import hmac
import ipaddress
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, urlsplit

from hotlap.errors import ConfigError

MIN_TOKEN_CHARS = 16  # a shorter one could be guessed from another machine

_LOOPBACK_NAMES = ("127.0.0.1", "::1", "localhost")
_DEFAULT_PORTS = {"http": 80, "ws": 80, "https": 443, "wss": 443}
# Exactly what a browser sends, in lower case. URL parsers differ in what they take for the host of anything else, such
# as a user's name, a backslash or a path.
_ORIGIN = re.compile(
    r"(?P<scheme>[a-z]+)://(?P<place>(?P<name>\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::(?P<port>0|[1-9][0-9]{0,4}))?)"
)


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
        if refusal := self._check_origins(origins, headers):
            return refusal
        if self.token is not None and not self._has_token(target, headers.get("Authorization", "")):
            return Refusal(
                HTTPStatus.UNAUTHORIZED, "this server needs its token: Authorization: Bearer TOKEN, or ?token=TOKEN"
            )
        return None

    def check_page(self, target: str, origins: Sequence[str], headers: Mapping[str, str]) -> Refusal | None:
        """`check` for a server of pages: `Host` must be the server's own too, and a cookie may stand for the token.

        A page fetches from its own address without an `Origin`. Without the check of `Host`, a foreign page whose DNS
        name was rebound to 127.0.0.1 would be such a page.
        """
        host = headers.get("Host", "")
        if is_loopback(self.host) and not self._is_own(f"http://{host}", host):
            return Refusal(HTTPStatus.FORBIDDEN, f"this server does not answer for host {host[:80]!r}")
        if self.token is not None and self._has_cookie(headers.get("Cookie", "")):
            return self._check_origins(origins, headers)
        return self.check(target, origins, headers)

    @property
    def cookie(self) -> tuple[str, str] | None:
        """Name and value of the cookie that stands for the token, derived so that it does not give the token away."""
        if self.token is None:
            return None
        return f"hotlap_page_{self.port}", hmac.digest(self.token.encode(), b"hotlap page", "sha256").hex()

    def _check_origins(self, origins: Sequence[str], headers: Mapping[str, str]) -> Refusal | None:
        for origin in origins:
            if not self._is_own(origin, headers.get("Host", "")):
                return Refusal(HTTPStatus.FORBIDDEN, f"pages of {origin[:80]} may not use this server")
        return None

    def _is_own(self, origin: str, host_header: str) -> bool:
        """Whether a page of `origin` was served by this host and port."""
        found = _ORIGIN.fullmatch(origin.lower()) if origin.isascii() else None
        if found is None or found["scheme"] not in _DEFAULT_PORTS:
            return False
        port = int(found["port"]) if found["port"] is not None else _DEFAULT_PORTS[found["scheme"]]
        name = found["name"].strip("[]")
        if port != self.port:
            return False
        if name == self.host.lower() or (is_loopback(self.host) and name in _LOOPBACK_NAMES):
            return True
        # On a public address the server cannot know all its names, so it trusts the Host header there: the token keeps
        # foreign pages out. On loopback the Host header would let in a DNS name rebound to 127.0.0.1.
        return self.token is not None and not is_loopback(self.host) and found["place"] == host_header.lower()

    def _has_token(self, target: str, authorization: str) -> bool:
        scheme, _, given = authorization.partition(" ")
        offers = [given.strip()] if scheme.lower() == "bearer" else []
        try:
            offers += parse_qs(urlsplit(target).query).get("token", [])
        except ValueError:
            return False
        expected = (self.token or "").encode()
        return any(hmac.compare_digest(offer.encode("utf-8", "replace"), expected) for offer in offers)

    def _has_cookie(self, header: str) -> bool:
        name, expected = self.cookie or ("", "")
        try:
            found = SimpleCookie(header).get(name)
        except CookieError:
            return False
        return found is not None and hmac.compare_digest(found.value.encode("utf-8", "replace"), expected.encode())


class RateLimit:
    """At most `per_s` requests a second on average, and `burst` at once (a token bucket)."""

    def __init__(self, per_s: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_s, self._burst, self._clock = per_s, burst, clock
        self._left, self._at_s = float(burst), clock()

    def take(self) -> float | None:
        """Count one request; None if it is within the limit, else the seconds after which one will be."""
        now_s = self._clock()
        self._left = min(self._burst, self._left + (now_s - self._at_s) * self._per_s)
        self._at_s = now_s
        if self._left < 1.0:
            return (1.0 - self._left) / self._per_s
        self._left -= 1.0
        return None

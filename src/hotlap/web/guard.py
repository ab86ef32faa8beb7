"""Every request passes here first: access rules, rate, and the headers that keep foreign pages out."""

import logging
from collections.abc import Sequence
from http import HTTPStatus
from urllib.parse import parse_qs

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hotlap.bridge.access import AccessRules, RateLimit, Refusal
from hotlap.web.answers import refuse

_log = logging.getLogger(__name__)
_OWN_PATHS = ("/api/", "/data/")
_OWN_SITES = ("same-origin", "none")  # none: an address that a person typed

# Nothing is loaded from another host, and no other page may show this one in a frame.
_POLICY = (
    "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; media-src 'self' data: blob:; worker-src 'self' blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'"
)
_HEADERS = [
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
]


def _check_sites(path: str, sites: Sequence[str]) -> Refusal | None:
    """Refuse what pages of other sites ask for, except the page itself, which may be linked from anywhere.

    A picture or a link on a foreign page sends a GET without `Origin`; the browser says whose it is.
    """
    if not path.startswith(_OWN_PATHS) or all(site in _OWN_SITES for site in sites):
        return None
    return Refusal(HTTPStatus.FORBIDDEN, "pages of other sites may not use this server")


class Guard:
    """Refuses foreign and too frequent requests, and passes the others on."""

    def __init__(self, app: ASGIApp, access: AccessRules, rate: RateLimit) -> None:
        self._app, self._access, self._rate = app, access, rate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers: dict[str, str] = {}
        origins: list[str] = []
        sites: list[str] = []
        for raw_name, raw_value in scope["headers"]:
            name, value = raw_name.decode("latin-1").title(), raw_value.decode("latin-1")
            headers[name] = value
            if name == "Origin":
                origins.append(value)
            elif name == "Sec-Fetch-Site":
                sites.append(value.strip().lower())
        query = scope["query_string"].decode("latin-1")
        refusal = _check_sites(scope["path"], sites) or self._access.check_page(f"/?{query}", origins, headers)
        wait_s = None if refusal else self._rate.take()
        extra = list(_HEADERS)
        if refusal is None and (cookie := self._cookie_to_set(query)):
            extra.append((b"set-cookie", cookie))

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *extra]
            await send(message)

        if refusal is not None:
            _log.info("refused: %s", ascii(refusal.reason))
            response = refuse(refusal.status, refusal.reason)
        elif wait_s is not None:
            response = refuse(HTTPStatus.TOO_MANY_REQUESTS, "too many requests. Wait a moment.", wait_s)
        else:
            await self._app(scope, receive, send_with_headers)
            return
        await response(scope, receive, send_with_headers)

    def _cookie_to_set(self, query: str) -> bytes | None:
        """The cookie for a page that was opened with the token in its address."""
        if self._access.cookie is None or "token" not in parse_qs(query):
            return None
        name, value = self._access.cookie
        return f"{name}={value}; HttpOnly; SameSite=Strict; Path=/".encode()

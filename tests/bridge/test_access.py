"""Who may connect: pages of the bridge's own address, and those who know the token."""

import hmac
from http import HTTPStatus

import pytest

from hotlap.bridge import access as gate_module
from hotlap.bridge.access import AccessRules, check_exposure, is_loopback
from hotlap.errors import BridgeError

LOCAL = AccessRules("127.0.0.1", 9876, None)
PUBLIC = AccessRules("0.0.0.0", 9876, "sesame")
SESAME = {"Authorization": "Bearer sesame"}


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_this_machine_needs_no_token(host):
    assert is_loopback(host)
    check_exposure(host, None)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.org", "", "127.0.0.1.example.org"])
def test_any_other_address_needs_one(host):
    assert not is_loopback(host)
    for nothing in (None, ""):
        with pytest.raises(BridgeError, match="HOTLAP_BRIDGE_TOKEN"):
            check_exposure(host, nothing)
    check_exposure(host, "sesame")


@pytest.mark.parametrize(
    "origins",
    [
        [],
        ["http://127.0.0.1:9876"],
        ["http://localhost:9876"],
        ["http://LOCALHOST:9876"],
        ["http://[::1]:9876"],
        ["https://127.0.0.1:9876"],
        ["ws://127.0.0.1:9876"],
    ],
)
def test_no_page_or_one_of_its_own_may_come_in(origins):
    assert LOCAL.check("/", origins, {}) is None


@pytest.mark.parametrize(
    "origin",
    [
        "http://example.org", "http://example.org:9876", "http://127.0.0.1", "http://127.0.0.1:80",
        "http://localhost:3000", "null", "", "file://", "127.0.0.1:9876", "http://127.0.0.1:9876@example.org",
        "http://127.0.0.1.example.org:9876", "http://[bad:9876", "http://127.0.0.1:port", "ftp://127.0.0.1:9876",
    ],
)  # fmt: skip
def test_other_pages_are_kept_out(origin):
    # A DNS name rebound to loopback brings itself in the Host header too.
    host = origin.rpartition("/")[2]
    refusal = LOCAL.check("/", [origin], {"Host": host})
    assert refusal is not None
    assert refusal.status == HTTPStatus.FORBIDDEN
    assert LOCAL.check("/", ["http://127.0.0.1:9876", origin], {"Host": host}) == refusal


def test_on_port_80_the_port_may_be_left_out():
    assert AccessRules("127.0.0.1", 80, None).check("/", ["http://127.0.0.1"], {}) is None


@pytest.mark.parametrize(
    ("target", "headers"),
    [
        ("/", SESAME),
        ("/", {"Authorization": "bearer  sesame"}),
        ("/?token=sesame", {}),
        ("/any/path?x=1&token=sesame", {}),
        ("/?token=wrong&token=sesame", {}),
    ],
)
def test_the_token_opens(target, headers):
    assert PUBLIC.check(target, [], headers) is None


@pytest.mark.parametrize(
    ("target", "headers"),
    [
        ("/", {}),
        ("/", {"Authorization": "Bearer wrong"}),
        ("/", {"Authorization": "Bearer"}),
        ("/", {"Authorization": "Bearer "}),
        ("/", {"Authorization": "Basic sesame"}),
        ("/", {"Authorization": "sesame"}),
        ("/", {"Authorization": "Bearer s\u00e9same"}),
        ("/?token=", {}),
        ("/?token=SESAME", {}),
        ("/?tokens=sesame", {}),
        ("/#token=sesame", {}),
    ],
)
def test_nothing_else_does(target, headers):
    refusal = PUBLIC.check(target, [], headers)
    assert refusal is not None
    assert refusal.status == HTTPStatus.UNAUTHORIZED
    assert "sesame" not in refusal.reason


def test_a_token_on_this_machine_is_asked_for_too():
    assert AccessRules("127.0.0.1", 9876, "sesame").check("/", [], {}) is not None
    assert AccessRules("127.0.0.1", 9876, "sesame").check("/", [], SESAME) is None


def test_tokens_are_compared_in_constant_time(monkeypatch):
    compared = []
    original = hmac.compare_digest

    def spy(given, expected):
        compared.append((given, expected))
        return original(given, expected)

    monkeypatch.setattr(gate_module.hmac, "compare_digest", spy)
    PUBLIC.check("/", [], {"Authorization": "Bearer guess"})
    assert compared == [(b"guess", b"sesame")]


def test_on_a_public_address_the_page_may_name_the_host_as_the_client_did():
    origin = ["http://racer.example:9876"]
    assert PUBLIC.check("/", origin, {**SESAME, "Host": "racer.example:9876"}) is None
    for host in ({}, {"Host": "other.example:9876"}, {"Host": "racer.example"}):
        refusal = PUBLIC.check("/", origin, {**SESAME, **host})
        assert refusal is not None
        assert refusal.status == HTTPStatus.FORBIDDEN

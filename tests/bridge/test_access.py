"""Access rules: which pages and which tokens may connect."""

from http import HTTPStatus

import pytest

from hotlap.bridge import access as access_module
from hotlap.bridge.access import AccessRules, RateLimit, check_exposure, is_loopback
from hotlap.errors import ConfigError

LOCAL = AccessRules("127.0.0.1", 9876, None)
LOCAL_WITH_TOKEN = AccessRules("127.0.0.1", 9876, "sesame")
PUBLIC = AccessRules("0.0.0.0", 9876, "sesame")
SESAME = {"Authorization": "Bearer sesame"}


def test_loopback_needs_no_token():
    for host in ("127.0.0.1", "127.9.9.9", "::1", "localhost"):
        assert is_loopback(host)
        check_exposure(host, None, "SOME_TOKEN")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.org", "", "127.0.0.1.example.org"])
def test_any_other_address_needs_a_token(host):
    assert not is_loopback(host)
    for missing in (None, ""):
        with pytest.raises(ConfigError, match=r"only with a token\. Set SOME_TOKEN"):
            check_exposure(host, missing, "SOME_TOKEN")
    check_exposure(host, "x" * 16, "SOME_TOKEN")


@pytest.mark.parametrize("token", ["s", "sesame", "x" * 15])
def test_a_short_token_is_enough_for_this_machine_only(token):
    check_exposure("127.0.0.1", token, "SOME_TOKEN")
    words = rf"SOME_TOKEN: for --host 0.0.0.0 a token has at least 16 characters, got {len(token)}\. Take one from"
    with pytest.raises(ConfigError, match=words) as caught:
        check_exposure("0.0.0.0", token, "SOME_TOKEN")
    assert "sesame" not in str(caught.value)


def test_own_pages_and_clients_without_an_origin_are_accepted():
    assert LOCAL.check("/", [], {}) is None
    for host in ("127.0.0.1", "localhost", "LOCALHOST", "[::1]"):
        for scheme in ("http", "https", "ws"):
            assert LOCAL.check("/", [f"{scheme}://{host}:9876"], {}) is None
    assert AccessRules("127.0.0.1", 80, None).check("/", ["http://127.0.0.1"], {}) is None


FOREIGN = """http://example.org http://example.org:9876 http://127.0.0.1 http://127.0.0.1:80 http://localhost:3000 null
    file:// 127.0.0.1:9876 http://127.0.0.1:9876@example.org http://127.0.0.1.example.org:9876 http://[bad:9876
    http://127.0.0.1:port ftp://127.0.0.1:9876 http://evil@127.0.0.1:9876 http://user:evil@127.0.0.1:9876
    http://@127.0.0.1:9876 http://evil.com\\@127.0.0.1:9876 http://evil.com\\127.0.0.1:9876 http://evil.com/@127.0.0.1:9876
    http://127.0.0.1:9876/path http://127.0.0.1:9876?query http://127.0.0.1:9876# http://127.0.0.1:9876/
    http:127.0.0.1:9876 http:/127.0.0.1:9876 http:///127.0.0.1:9876 http://127.0.0.1:09876 http://127.0.0.1:+9876
    http://127.0.0.1:9_876 http://127.0.0.1:9876\u0000 http://\uff11\uff12\uff17.0.0.1:9876 http://127.0.0.1:\uff19\uff18\uff17\uff16
    http://127.0.0.1%00:9876 http://127.0.0.1%2eevil.com:9876 http://[::1%25evil]:9876 http://[::1]evil:9876
    http://[v1.evil]:9876 http://\tlocalhost:9876"""


@pytest.mark.parametrize("origin", ["", *FOREIGN.split()])
def test_foreign_pages_are_refused(origin):
    # A DNS name rebound to loopback appears in the Host header too.
    host = origin.rpartition("/")[2]
    refusal = LOCAL.check("/", [origin], {"Host": host})
    assert refusal.status == HTTPStatus.FORBIDDEN
    assert LOCAL.check("/", ["http://127.0.0.1:9876", origin], {"Host": host}) == refusal


@pytest.mark.parametrize("rules", [PUBLIC, LOCAL_WITH_TOKEN], ids=["public", "loopback"])
def test_the_right_token_is_accepted_and_any_other_refused(rules):
    for header in ("Bearer sesame", "bearer  sesame"):
        assert rules.check("/", [], {"Authorization": header}) is None
    for target in ("/?token=sesame", "/any/path?x=1&token=sesame", "/?token=wrong&token=sesame"):
        assert rules.check(target, [], {}) is None
    wrong = ["Bearer wrong", "Bearer", "Bearer ", "Basic sesame", "sesame", "Bearer s\u00e9same"]
    refused = [rules.check("/", [], {"Authorization": header}) for header in wrong]
    for target in ("/", "/?token=", "/?token=SESAME", "/?tokens=sesame", "/#token=sesame"):
        refused.append(rules.check(target, [], {}))
    assert [refusal.status for refusal in refused] == [HTTPStatus.UNAUTHORIZED] * 11
    assert not any("sesame" in refusal.reason for refusal in refused)


def test_tokens_are_compared_in_constant_time(monkeypatch):
    compared = []
    monkeypatch.setattr(access_module.hmac, "compare_digest", lambda *both: compared.append(both) or False)
    PUBLIC.check("/", [], {"Authorization": "Bearer guess"})
    assert compared == [(b"guess", b"sesame")]


def test_on_a_public_address_the_origin_may_equal_the_host_header():
    origin = ["http://racer.example:9876"]
    assert PUBLIC.check("/", origin, {**SESAME, "Host": "racer.example:9876"}) is None
    for host in ({}, {"Host": "other.example:9876"}, {"Host": "racer.example"}):
        assert PUBLIC.check("/", origin, {**SESAME, **host}).status == HTTPStatus.FORBIDDEN


def test_on_a_public_address_an_origin_with_a_user_or_a_path_is_not_the_host_headers():
    for place in ("evil@racer.example:9876", "evil.com\\@racer.example:9876", "racer.example:9876/path"):
        refusal = PUBLIC.check("/", [f"http://{place}"], {**SESAME, "Host": place})
        assert refusal.status == HTTPStatus.FORBIDDEN


# --- pages ---


@pytest.mark.parametrize("host", ["127.0.0.1:9876", "localhost:9876", "LOCALHOST:9876", "[::1]:9876"])
def test_a_page_of_this_machine_is_served(host):
    assert LOCAL.check_page("/", [], {"Host": host}) is None
    assert LOCAL.check_page("/", [f"http://{host}"], {"Host": host}) is None


REBOUND = """example.org example.org:9876 127.0.0.1 127.0.0.1:80 localhost:3000 127.0.0.1.example.org:9876
    127.0.0.1:9876@example.org user@127.0.0.1:9877 [bad:9876 127.0.0.1:port evil@127.0.0.1:9876 evil:a@127.0.0.1:9876
    @127.0.0.1:9876 evil.com\\@127.0.0.1:9876 evil.com/@127.0.0.1:9876 127.0.0.1:9876/ 127.0.0.1:9876?a 127.0.0.1:9876#
    127.0.0.1:9876\\ 127.0.0.1:09876 127.0.0.1:9876\u0000 [::1]evil:9876 [::1%25evil]:9876"""


@pytest.mark.parametrize("host", ["", *REBOUND.split()])
def test_a_foreign_host_is_refused_without_an_origin_too(host):
    refusal = LOCAL.check_page("/", [], {"Host": host})
    assert refusal.status == HTTPStatus.FORBIDDEN
    assert LOCAL.check_page("/", ["http://127.0.0.1:9876"], {"Host": host}) == refusal
    assert LOCAL.check_page("/", [], {}).status == HTTPStatus.FORBIDDEN


def test_a_cookie_stands_for_the_token_but_not_for_the_origin():
    name, value = PUBLIC.cookie
    assert "sesame" not in value
    assert LOCAL.cookie is None
    headers = {"Host": "racer.example:9876", "Cookie": f"other=1; {name}={value}"}
    assert PUBLIC.check_page("/", [], headers) is None
    assert PUBLIC.check_page("/", ["http://racer.example:9876"], headers) is None
    assert PUBLIC.check_page("/", ["http://evil.example"], headers).status == HTTPStatus.FORBIDDEN
    for cookie in (
        "",
        f"{name}=",
        f"{name}=x",
        f"x{name}={value}",
        f"{name}=s\u00e9same",
        "\x00=;;=",
        f"{name}=sesame",
    ):
        assert PUBLIC.check_page("/", [], {**headers, "Cookie": cookie}).status == HTTPStatus.UNAUTHORIZED
    assert PUBLIC.check_page("/?token=sesame", [], {"Host": "racer.example:9876"}) is None


def test_a_rate_limit_lets_a_burst_through_and_then_so_many_a_second():
    now = [100.0]
    limit = RateLimit(per_s=2.0, burst=3, clock=lambda: now[0])
    assert [limit.take() for _ in range(5)] == [None, None, None, 0.5, 0.5]
    now[0] += 0.5
    assert [limit.take(), limit.take()] == [None, 0.5]
    now[0] += 1000.0
    assert [limit.take() for _ in range(4)] == [None, None, None, 0.5]

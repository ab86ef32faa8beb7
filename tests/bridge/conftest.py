"""Fixtures of the bridge's tests."""

from collections.abc import Iterator

import pytest

from bridge.json_clients import JsonClient, JsonSession


@pytest.fixture
def ask() -> JsonSession:
    """A session to send requests to, without sockets."""
    return JsonSession()


@pytest.fixture
def client(bridge_server) -> Iterator[JsonClient]:
    """A WebSocket client of the running bridge."""
    with JsonClient(bridge_server.url) as client:
        yield client

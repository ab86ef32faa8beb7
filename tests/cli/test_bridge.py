"""`hotlap bridge` and `hotlap bench bridge`: what they refuse, what they print, and their exit codes."""

import socket

import pytest

from hotlap.bridge import server as server_module
from hotlap.bridge.server import BridgeSettings


@pytest.fixture
def settings(monkeypatch) -> list[BridgeSettings]:
    """What the server would have been started with; it is not started."""
    seen: list[BridgeSettings] = []

    def run(settings, on_ready):
        seen.append(settings)
        on_ready(f"ws://{settings.host}:{settings.port}")

    monkeypatch.setattr(server_module, "run", run)
    for name in ("BRIDGE_PORT", "HOTLAP_BRIDGE_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    return seen


def test_it_says_where_it_listens(hotlap, settings):
    answer = hotlap("bridge")
    assert (answer.code, answer.out, answer.err) == (0, "[bridge] listening on ws://127.0.0.1:9876\n", "")
    assert settings == [BridgeSettings("127.0.0.1", 9876, None)]


def test_the_port_is_the_options_then_the_variables_then_the_usual_one(hotlap, settings, monkeypatch):
    monkeypatch.setenv("BRIDGE_PORT", "1234")
    hotlap("bridge")
    hotlap("bridge", "--port", 5678)
    assert [one.port for one in settings] == [1234, 5678]


def test_the_token_comes_from_outside(hotlap, settings, monkeypatch):
    monkeypatch.setenv("HOTLAP_BRIDGE_TOKEN", "sesame")
    assert hotlap("bridge", "--host", "0.0.0.0").code == 0
    assert settings == [BridgeSettings("0.0.0.0", 9876, "sesame")]


@pytest.mark.usefixtures("settings")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["--host", "0.0.0.0"],
            "--host 0.0.0.0: other machines may connect only with a token. Set HOTLAP_BRIDGE_TOKEN",
        ),
        (["--host", "192.168.1.5"], "HOTLAP_BRIDGE_TOKEN"),
        (["--port", "65536"], "from 0 to 65535, got 65536"),
        (["--port", "-1"], "from 0 to 65535, got -1"),
        (["--port", "http"], "'--port'"),
        (["now"], "Got unexpected extra argument"),
    ],
)
def test_bad_arguments_are_refused_in_one_line(refused, arguments, words):
    assert words in refused("bridge", *arguments)


@pytest.mark.usefixtures("settings")
def test_a_variable_that_is_no_port_is_refused(refused, monkeypatch):
    monkeypatch.setenv("BRIDGE_PORT", "http")
    assert "BRIDGE_PORT: a port is a whole number" in refused("bridge")


def test_a_port_in_use_is_refused_in_one_line(refused):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"port {port} of 127.0.0.1 is in use. Stop its server, or choose another --port." in refused(
            "bridge", "--port", port
        )


def test_a_host_that_is_none_is_refused_in_one_line(refused, monkeypatch):
    monkeypatch.setenv("HOTLAP_BRIDGE_TOKEN", "sesame")
    assert "no such address" in refused("bridge", "--host", "no.such.host.invalid", "--port", 0)


@pytest.mark.parametrize("verb", [["bridge"], ["bench", "bridge"]])
def test_help_has_an_example(hotlap, verb):
    answer = hotlap(*verb, "--help")
    assert answer.code == 0
    assert f"Example: hotlap {' '.join(verb)} --" in answer.out


# --- bench bridge ---


@pytest.mark.usefixtures("bridge_server")
def test_a_target_met_is_0_and_one_missed_1(hotlap):
    met = hotlap("bench", "bridge", "--steps", 40, "--target", 1, "--warmup", 3, "--json")
    assert met.code == 0
    assert (met.figures["steps"], met.figures["warmup"], met.figures["target"]) == (40, 3, 1.0)
    assert met.figures["passed"] is True
    missed = hotlap("bench", "bridge", "--steps", 40, "--target", 1e9, "--json")
    assert missed.code == 1
    assert missed.figures["passed"] is False
    assert missed.err == ""


def test_for_people_and_by_url(hotlap, bridge_server, monkeypatch):
    monkeypatch.setenv("BRIDGE_PORT", "1")
    answer = hotlap("bench", "bridge", "--steps", 40, "--target", 1, "--url", bridge_server.url)
    assert answer.code == 0
    assert "steps/s (asked for: 1); round trip p50" in answer.out


def test_no_bridge_is_2_and_one_line(refused, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        monkeypatch.setenv("BRIDGE_PORT", str(taken.getsockname()[1]))
    assert "no bridge there" in refused("bench", "bridge", "--json")
    assert "no WebSocket address" in refused("bench", "bridge", "--url", "nonsense")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(["--steps", "0"], "'--steps'"), (["--target", "-1"], "'--target'"), (["--warmup", "x"], "'--warmup'")],
)
def test_bad_figures_are_refused(refused, arguments, words):
    assert words in refused("bench", "bridge", *arguments)

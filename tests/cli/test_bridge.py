"""`hotlap bridge` and `hotlap bench bridge`: arguments, output and exit codes."""

import re
import socket

import pytest

from hotlap.bridge import server as server_module
from hotlap.bridge.server import BridgeSettings


@pytest.fixture
def settings(monkeypatch) -> list[BridgeSettings]:
    """The settings that the server is called with; it is not started."""
    seen: list[BridgeSettings] = []

    def run(settings, on_ready):
        seen.append(settings)
        on_ready(f"ws://{settings.host}:{settings.port}")

    monkeypatch.setattr(server_module, "run", run)
    for name in ("BRIDGE_PORT", "HOTLAP_BRIDGE_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    return seen


def test_it_prints_where_it_listens(hotlap, settings):
    answer = hotlap("bridge")
    assert (answer.code, answer.out, answer.err) == (0, "[bridge] listening on ws://127.0.0.1:9876\n", "")
    assert settings == [BridgeSettings("127.0.0.1", 9876, None)]


def test_port_and_token_come_from_the_environment_but_the_option_takes_precedence(hotlap, settings, monkeypatch):
    monkeypatch.setenv("BRIDGE_PORT", "1234")
    monkeypatch.setenv("HOTLAP_BRIDGE_TOKEN", "open-sesame-0123")
    assert hotlap("bridge", "--host", "0.0.0.0").code == 0
    assert hotlap("bridge", "--port", 5678).code == 0
    assert settings == [
        BridgeSettings(host, port, "open-sesame-0123") for host, port in (("0.0.0.0", 1234), ("127.0.0.1", 5678))
    ]


def test_bad_arguments_are_refused_in_one_line(refused, monkeypatch):
    monkeypatch.delenv("HOTLAP_BRIDGE_TOKEN", raising=False)
    assert "connect only with a token. Set HOTLAP_BRIDGE_TOKEN" in refused("bridge", "--host", "0.0.0.0")
    monkeypatch.setenv("HOTLAP_BRIDGE_TOKEN", "sesame")
    assert "at least 16 characters, got 6. Take one from" in refused("bridge", "--host", "0.0.0.0")
    assert "from 0 to 65535, got -1" in refused("bridge", "--port", "-1")
    assert "'--port'" in refused("bridge", "--port", "http")
    assert "Got unexpected extra argument" in refused("bridge", "now")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        in_use = refused("bridge", "--port", taken.getsockname()[1])
    assert "is in use. Stop its server, or choose another --port." in in_use


# --- bench bridge ---


def test_exit_code_is_0_if_the_target_is_met_and_1_if_missed(hotlap, bridge_server, monkeypatch):
    met = hotlap("bench", "bridge", "--steps", 40, "--target", 1, "--warmup", 3, "--json")
    assert (met.code, met.figures["passed"]) == (0, True)
    assert (met.figures["steps"], met.figures["warmup"], met.figures["target"]) == (40, 3, 1.0)
    missed = hotlap("bench", "bridge", "--steps", 40, "--target", 1e9, "--json")
    assert (missed.code, missed.figures["passed"], missed.err) == (1, False, "")
    monkeypatch.setenv("BRIDGE_PORT", "1")
    answer = hotlap("bench", "bridge", "--steps", 40, "--target", 1, "--url", bridge_server.url)
    assert answer.code == 0
    figure = r"\d+\.\d{3} ms"
    speeds = rf"[\d,]+ steps/s; round trip mean {figure}, p50 {figure}, p95 {figure}, p99 {figure}\n"
    assert re.fullmatch(speeds + r"PASS \(target: 1 steps/s\)\n", answer.out)
    missed = hotlap("bench", "bridge", "--steps", 40, "--target", 1e9, "--url", bridge_server.url)
    assert missed.code == 1
    assert re.fullmatch(speeds + r"FAIL \(target: 1,000,000,000 steps/s\)\n", missed.out)


def test_without_a_bridge_or_with_bad_figures_it_exits_with_2_and_one_line(refused, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        monkeypatch.setenv("BRIDGE_PORT", str(taken.getsockname()[1]))
    assert "no bridge there" in refused("bench", "bridge", "--json")
    assert "not a WebSocket address" in refused("bench", "bridge", "--url", "nonsense")
    for option, value in {"--steps": 0, "--target": -1, "--warmup": "x"}.items():
        assert f"'{option}'" in refused("bench", "bridge", option, value)

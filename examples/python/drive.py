"""Drive a lap over the bridge without Hotlap; needs only `pip install websocket-client`.

Start a bridge with `hotlap bridge`, then: python drive.py [ws://127.0.0.1:9876]
"""

import json
import sys

import websocket

FIRST_RAY, AHEAD, LAST_RAY, SPEED = 0, 4, 8, 9  # indices of the observation: rays from right to left, then speed


def clamp(value, low, high):
    """`value` limited to the range from `low` to `high`."""
    return max(low, min(high, value))


def drive(observation):
    """Steer to the side with more room; the more room ahead, the faster."""
    lean = 0.0
    for side in (1, 2, 3):
        lean += observation[FIRST_RAY + side] - observation[LAST_RAY - side]
    room = min(observation[AHEAD - 1], observation[AHEAD], observation[AHEAD + 1])
    margin = 0.1 + room - observation[SPEED]
    return [clamp(2 * lean, -1, 1), clamp(3 * margin, 0, 1), clamp(-4 * margin, 0, 1)]  # steer, throttle, brake


class Bridge:
    """One connection drives one car; every request gets one reply."""

    def __init__(self, url):
        self.socket = websocket.create_connection(url, timeout=10)

    def ask(self, **request):
        """Send a request and wait for its reply."""
        self.socket.send(json.dumps(request))
        reply = json.loads(self.socket.recv())
        if reply["type"] == "error":
            raise RuntimeError(reply["message"])
        return reply


def main(url):
    """Drive until a lap is done or the car is stuck."""
    bridge = Bridge(url)
    hello = bridge.ask(type="hello")
    print(f"physics {hello['physics']}, {len(hello['tracks'])} tracks")

    # This driver is slow: it needs more ticks (of 1/60 s) for a lap than an episode usually has.
    config = {"episode": {"maxSteps": 6000}}
    reply = bridge.ask(type="reset", trackId="track-01", seed=1, config=config)
    total, done, lap_time = 0.0, False, None
    while not done and lap_time is None:
        reply = bridge.ask(type="step", action=drive(reply["observation"]))
        total += reply["reward"]
        done = reply["terminated"] or reply["truncated"]
        lap_time = reply["info"].get("lapTime")  # present only on the step that ends a lap
    bridge.ask(type="close")
    bridge.socket.close()
    if lap_time is None:
        sys.exit(f"no lap: the car got stuck after {reply['info']['tick']} ticks")
    print(f"lap time {lap_time:.3f} s, return {total:.3f}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "ws://127.0.0.1:9876")

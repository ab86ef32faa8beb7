"""Enter the benchmark over the bridge without Hotlap; needs only `pip install websocket-client`.

    hotlap benchmark protocol > protocol.json
    hotlap bridge
    python benchmark_entry.py protocol.json entry.zip [ws://127.0.0.1:9876]
    hotlap benchmark verify entry.zip

It drives the built-in tracks, every start of a track in one message, and writes what it did as an entry.
"""

import json
import struct
import sys
import zipfile
from pathlib import Path

from drive import Bridge, drive

PART = "built-in"
NO_TIME_LIMIT = {"episode": {"maxSteps": 2**31 - 1}}


def drive_track(bridge, track, seeds, max_ticks):
    """The actions of every car, tick by tick, and its flying lap: [time or None, whether it is clean]."""
    count = len(seeds)
    reply = bridge.ask(type="reset", trackId=track, numEnvs=count, seed=seeds, start="random", config=NO_TIME_LIMIT)
    actions, laps, running = [[] for _ in seeds], [[None, False] for _ in seeds], set(range(count))
    for _ in range(max_ticks):
        chosen = [to_float32(drive(observation)) for observation in reply["observation"]]
        reply = bridge.ask(type="step", action=chosen)
        for car in running:
            actions[car].append(chosen[car])
        info = reply["info"]
        for car, time in enumerate(info.get("lapTime") or [None] * count):
            if car in running and time is not None:  # the first lap that ends is the flying one
                laps[car] = [time, info["lapClean"][car]]
                running.discard(car)
        running -= {car for car in running if reply["terminated"][car]}
        if not running:
            break
    return actions, laps


def to_float32(action):
    """The action as the simulator gets it."""
    return list(struct.unpack("<3f", struct.pack("<3f", *action)))


def to_runs(actions):
    """Runs of the same action, 16 bytes each: steer, throttle, brake, and for how many ticks."""
    runs = []
    for action in actions:
        content = struct.pack("<3f", *action)
        if runs and runs[-1][0] == content:
            runs[-1][1] += 1
        else:
            runs.append([content, 1])
    return [content + struct.pack("<I", ticks) for content, ticks in runs]


def main(protocol_file, entry_file, url):
    """Drive all tracks of the part and write the entry."""
    protocol = json.loads(Path(protocol_file).read_text(encoding="utf-8"))
    bridge = Bridge(url)
    entry = {name: protocol[name] for name in ("format", "benchmark", "digest", "physics", "race", "opponents")}
    entry |= {"name": "room to drive", "parts": [PART], "laps": {}, "overtaking": None}
    with zipfile.ZipFile(entry_file, "w", zipfile.ZIP_DEFLATED) as zipped:
        for track, starts in protocol["laps"][PART].items():
            actions, laps = drive_track(bridge, track, starts["seeds"], protocol["max_ticks"])
            runs = [to_runs(one) for one in actions]
            entry["laps"][track] = [[len(run), *lap] for run, lap in zip(runs, laps, strict=True)]
            zipped.writestr(f"{track}.actions", b"".join(b"".join(run) for run in runs))
            times = [time for time, is_clean in laps if is_clean]
            print(f"{track}: {len(times)} of {len(laps)} laps are clean")
        zipped.writestr("entry.json", json.dumps(entry))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else "ws://127.0.0.1:9876")

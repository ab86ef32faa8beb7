"""Drive a trained model over the bridge without Hotlap; needs `pip install websocket-client numpy onnxruntime`.

Start a bridge with `hotlap bridge`, export the model with `hotlap export RUN --format onnx --out driver.onnx`, then:
python drive_model.py driver.onnx [ws://127.0.0.1:9876]

The lap times are those of `hotlap evaluate RUN`, to the last bit.
"""

import json
import sys

import numpy as np
import onnxruntime
from drive import Bridge

NUM_LAPS = 2  # the first from standing, the second flying
MAX_TICKS = 60 * 60 * 10


class Model:
    """An exported model: it decides every `action_repeat` ticks, from the last `stack` observations."""

    def __init__(self, path):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # the network is small
        self.session = onnxruntime.InferenceSession(path, options)
        told = self.session.get_modelmeta().custom_metadata_map
        self.track = told.get("track", "track-01")  # a model of many tracks names none
        self.observation = told["observation"]
        self.action_repeat, self.stack = json.loads(told["action_repeat"]), json.loads(told["stack"])
        [entry] = self.session.get_inputs()
        self.seen = np.zeros(entry.shape[1], np.float32)  # oldest first, zeros before the start

    def decide(self, observation):
        """Steer, throttle and brake for the next `action_repeat` ticks."""
        self.seen = np.concatenate([self.seen[len(observation) :], np.array(observation, np.float32)])
        [actions] = self.session.run(["action"], {"observation": self.seen[None]})
        return actions[0].tolist()


def main(path, url):
    """Drive a standing and a flying lap."""
    model, bridge = Model(path), Bridge(url)
    config = {"episode": {"maxSteps": MAX_TICKS}}
    reply = bridge.ask(type="reset", trackId=model.track, observation=model.observation, config=config)
    lap_times, done, tick = [], False, 0
    while not done and len(lap_times) < NUM_LAPS:
        if tick % model.action_repeat == 0:
            action = model.decide(reply["observation"])
        reply = bridge.ask(type="step", action=action)
        tick += 1
        done = reply["terminated"] or reply["truncated"]
        if "lapTime" in reply["info"]:
            lap_times.append(reply["info"]["lapTime"])
    bridge.ask(type="close")
    bridge.socket.close()
    if len(lap_times) < NUM_LAPS:
        sys.exit(f"no flying lap: the car got stuck after {tick} ticks")
    print(f"{model.track}: standing lap {lap_times[0]} s, flying lap {lap_times[1]} s")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "ws://127.0.0.1:9876")

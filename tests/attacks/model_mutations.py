"""Random mutations of model files: of their bytes, their zip, their members, and the JSON and tensors in those."""

import copy
import hashlib
import io
import json
import pickle
import random
import re
import struct
import zipfile
from typing import Any

CANARY = "canary_module"  # the module beside the models, which nothing may import
Members = dict[str, bytes]

BIG = [0, 1, -1, 2**15, 2**24, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**62, 2**63, 2**64, 2**200, 10**400]
TEXTS = [
    "", "a", CANARY, f"{CANARY}:CartPole-v1", f"{CANARY}:Canary-v0", f"{CANARY}:{CANARY}:A-v0", ":", ":CartPole-v1",
    "../../etc/passwd", "/etc/passwd", "file:///etc/passwd", "C:\\x", "ws://127.0.0.1:9", "http://127.0.0.1:9/",
    "hotlap/Racer-v0", "hotlap/RemoteRacer-v0", "CartPole-v1", "CartPole", "CartPole-v0", "Pendulum-v1", "Acrobot-v1",
    "FrozenLake-v1", "GymV26Environment-v0", "Ant-v5", "phys2d/CartPole-v1", "track-01", "track-02", "nan", "inf",
    "\x00", "\x1b[2J", "a\nb", "é", "\u202e", "x" * 5000, "__import__('os')", "${HOME}", "%s%n", "{0.__class__}",
    "Dict", "Box", "Discrete", "MultiBinary", "MultiDiscrete", "float64", "object", "O8", "M8[ns]", "V9", "CnnPolicy",
    "uint8", "sac", "a2c", "ppo", "relu", "MultiInputPolicy", "auto", "float16", "bool", "int64", "F64", "BOOL", "U8",
]  # fmt: skip


def box(shape: list[int], dtype: str, high: float) -> Any:
    return {"kind": "Box", "shape": shape, "dtype": dtype, "low": 0 if dtype == "uint8" else 0.0, "high": high}


def keyed(count: int, space: Any) -> Any:
    return {"kind": "Dict", "spaces": [[str(key), copy.deepcopy(space)] for key in range(count)]}


SPACES: list[Any] = [
    {**box([2**21, 2], "float64", 1.0), "low": -1.0},
    box([2**23], "uint8", 255),
    box([2**22], "float64", 1.0),
    box([64, 64, 3], "uint8", 255),
    box([0], "float32", 1.0),
    {**box([2**20, 2], "float32", 2.0), "low": [0.0, 1.0]},
    {"kind": "Discrete", "n": 2**62, "start": 0},
    {"kind": "MultiDiscrete", "nvec": [2**62, 2**62, 5], "start": [0, 0, 0]},
    {"kind": "MultiDiscrete", "nvec": [2] * 5000, "start": [0] * 5000},
    {"kind": "MultiBinary", "n": [2**40, 2**40]},
    {"kind": "MultiBinary", "n": 2**24},
    keyed(300, {"kind": "Discrete", "n": 2, "start": 0}),
    keyed(50, box([2**22], "float64", 1.0)),
    keyed(300, box([40, 40, 3], "uint8", 255)),
]
ARGUMENTS: list[Any] = [
    {"bridge_url": "ws://127.0.0.1:9"},
    {"sutton_barto_reward": True},
    {"render_mode": "human"},
    {"render_mode": "rgb_array"},
    {"render_mode": f"{CANARY}:x"},
    {"max_episode_steps": 2**70},
    {"id": f"{CANARY}:CartPole-v1"},
    {"env_id": f"{CANARY}:CartPole-v1"},
    {"xml_file": "/etc/passwd"},
    {"disable_env_checker": True},
    {"kwargs": {}},
    {"self": 1},
    {"desc": ["S" * 5000] * 100},
]


def tensor_header(count: int) -> bytes:
    header = json.dumps({"w": {"dtype": "F32", "shape": [count], "data_offsets": [0, 4 * count]}}).encode()
    return len(header).to_bytes(8, "little") + header


class RunsCode:
    """Imports the canary when it is unpickled."""

    def __reduce__(self) -> Any:
        return __import__, (CANARY,)


PICKLE = pickle.dumps(RunsCode())


def nested(value: Any, depth: int) -> Any:
    return nested([value], depth - 1) if depth else value


def nasty(rng: random.Random) -> Any:
    """A value that a reader may not expect."""
    kinds = [
        lambda: rng.choice(BIG),
        lambda: rng.choice(TEXTS),
        lambda: rng.choice([0.0, -0.0, 1e308, 5e-324, -1.5]),
        lambda: rng.choice([None, True, False, [], {}, [[]], [None], {"": {}}]),
        lambda: copy.deepcopy(rng.choice(SPACES)),
        lambda: [rng.choice(BIG[:12]) for _ in range(rng.randrange(40))],
        lambda: nested(rng.choice(TEXTS), rng.choice([1, 60, 70, 150])),
        lambda: dict.fromkeys(rng.sample(TEXTS, 3), rng.choice(BIG)),
    ]
    return kinds[rng.randrange(len(kinds))]()


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) in plain data."""
    found: list[tuple[Any, Any]] = []
    for key in list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        found += [(value, key), *places(value[key])]
    return found


def mutate_json(rng: random.Random, data: Any) -> Any:
    """Change a few places of plain data: replace, drop, copy from elsewhere or add a key."""
    for _ in range(rng.choice([1, 1, 2, 4])):
        found = places(data)
        if not found:
            return nasty(rng)
        container, key = rng.choice(found)
        action = rng.randrange(6)
        if action == 0:
            del container[key]
        elif action == 1:
            other, source = rng.choice(found)
            if source in other if isinstance(other, dict) else source < len(other):
                container[key] = copy.deepcopy(other[source])
        elif action == 2 and isinstance(container, dict):
            container[rng.choice(TEXTS)] = nasty(rng)
        else:
            container[key] = nasty(rng)
    return data


def mutate_ids(rng: random.Random, manifest: Any) -> Any:
    card = manifest["about"]["card"]
    for name in rng.sample(["environment", "env_args", "track", "track_digest", "algorithm"], rng.choice([1, 1, 3])):
        card[name] = copy.deepcopy(rng.choice(ARGUMENTS)) if name == "env_args" else rng.choice(TEXTS)
    if rng.random() < 0.5:
        card["environment"] = rng.choice(TEXTS[:25])
    return manifest


def mutate_sizes(rng: random.Random, manifest: Any) -> Any:
    card = manifest["about"]["card"]
    name = rng.choice(["observation_space", "action_space", "both", "net_arch", "numbers"])
    if name in ("observation_space", "both"):
        card["observation_space"] = copy.deepcopy(rng.choice(SPACES))
    if name in ("action_space", "both"):
        card["action_space"] = copy.deepcopy(rng.choice(SPACES))
    if name == "net_arch":
        card["policy"]["net_arch"] = rng.choice([[65536], [65536] * 64, [1] * 20_000, [], [8] * 9, rng.choice(BIG)])
    if name == "numbers":
        for key in rng.sample(["stack", "lap_fourier", "action_repeat", "step", "seed", "clip_obs"], 2):
            card[key] = rng.choice(BIG)
    return manifest


def zip_members(members: list[tuple[str, bytes]], rng: random.Random | None = None) -> bytes:
    """A zip of these members; with `rng`, with some odd fields."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name, payload in members:
            info = zipfile.ZipInfo(name)
            if rng and rng.random() < 0.3:
                info.compress_type = rng.choice([zipfile.ZIP_DEFLATED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2])
            if rng and rng.random() < 0.05:
                info.external_attr = 0o120777 << 16
            file.writestr(info, payload)
    return buffer.getvalue()


def resealed(members: Members, manifest: Any = None) -> Members:
    """The members with a manifest whose digests are right, which is where an attacker starts."""
    manifest = json.loads(members["manifest.json"]) if manifest is None else manifest
    others = {name: payload for name, payload in members.items() if name != "manifest.json"}
    if isinstance(manifest, dict) and isinstance(manifest.get("members"), dict):
        manifest["members"] = {name: hashlib.sha256(payload).hexdigest() for name, payload in others.items()}
    return {"manifest.json": json.dumps(manifest).encode(), **others}


def mutate_bytes(rng: random.Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice([1, 1, 3, 20])):
        start, length = rng.randrange(len(changed)), rng.choice([1, 1, 4, 30, 1000])
        action = rng.randrange(5)
        if action == 0:
            changed[start] ^= 1 << rng.randrange(8)
        elif action == 1:
            changed[start : start + length] = rng.randbytes(length)
        elif action == 2:
            changed[start:start] = rng.randbytes(length)
        elif action == 3:
            del changed[start : start + length]
        else:
            changed[start : start + length] = changed[:length]
        if not changed:
            break
    return bytes(changed[: rng.randrange(len(changed) + 1)] if rng.random() < 0.1 else changed)


def mutate_headers(rng: random.Random, data: bytes) -> bytes:
    """Set fields of the zip's local headers, its directory or its end to false values."""
    changed = bytearray(data)
    for _ in range(rng.choice([1, 2, 4])):
        signature = rng.choice([b"PK\3\4", b"PK\1\2", b"PK\5\6"])
        starts = [match.start() for match in re.finditer(re.escape(signature), data)]
        size = {b"PK\3\4": 30, b"PK\1\2": 46, b"PK\5\6": 22}[signature]
        at = rng.choice(starts) + rng.randrange(4, size - 3)
        changed[at : at + 4] = struct.pack(
            "<I", rng.choice([0, 1, 8, 0xFFFF, 2**20, 2**31, 2**32 - 1, rng.getrandbits(32)])
        )
    return bytes(changed)


def mutate_tensors(rng: random.Random, members: Members) -> Members:
    """Change the header or the numbers of a group of tensors, with right digests."""
    name = rng.choice([name for name in members if name.endswith(".safetensors")])
    payload = members[name]
    length = int.from_bytes(payload[:8], "little")
    header, numbers = payload[8 : 8 + length], payload[8 + length :]
    action = rng.randrange(5)
    if action == 0:
        header = json.dumps(mutate_json(rng, json.loads(header))).encode()
    elif action == 1:
        numbers = mutate_bytes(rng, numbers) if numbers else b"x"
    elif action == 2:
        return {**members, name: rng.choice(BIG[:12]).to_bytes(9, "little", signed=True)[:8] + header + numbers}
    elif action == 3:
        numbers = struct.pack("<f", rng.choice([float("nan"), float("inf"), 3e38])) * (len(numbers) // 4)
    else:
        entries = json.loads(header)
        chosen = rng.choice(list(entries))
        entries[chosen]["shape"] = [rng.choice(BIG[:12]) for _ in range(rng.randrange(5))]
        header = json.dumps(entries).encode()
    return {**members, name: len(header).to_bytes(8, "little") + header + numbers}


def mutate_members(rng: random.Random, members: Members) -> list[tuple[str, bytes]]:
    """Add, drop, rename, repeat or swap members."""
    found = list(members.items())
    action = rng.randrange(6)
    if action == 0:
        names = ["data.pkl", "data", "x.json", "x.safetensors", "../x.json", "/x.json", "x.py", f"{CANARY}.py", "x/"]
        found.append((rng.choice(names), rng.choice([PICKLE, b"", b"{}", b"[" * 5000, b"import os"])))
    elif action == 1:
        found.pop(rng.randrange(len(found)))
    elif action == 2:
        index = rng.randrange(len(found))
        found[index] = (rng.choice(["x.json", "policy.json", "manifest.safetensors", "a.pkl"]), found[index][1])
    elif action == 3:
        found.append(rng.choice(found))
    elif action == 4:
        names = [name for name, _ in found]
        rng.shuffle(names)
        found = [(name, payload) for name, (_, payload) in zip(names, found, strict=True)]
    else:
        index = rng.randrange(len(found))
        found[index] = (found[index][0], rng.choice([PICKLE, b"", b"{}", b"[" * 100_000, b"{}" * 9, b'{"a":' * 900]))
    rng.shuffle(found)
    if rng.random() < 0.5:
        whole = dict(found)
        if "manifest.json" in whole and whole["manifest.json"].startswith(b'{"about"'):
            found = list(resealed(whole).items())
    return found


MIB = 1 << 20
# Members that inflate to as much as the limits let through, or more: name, beginning, middle, its repeats, end.
BOMBS: list[tuple[str, bytes, bytes, int, bytes]] = [
    ("state.json", b"[", b"{}," * MIB, 10, b"{}]"),
    ("state.json", b"", b" " * MIB, 31, b"0"),
    ("replay_buffer.safetensors", b"", bytes(MIB), 31, b""),
    ("replay_buffer.safetensors", b"", bytes(MIB), 60, b""),
    ("replay_buffer.safetensors", b"", bytes(MIB), 100, b""),
    ("policy.safetensors", tensor_header(7 * MIB), bytes(4 * MIB), 7, b""),
    ("policy.safetensors", tensor_header(15 * MIB), bytes(4 * MIB), 15, b""),
    ("policy.safetensors", tensor_header(25 * MIB), bytes(4 * MIB), 25, b""),
    ("manifest.json", b"[", b"{}," * 1000, 300, b"{}]"),
]


def make_bomb(data: bytes, name: str, start: bytes, middle: bytes, repeats: int, end: bytes) -> bytes:
    """A model of a few kilobytes with this member, streamed so that making it takes no memory."""
    members = unzip(data)
    chunks = [start, *[middle] * repeats, end]
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
        sha = hashlib.sha256()
        with file.open(name, "w") as bomb:
            for chunk in chunks:
                bomb.write(chunk)
                sha.update(chunk)
        manifest = json.loads(members.pop("manifest.json"))
        manifest["members"][name] = sha.hexdigest()
        members.pop(name, None)
        if name != "manifest.json":
            file.writestr("manifest.json", json.dumps(manifest))
        for each, content in members.items():
            file.writestr(each, content)
    return buffer.getvalue()


def unzip(data: bytes) -> Members:
    with zipfile.ZipFile(io.BytesIO(data)) as zipped:
        return {name: zipped.read(name) for name in zipped.namelist()}


def mutation(rng: random.Random, data: bytes) -> tuple[str, bytes]:
    """The kind of a mutation and the mutated file."""
    members = unzip(data)
    kind = rng.choice(["bytes", "headers", "members", "tensors", "manifest", "card", "ids", "sizes"])
    manifest = json.loads(members["manifest.json"])
    if kind == "bytes":
        return kind, mutate_bytes(rng, data)
    if kind == "headers":
        return kind, mutate_headers(rng, data)
    if kind == "members":
        return kind, zip_members(mutate_members(rng, members), rng)
    if kind == "tensors":
        return kind, zip_members(list(resealed(mutate_tensors(rng, members)).items()))
    if kind == "manifest":
        manifest = mutate_json(rng, manifest)
    elif kind == "card":
        manifest["about"]["card"] = mutate_json(rng, manifest["about"]["card"])
    else:
        manifest = (mutate_ids if kind == "ids" else mutate_sizes)(rng, manifest)
    return kind, zip_members(list(resealed(members, manifest).items()), rng if rng.random() < 0.1 else None)

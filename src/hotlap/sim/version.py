"""The versions of physics and races. Models record the first and refuse to run on another.

The part after the dash is a digest, the same on every platform; a test fails when it no longer matches. That of the
physics is of the car's parameters and of golden traces of cars alone (`python -m hotlap.tracks.golden_traces`), that of
races of golden races with contact (`python -m hotlap.tracks.golden_races`).
"""

PHYSICS_VERSION = "1-c8722dcf8c06"
RACE_VERSION = "1-af48f254479f"

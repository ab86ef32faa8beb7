"""The name of the physics. Models carry it, and refuse to run on another.

The part behind the dash is the digest of the car's parameters and of golden traces driven on the built-in
tracks, as `python -m hotlap.tracks.golden_traces` computes it: the same on every platform. A test fails when it no
longer fits.
"""

PHYSICS_VERSION = "1-c8722dcf8c06"

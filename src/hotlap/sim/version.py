"""The physics version. Models record it and refuse to run on another.

The part after the dash is a digest of the car's parameters and of golden traces driven on shipped tracks, computed by
`python -m hotlap.tracks.golden_traces` and the same on every platform. A test fails when it no longer matches.
"""

PHYSICS_VERSION = "1-c8722dcf8c06"

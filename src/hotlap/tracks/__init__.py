"""Tracks: files, geometry, corners, maps, the generator, and the registry of all tracks."""

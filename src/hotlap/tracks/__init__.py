"""Tracks: geometry, files, generation, maps, and the registry of all tracks."""

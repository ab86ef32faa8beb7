"""Tracks: their files, their geometry, their generator, and the registry that knows them all."""

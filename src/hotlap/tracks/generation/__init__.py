"""Tracks that are generated: layouts, and the sets that ship."""

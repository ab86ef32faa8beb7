"""Pictures of tracks."""

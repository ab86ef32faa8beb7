"""A run as data on disk: its folder, lock, configuration, recipes, journal, documents and event files."""

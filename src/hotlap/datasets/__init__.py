"""Datasets of drives, in the format of Minari."""

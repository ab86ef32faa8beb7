"""Sweeps: many training runs from one file, on a pool of local processes or on a Ray cluster."""

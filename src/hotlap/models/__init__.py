"""A policy on disk and in memory: model files, networks, and exchange with other programs."""

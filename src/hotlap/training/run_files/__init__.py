"""The files of a run folder: names, journal, TensorBoard events and JSON documents."""

"""Pages, tables and pictures made from training runs and driven laps."""

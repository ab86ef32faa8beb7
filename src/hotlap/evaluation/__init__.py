"""Run a driver, measure its laps, draw what it did."""

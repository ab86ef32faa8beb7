"""The pages of a report: of a run, of a driver's laps, and the folder that holds them."""

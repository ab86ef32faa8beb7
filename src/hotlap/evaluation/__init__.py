"""Drive and measure: laps of a driver, returns of a policy, telemetry and comparison with the optimal lap."""

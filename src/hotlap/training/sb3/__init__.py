"""stable-baselines3 as a learner: for A2C, and for every environment other than our cars."""

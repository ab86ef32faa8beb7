"""PPO, A2C and SAC: stable-baselines3 extended by small overrides."""

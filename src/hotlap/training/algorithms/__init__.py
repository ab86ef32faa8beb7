"""PPO, A2C and SAC: stable-baselines3's algorithms extended by small overrides."""

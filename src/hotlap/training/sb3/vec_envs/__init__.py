"""What the learner steps: every kind of environment as a stable-baselines3 VecEnv."""

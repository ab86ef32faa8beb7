"""Learners over tensors."""

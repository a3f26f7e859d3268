"""Engines that hold the policy: log-probabilities, updates, weights."""

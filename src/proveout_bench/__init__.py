"""The bench loop: a small, complete RL post-training loop. Started only as a subprocess."""

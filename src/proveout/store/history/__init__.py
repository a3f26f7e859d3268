"""The history: an index over run directories that can be rebuilt from them at any time."""

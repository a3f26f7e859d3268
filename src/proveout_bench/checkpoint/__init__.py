"""Saving the whole state of a run, and going on from it."""

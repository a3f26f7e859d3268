"""The configuration of a run: schema, overrides, checks. Nothing here imports torch."""

"""Configuration trees as the stacks compose them, resolved without importing a stack."""

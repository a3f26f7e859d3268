"""Prompts and rule rewards."""

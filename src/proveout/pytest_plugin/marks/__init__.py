"""Marks that choose what runs: declared as data, left out by default, never left out silently."""

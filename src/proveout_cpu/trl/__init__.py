"""Drives the real TRL in the environment of the ``trl`` stack: one short run, judged from the outside."""

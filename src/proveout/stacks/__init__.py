"""Isolated environments of pinned, proven versions, so that a real stack runs without a GPU.

A new stack is one lock file under ``locks``.
"""

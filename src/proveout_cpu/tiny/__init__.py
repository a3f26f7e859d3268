"""Tiny models of real families and one-digit sums, made where a stack runs."""

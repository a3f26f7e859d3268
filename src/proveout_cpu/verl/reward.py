"""A reward that a tiny model can learn in a few steps: the share of digits among a response's characters."""

from __future__ import annotations

from typing import Any


def compute_score(
    data_source: str, solution_str: str, ground_truth: str, extra_info: Any = None, **_: Any
) -> float:
    """0 to 1, as verl calls a custom reward function (reward.custom_reward_function)."""
    return sum(character.isdigit() for character in solution_str) / max(1, len(solution_str))

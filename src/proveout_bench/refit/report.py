"""What one refit did."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class RefitReport:
    """``metrics`` go under ``refit/``, ``seconds`` under ``timing/train/prepare_for_generation/``."""

    metrics: dict[str, float] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)


def measures(
    *,
    version: int,
    expected: int,
    changed: int,
    elements: int,
    largest: float,
    missing: int,
    extra: int,
    sent: int,
) -> dict[str, float]:
    """The metrics that every engine reports; ``largest`` is the largest absolute change of one element."""
    return {
        "weight_version": float(version),
        "version_lag": float(expected - version),
        "names_missing": float(missing),
        "names_extra": float(extra),
        "params": float(elements),
        "bytes": float(sent),
        "delta/changed_elements": float(changed),
        "delta/total_elements": float(elements),
        "delta/changed_pct": 100.0 * changed / max(1, elements),
        "delta/max": largest,
    }

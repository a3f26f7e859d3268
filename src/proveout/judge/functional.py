"""Would NeMo-RL's own checks of the matching functional test have seen it? Their expressions, with their semantics.

Semantics as measured on that repository's ``check_metrics.py``: ``max`` and ``min`` are Python's over the values, so NaN
after the first value is passed over; a comparison with NaN is false; an unknown series fails. A script fails besides
where its command does not end with status 0. Expressions: ``tests/functional/*.sh`` of NeMo-RL 7ea279abf.
"""

from __future__ import annotations

from collections.abc import Callable

from proveout.domain.evidence import Evidence

Values = list[float]
Check = Callable[[Evidence], bool]


def catches(evidence: Evidence) -> bool:
    """Whether the script of the step's level ends with a failure on this evidence."""
    return not evidence.exit.ok or not all(holds(evidence) for holds in checks_for(evidence))


def checks_for(evidence: Evidence) -> tuple[Check, ...]:
    """The checks of the functional test nearest to the step: by its level and what it does."""
    coverage = evidence.step.coverage
    match coverage.level, coverage.variant:
        case 0, "sft":
            return (_at("train/loss", 3, 5.9),)
        case 0, "ppo":
            return (_below("train/token_mult_prob_error", 1.05), *_RATIOS)
        case 1, "lora-resume":
            return _RESUMED
        case ((1 | 6), _):
            return (_above("train/reward", 0.03), _below("train/gen_kl_error", 0.001))
        case _:
            return (_below("train/token_mult_prob_error", 1.05), *_RATIOS)


def _values(evidence: Evidence, tag: str) -> Values | None:
    series = evidence.metrics.get(tag)
    return list(series.values) if series is not None and len(series) else None


def _below(tag: str, limit: float) -> Check:
    def holds(evidence: Evidence) -> bool:
        values = _values(evidence, tag)
        return values is not None and max(values) < limit

    return holds


def _above(tag: str, limit: float) -> Check:
    def holds(evidence: Evidence) -> bool:
        values = _values(evidence, tag)
        return values is not None and max(values) > limit

    return holds


def _least(tag: str, limit: float) -> Check:
    def holds(evidence: Evidence) -> bool:
        values = _values(evidence, tag)
        return values is not None and min(values) > limit

    return holds


def _at(tag: str, step: int, limit: float) -> Check:
    def holds(evidence: Evidence) -> bool:
        series = evidence.metrics.get(tag)
        value = series.as_dict().get(step) if series is not None else None
        return value is not None and value < limit

    return holds


def _close(tag: str, rtol: float) -> Check:
    """Every step that both runs have is close to the uninterrupted run, as ``numpy.isclose`` defines it."""

    def holds(evidence: Evidence) -> bool:
        ours = evidence.metrics.get(tag)
        through = next((other for name, other in evidence.related.items() if "save" not in name), None)
        theirs = through.metrics.get(tag) if through is not None else None
        if ours is None or theirs is None:
            return False
        known = theirs.as_dict()
        return all(
            abs(value - known[step]) <= 1e-8 + rtol * abs(known[step])
            for step, value in ours
            if step in known
        )

    return holds


_RATIOS = (
    _least("train/probs_ratio_clamped_min", 0.79),
    _below("train/probs_ratio_clamped_min", 1.21),
    _least("train/probs_ratio_clamped_max", 0.79),
    _below("train/probs_ratio_clamped_max", 1.21),
)
_RESUMED = (
    _close("train/lr", 1e-5),
    _close("train/global_valid_seqs", 1e-5),
    _close("train/global_valid_toks", 1e-5),
    _close("train/loss", 0.05),
    _close("train/grad_norm", 0.05),
)

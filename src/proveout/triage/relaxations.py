"""What no rung may touch: a re-run that only measures less, or looks away, would prove nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import re2

from proveout.domain.errors import UsageError

_RELAXES = re2.compile(
    r"(?i)IGNORE_TP_ACCURACY|threshold|tolerance|\brtol|\batol|mask|check_metrics|mult_prob_error"
    r"|importance_sampling|rollout_is|rollout_correction|clip|nan_to|skip_|^\+*fault\.|allow_"
)
MAY_BE_LEFT_OUT = frozenset({"resume_parity", "resume_files", "trainable", "refit_timing"})
_STATE = re2.compile(r"(?i)checkpoint|global_step|export")


def refuse(  # noqa: PLR0917 - the parts of a change, in its order
    rung: str,
    words: Sequence[str],
    env: Mapping[str, str],
    unset: Sequence[str],
    without: Sequence[str],
    without_artifacts: Sequence[str],
) -> None:
    """Raise UsageError where a change touches thresholds, masking, corrections or a loop's own guards, or leaves
    out a criterion that does not depend on the setting that it changes."""
    for name in (*words, *env, *unset):
        if _RELAXES.search(name):
            _refused(rung, f"{name!r} relaxes what is measured or guarded")
    for kind in without:
        if kind not in MAY_BE_LEFT_OUT:
            _refused(rung, f"criterion {kind!r} may not be left out")
    for pattern in without_artifacts:
        if not _STATE.search(pattern):
            _refused(rung, f"artifacts {pattern!r} are not what checkpointing makes")


def _refused(rung: str, why: str) -> None:
    raise UsageError(
        f"rung {rung!r}: {why}", remedy="a rung may only simplify what runs, never what is judged"
    )

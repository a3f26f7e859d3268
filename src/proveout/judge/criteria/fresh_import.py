"""Fresh import: a conversion from Hugging Face that was reused was made by this attempt, not by an earlier one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

import msgspec

from proveout.domain.evidence import CriterionResult, Evidence
from proveout.domain.finding import Boundary, Citation, Where
from proveout.judge import logtext, say

_WORDS = "Skipping import."
_LINE = re.compile(r"Checkpoint already exists at (?P<path>\S.*?)\. Skipping import\.")


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """No parameters: conversions of this attempt lie below its directory."""


def fresh_import(evidence: Evidence, params: Mapping[str, Any]) -> CriterionResult:
    """No conversion of an earlier run was reused: with one, the Bridge's import was not exercised."""
    msgspec.convert(dict(params), Params)
    where = Where(file=evidence.log)
    try:
        for line in logtext.scan(logtext.log_path(evidence), (_WORDS,)):
            found = _LINE.search(line.text)
            if found and not PurePath(found["path"]).is_relative_to(evidence.attempt_dir):
                stale = say.error(
                    "fresh_import.reused",
                    f"a conversion made by another run was reused ({found['path']}): importing from Hugging Face "
                    "was not exercised",
                    evidence=(say.log_line(evidence.log, line.number, line.text, "an earlier conversion"),),
                    boundary=Boundary.PROVIDER,
                    remedy="use a fresh conversion directory or policy.megatron_cfg.force_reconvert_from_hf=true",
                )
                return CriterionResult(kind="fresh_import", findings=(stale,))
    except OSError as error:
        unread = say.error("fresh_import.no-log", f"the log cannot be read: {error.strerror}", where=where)
        return CriterionResult(kind="fresh_import", findings=(unread,))
    held = Citation(what="no conversion of another run was reused", where=where)
    return CriterionResult(kind="fresh_import", held=(held,))

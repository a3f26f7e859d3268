"""Adapter: which modules an adapter was put on, as the policy worker said, and whether an export can hold that.

Weights of a tied output layer are those of the embedding. An adapter on the output layer alone changes what the
policy computes, and no merged export of one shared weight can show it to generation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from proveout.domain.evidence import CriterionResult, Evidence
from proveout.domain.finding import Citation, Finding, Where
from proveout.judge import logtext, say

WORDS = "[adapter] "
OUTPUT = "output_layer"
_LINE = re.compile(r"\[adapter\] (?P<said>\{.*\})\s*$")


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """No parameters."""


class Adapter(msgspec.Struct, frozen=True):
    """What a worker said: names of the modules, and whether the output layer shares the embedding's weight."""

    modules: tuple[str, ...]
    tied: bool


def adapter(evidence: Evidence, params: Mapping[str, Any]) -> CriterionResult:
    """The adapted modules are on the log; an adapter on a tied output layer is a warning that explains a mismatch."""
    msgspec.convert(dict(params), Params)
    try:
        said = list(_said(evidence))
    except OSError as error:
        what = f"the log cannot be read: {error.strerror}"
        unread = say.error("adapter.no-log", what, where=Where(file=evidence.log))
        return CriterionResult(kind="adapter", findings=(unread,))
    if not said:
        silent = say.error(
            "adapter.unsaid",
            "no line of the log says which modules the adapter is on",
            where=Where(file=evidence.log),
            remedy="look whether the adapter was asked for, and whether it matched any module",
        )
        return CriterionResult(kind="adapter", findings=(silent,))
    cite, first = said[0]
    findings: list[Finding] = []
    if first.tied and OUTPUT in first.modules:
        findings.append(
            say.warning(
                "adapter.tied-output",
                f"the adapter is on {OUTPUT} too, whose weight is tied to the embedding: the exported model, which "
                "has one weight for both, disagrees with the policy as soon as the adapter is trained",
                evidence=(cite,),
                remedy="name the target modules without the output layer, or untie the weights",
            )
        )
    return CriterionResult(kind="adapter", findings=tuple(findings), held=(cite,))


def _said(evidence: Evidence) -> Iterator[tuple[Citation, Adapter]]:
    for line in logtext.scan(logtext.log_path(evidence), (WORDS,)):
        if found := _LINE.search(line.text):
            try:
                one = msgspec.convert(json.loads(found["said"]), Adapter)
            except (ValueError, msgspec.ValidationError):
                continue
            what = f"the adapter is on {', '.join(one.modules)}"
            yield say.log_line(evidence.log, line.number, line.text, what), one

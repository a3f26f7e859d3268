"""The table of criteria: kind -> function. A new criterion is one module and one line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from proveout.domain.evidence import CriterionResult, Evidence
from proveout.judge.criteria.adapter import adapter
from proveout.judge.criteria.artifacts import artifacts
from proveout.judge.criteria.backend import backend
from proveout.judge.criteria.baseline import baseline
from proveout.judge.criteria.checks import checks
from proveout.judge.criteria.completion import completion
from proveout.judge.criteria.exit_status import exit_status
from proveout.judge.criteria.false_pass import false_pass
from proveout.judge.criteria.finite import finite
from proveout.judge.criteria.fresh_import import fresh_import
from proveout.judge.criteria.learning_signal import learning_signal
from proveout.judge.criteria.load_parity import load_parity
from proveout.judge.criteria.log import log
from proveout.judge.criteria.provenance import provenance
from proveout.judge.criteria.refit_proof import refit_proof
from proveout.judge.criteria.refit_timing import refit_timing
from proveout.judge.criteria.resume_files import resume_files
from proveout.judge.criteria.resume_parity import resume_parity
from proveout.judge.criteria.tests import tests
from proveout.judge.criteria.trainable import trainable
from proveout.judge.criteria.weights_moved import weights_moved

CriterionFunction = Callable[[Evidence, Mapping[str, Any]], CriterionResult]

CRITERIA: dict[str, CriterionFunction] = {
    "exit": exit_status,
    "completion": completion,
    "artifacts": artifacts,
    "finite": finite,
    "false_pass": false_pass,
    "checks": checks,
    "learning_signal": learning_signal,
    "weights_moved": weights_moved,
    "resume_parity": resume_parity,
    "resume_files": resume_files,
    "trainable": trainable,
    "log": log,
    "tests": tests,
    "fresh_import": fresh_import,
    "refit_proof": refit_proof,
    "refit_timing": refit_timing,
    "provenance": provenance,
    "baseline": baseline,
    "backend": backend,
    "load_parity": load_parity,
    "adapter": adapter,
}

ALWAYS = ("exit", "completion", "artifacts", "finite", "false_pass")

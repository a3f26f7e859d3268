"""How often triage is right: on labelled cases, plain and buried in healthy lines, and on complete real logs.

Usage: python benchmarks/triage_quality.py CASES.jsonl [--logs DIR] [--bury LINES] [--where before|around]

A case is one JSON object a line: id, label, expected_verdict, log, extra_logs, root_line, root_also, also_ok.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from proveout.domain.evidence import TriageResult
from proveout.triage import triage
from proveout.triage.lines import plain
from triage_corpus import healthy

BARS = {"boundary": 0.95, "verdict": 0.95, "cause": 0.90}


def ask(case: dict[str, Any], before: bytes = b"", after: bytes = b"") -> TriageResult:
    with tempfile.TemporaryDirectory() as scratch:
        main = Path(scratch) / "run.log"
        body = case["log"].encode()
        main.write_bytes(before + body + (b"" if body.endswith(b"\n") else b"\n") + after)
        logs = [main]
        for name, text in (case.get("extra_logs") or {}).items():
            logs.append(Path(scratch) / name)
            logs[-1].write_text(text, encoding="utf-8")
        return triage(logs)


def marks(case: dict[str, Any], result: TriageResult) -> Counter[str]:
    """What is right and what is forbidden in one answer."""
    label = case["label"]
    named = (case.get("root_line") or "", *(case.get("root_also") or ()))
    roots = [plain(root.encode()).strip(" .\n") for root in named if root]
    fair = {label, *(case.get("also_ok") or ())} | ({"noise", "none"} if label == "noise" else set())
    found = Counter(
        cases=1, boundary=result.boundary in fair, verdict=result.verdict == case["expected_verdict"]
    )
    if roots:
        text = result.cause.text.strip(" .") if result.cause else ""
        told = bool(text) and any(root in text or text in root for root in roots)
        found += Counter(with_cause=1, cause=told)
    found["environment called Fail"] += label == "environment" and result.verdict == "Fail"
    found["noise not called Pass"] += label == "noise" and result.verdict != "Pass"
    sure = result.boundary not in ("unknown", "incomplete") and result.confidence in ("high", "medium")
    found["unknown answered with confidence"] += label == "unknown" and sure and result.boundary not in fair
    return found


def measure(cases: list[dict[str, Any]], args: argparse.Namespace, bury: int, verbose: bool) -> Counter[str]:
    total: Counter[str] = Counter()
    for index, case in enumerate(cases):
        before = after = b""
        if bury:
            loop = "verl" if index % 2 else "nemo-rl"
            lines = [line + b"\n" for line in healthy(args.logs, loop, bury, seed=index).split(b"\n")]
            cut = bury if args.where == "before" else bury * 7 // 10
            before, after = b"".join(lines[:cut]), b"".join(lines[cut:])
        result = ask(case, before, after)
        found = marks(case, result)
        total += found
        wrong = not (found["boundary"] and found["verdict"]) or found["cause"] < found["with_cause"]
        if verbose and wrong:
            cause = result.cause.text.strip()[:110] if result.cause else "-"
            print(
                f"  {case['id']}: wanted {case['label']}/{case['expected_verdict']}, got {result.boundary}/"
                f"{result.verdict} ({result.subkind}, {result.confidence}): {cause}"
            )
    return total


def show(name: str, total: Counter[str], seconds: float) -> bool:
    shares = {
        "boundary": total["boundary"] / total["cases"],
        "verdict": total["verdict"] / total["cases"],
        "cause": total["cause"] / max(1, total["with_cause"]),
    }
    forbidden = {
        name: total[name]
        for name in ("environment called Fail", "noise not called Pass", "unknown answered with confidence")
    }
    rows = "  ".join(f"{key} {share:.1%} (bar {BARS[key]:.0%})" for key, share in shares.items())
    print(
        f"{name}: {total['cases']} cases, {total['with_cause']} with a cause line; {rows}; {forbidden}; {seconds:.0f} s"
    )
    return all(shares[key] >= bar for key, bar in BARS.items()) and not any(forbidden.values())


def real_logs(directory: Path) -> bool:
    right = True
    for log in sorted(directory.glob("*.log")):
        result = triage([log])
        passed = log.stem.endswith(("-pass", "trl-sft-resume"))
        good = (result.verdict == "Pass") == passed
        right = right and good
        cause = f"{result.cause.where.line}: {result.cause.text.strip()[:90]}" if result.cause else ""
        print(
            f"  {'ok   ' if good else 'WRONG'} {log.name}: {result.verdict}, {result.boundary} {result.subkind} {cause}"
        )
    return right


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", type=Path)
    parser.add_argument("--logs", type=Path, help="directory of complete logs (*-pass.log are healthy)")
    parser.add_argument("--bury", type=int, default=0, metavar="LINES")
    parser.add_argument(
        "--where", choices=("before", "around"), default="before", help="where healthy lines stand"
    )
    parser.add_argument("--quiet", action="store_true", help="figures only, no wrong case is shown")
    args = parser.parse_args()
    cases = [json.loads(line) for line in args.cases.read_text(encoding="utf-8").splitlines() if line.strip()]
    begin = time.perf_counter()
    good = show("plain", measure(cases, args, 0, not args.quiet), time.perf_counter() - begin)
    if args.bury and args.logs:
        begin = time.perf_counter()
        total = measure(cases, args, args.bury, not args.quiet)
        good = show(f"buried, healthy lines {args.where}", total, time.perf_counter() - begin) and good
    if args.logs:
        good = real_logs(args.logs) and good
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())

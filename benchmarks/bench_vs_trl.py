"""Step time of the bench loop against trl's GRPOTrainer: same model, batch, tokens, threads, machine and run.

    python benchmarks/bench_vs_trl.py --trl-python PATH/TO/ENV/bin/python

Both load one checkpoint, keep a reference policy with a KL term, sample the full count of tokens, make one
optimizer step a batch and write TensorBoard events every step. The two alternate, so that a busy moment hits both.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent


def call(argv: list[str]) -> str:
    """Standard output of ``argv``; the benchmark ends with the error if it fails."""
    done = subprocess.run(
        argv, capture_output=True, text=True, check=False, env={**os.environ, "HF_HUB_OFFLINE": "1"}
    )
    if done.returncode:
        sys.exit(f"{' '.join(argv)} exited {done.returncode}:\n{done.stderr[-3000:]}")
    return done.stdout


def ours(model: Path, out: Path, options: argparse.Namespace) -> list[float]:
    """Seconds from the end of each step to the end of the next, from the wall times of the events."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    call(
        [
            *(sys.executable, "-m", "proveout_bench", "grpo", f"model={model}", f"output_dir={out}"),
            *(f"max_steps={options.steps}", f"runtime.threads={options.threads}"),
            *(f"rollout.prompts={options.prompts}", f"rollout.group_size={options.group}"),
            *(f"rollout.max_new_tokens={options.tokens}", "rollout.ignore_eos=true"),
            f"loss.minibatch_size={options.prompts * options.group}",
        ]
    )
    events = EventAccumulator(str(out / "tensorboard"))
    events.Reload()
    lengths = {point.value for point in events.Scalars("train/mean_gen_tokens_per_sample")}
    if lengths != {float(options.tokens)}:
        sys.exit(f"the bench loop sampled {lengths} tokens instead of {options.tokens}")
    ends = [point.wall_time for point in events.Scalars("train/loss")]
    return [later - end for end, later in itertools.pairwise(ends)]


def peer(model: Path, options: argparse.Namespace) -> dict[str, object]:
    """What the trl process printed."""
    names = ("steps", "threads", "prompts", "group", "tokens")
    flags = [f"--{name}={getattr(options, name)}" for name in names]
    output = call([options.trl_python, str(HERE / "trl_grpo_steps.py"), str(model), *flags])
    found: dict[str, object] = json.loads(output.strip().splitlines()[-1])
    if set(found["tokens"]) != {float(options.tokens)}:  # type: ignore[call-overload]
        sys.exit(f"trl sampled {found['tokens']} tokens instead of {options.tokens}")
    return found


def main() -> None:
    """Run both, alternating, and print medians and the ratio."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trl-python", required=True, help="interpreter of an environment with trl")
    for name, default in (
        ("steps", 20),
        ("rounds", 3),
        ("threads", 2),
        ("prompts", 4),
        ("group", 8),
        ("tokens", 16),
    ):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    mine, theirs, versions = [], [], {}
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model"
        call([sys.executable, "-m", "proveout_bench", "init-model", str(model)])
        for index in range(options.rounds):
            mine += ours(model, Path(folder) / f"run{index}", options)[2:]
            found = peer(model, options)
            theirs += found["seconds"][2:]  # type: ignore[index]
            versions = found["versions"]
    ratio = statistics.median(theirs) / statistics.median(mine)
    print(
        json.dumps(
            {
                "samples": options.prompts * options.group,
                "tokens": options.tokens,
                "threads": options.threads,
                "steps_counted": [len(mine), len(theirs)],
                "bench_step_s": {"median": statistics.median(mine), "min": min(mine), "max": max(mine)},
                "trl_step_s": {"median": statistics.median(theirs), "min": min(theirs), "max": max(theirs)},
                "trl_over_bench": {"of_medians": ratio, "of_fastest_steps": min(theirs) / min(mine)},
                "trl_versions": versions,
                "load_average": os.getloadavg(),
            },
            indent=2,
        )
    )


if __name__ == "__main__":
    main()

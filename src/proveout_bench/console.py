"""What a reader of the log sees of each step."""

from __future__ import annotations

from collections.abc import Mapping

MAX_STEPS_REACHED = "Max number of steps has been reached, stopping training"
STOPPED_EARLY = "Stopping early after step {step} of {total}, as stop_after_step asks"


def banner(step: int, total: int) -> None:
    """The line that begins a step."""
    print(f"\n=== Step {step}/{total} ===", flush=True)


def results(metrics: Mapping[str, float], seconds: Mapping[str, float]) -> None:
    """The numbers of a finished step."""
    rows = [
        "",
        "Training Results:",
        f"  - Loss: {metrics['loss']:.4f}",
        f"  - Generation KL Error: {metrics['gen_kl_error']:.6f}",
        f"  - Avg Reward: {metrics['reward']:.4f}",
        f"  - Mean Generation Length: {metrics['mean_gen_tokens_per_sample']:.2f}",
        "Timing:",
        f"  - Total step time: {seconds['total_step_time']:.3f}s",
        *(f"  - {name}: {value:.3f}s" for name, value in seconds.items() if name != "total_step_time"),
    ]
    print("\n".join(rows), flush=True)

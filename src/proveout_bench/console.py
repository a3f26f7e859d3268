"""What a reader of the log sees of each step."""

from __future__ import annotations

from collections.abc import Mapping

MAX_STEPS_REACHED = "Max number of steps has been reached, stopping training"
STOPPED_EARLY = "Stopping early after step {step} of {total}, as stop_after_step asks"
RESUMED = "Resumed from {folder} at step {step}"
NO_CHECKPOINT = "No checkpoint in {folder}: starting from scratch"
SAVED = "Saved checkpoint {folder} at step {step}"
EXPORTED = "Exported the trained model to {folder}"
PARITY = "Parity at {when}: largest logit difference {difference:.3g}, largest logit {scale:.3g}"
LOAD_DIFFERS = "Parity at load: weight {what}"
ROWS = {
    "loss": "Loss: {:.4f}",
    "critic/loss": "Critic Loss: {:.4f}",
    "gen_kl_error": "Generation KL Error: {:.6f}",
    "reward": "Avg Reward: {:.4f}",
    "mean_gen_tokens_per_sample": "Mean Generation Length: {:.2f}",
}


def banner(step: int, total: int) -> None:
    """The line that begins a step."""
    print(f"\n=== Step {step}/{total} ===", flush=True)


def results(
    metrics: Mapping[str, float], validated: Mapping[str, float], seconds: Mapping[str, float]
) -> None:
    """The numbers of a finished step."""
    validation = [f"  - {name}: {value:.4f}" for name, value in validated.items()]
    rows = [
        "",
        "Training Results:",
        *(f"  - {text.format(metrics[name])}" for name, text in ROWS.items() if name in metrics),
        *(["Validation Results:", *validation] if validation else []),
        "Timing:",
        f"  - Total step time: {seconds['total_step_time']:.3f}s",
        *(f"  - {name}: {value:.3f}s" for name, value in seconds.items() if name != "total_step_time"),
    ]
    print("\n".join(rows), flush=True)

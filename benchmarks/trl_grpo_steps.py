"""Runs trl's GRPOTrainer on a checkpoint and prints the seconds of each step. Started by bench_vs_trl.py."""

from __future__ import annotations

import argparse
import itertools
import json
import os
import tempfile
import time

os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", TRL_EXPERIMENTAL_SILENCE="1")

import torch
import transformers
import trl
from datasets import Dataset
from transformers import AutoTokenizer, TrainerCallback


class StepClock(TrainerCallback):
    """Notes when each step ends."""

    def __init__(self) -> None:
        self.ends: list[float] = []

    def on_step_end(self, args, state, control, **kwargs):  # type: ignore[no-untyped-def]
        """Note the time."""
        self.ends.append(time.perf_counter())


def digit_share(completions: list[str], **_: object) -> list[float]:
    """The reward of the bench loop's digits task."""
    return [sum(c.isdigit() for c in text) / len(text) if text else 0.0 for text in completions]


def main() -> None:
    """Train and print one JSON line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    for name in ("steps", "threads", "prompts", "group", "tokens"):
        parser.add_argument(f"--{name}", type=int, required=True)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    clock, count = StepClock(), options.steps * options.prompts
    samples = options.prompts * options.group
    with tempfile.TemporaryDirectory() as out:
        config = trl.GRPOConfig(
            output_dir=out,
            per_device_train_batch_size=samples,
            num_generations=options.group,
            max_completion_length=options.tokens,
            generation_kwargs={"min_new_tokens": options.tokens},
            temperature=1.0,
            beta=0.01,
            learning_rate=8e-4,
            lr_scheduler_type="constant",
            max_steps=options.steps,
            logging_steps=1,
            report_to=["tensorboard"],
            save_strategy="no",
            use_cpu=True,
            bf16=False,
            gradient_checkpointing=False,
            disable_tqdm=True,
        )
        trainer = trl.GRPOTrainer(
            model=options.model,
            reward_funcs=digit_share,
            args=config,
            train_dataset=Dataset.from_list(
                [{"prompt": f"digits after {10 + i % 90}: "} for i in range(count)]
            ),
            processing_class=AutoTokenizer.from_pretrained(options.model, padding_side="left"),
            callbacks=[clock],
        )
        trainer.train()
        history = [row for row in trainer.state.log_history if "reward" in row]
    print(
        json.dumps(
            {
                "seconds": [later - end for end, later in itertools.pairwise(clock.ends)],
                "tokens": [row.get("completions/mean_length") for row in history],
                "kl": [row.get("kl") for row in history],
                "versions": {
                    "trl": trl.__version__,
                    "transformers": transformers.__version__,
                    "torch": torch.__version__,
                },
            }
        )
    )


if __name__ == "__main__":
    main()

"""The GRPO run: setup, steps, end."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path

import torch
from torch import Tensor

from proveout_bench import console, models, provenance, registry
from proveout_bench.algorithms.grpo.advantage import group_advantages
from proveout_bench.algorithms.grpo.loss import LossInputs
from proveout_bench.algorithms.grpo.measure import rollout_metrics
from proveout_bench.algorithms.grpo.train import Updater
from proveout_bench.backends.base import PolicyBackend
from proveout_bench.batch import Batch
from proveout_bench.config import resolve
from proveout_bench.config.schema import GrpoConfig
from proveout_bench.errors import EnvironmentFaultError
from proveout_bench.faults import Faults
from proveout_bench.generation.base import Generator
from proveout_bench.metrics.writer import MetricsWriter, TensorBoardWriter
from proveout_bench.tasks.base import Prompt, Task
from proveout_bench.timing import Phases
from proveout_bench.tokenizer import Tokenizer


def run(config: GrpoConfig) -> None:
    """Train as configured, writing provenance and TensorBoard events to the output directory, which exists."""
    started, phases = time.perf_counter(), Phases()
    folder = Path(config.output_dir)
    _settle_runtime(config)
    _report_provenance(config, folder)
    writer = TensorBoardWriter(folder / resolve.TENSORBOARD)
    try:
        loop = GrpoLoop(config, writer, phases)
        phases.add("total_setup_time_s", time.perf_counter() - started)
        writer.write(0, "timing/setup", phases.take())
        print("SETUP COMPLETE", flush=True)
        loop.train()
    finally:
        writer.close()


class GrpoLoop:
    """One policy, one generator, one task, and the steps over them."""

    def __init__(self, config: GrpoConfig, writer: MetricsWriter, phases: Phases) -> None:
        self._config, self._writer, self._phases = config, writer, phases
        self._faults = Faults(config.fault)
        self._task: Task = registry.load(registry.TASKS, config.task.name)(config.task)
        self._draw = random.Random(config.seed)  # noqa: S311 - prompts need a repeatable draw, not a secret one
        with phases.phase("policy_init_time_s", "Setting up model and training..."):
            model, tokenizer = models.load(config)
            model = model.to(config.runtime.device)
            self._tokenizer: Tokenizer = tokenizer
            self._policy: PolicyBackend = registry.load(registry.BACKENDS, config.backend)(config, model)
        with phases.phase("generation_init_time_s", f"Setting up generation ({config.rollout.engine})..."):
            engine = registry.load(registry.ENGINES, config.rollout.engine)
            self._generator: Generator = engine(config.rollout, model, tokenizer, config.seed)
        self._updater = Updater(config.loss, self._policy, self._faults, config.seed)
        print(
            f"Model: {config.model or 'tiny'}, {self._policy.trainable_parameters()} trainable parameters",
            flush=True,
        )

    def train(self) -> None:
        """All steps, or as many as ``stop_after_step`` allows."""
        total = self._config.max_steps
        for step in range(1, total + 1):
            console.banner(step, total)
            self._step(step)
            if step == self._config.stop_after_step < total:
                print(f"\n{console.STOPPED_EARLY.format(step=step, total=total)}", flush=True)
                return
        print(f"\n{console.MAX_STEPS_REACHED}", flush=True)

    def _step(self, step: int) -> None:
        phases, start = self._phases, time.perf_counter()
        with phases.phase("data_processing", "Preparing batch..."):
            prompts = self._repeated_prompts()
            encoded = [self._tokenizer.encode(prompt.text) for prompt in prompts]
        with (
            phases.phase("prepare_for_generation/total"),
            phases.phase("prepare_for_generation/transfer_and_update_weights"),
        ):
            self._generator.load_weights(self._policy.weights())
        with phases.phase("generation", f"Generating responses for batch of size {len(prompts)}..."):
            batch = self._generator.generate(encoded)
        with phases.phase("reward_calculation", "Processing rewards..."):
            rewards = self._rewards(prompts, batch)
        with phases.phase("policy_and_reference_logprobs", "Computing logprobs..."):
            previous, reference = self._policy.logprobs(batch), self._policy.reference_logprobs(batch)
        with phases.phase("advantage_calculation", "Computing advantages..."):
            advantages = group_advantages(
                rewards, self._config.rollout.group_size, self._config.loss.normalize_advantages
            )
        inputs = LossInputs(advantages, previous, reference, batch.generation_logprobs, batch.response_mask)
        with phases.phase("policy_training", "Training policy..."):
            trained = self._updater.run(step, batch, inputs)
        metrics = {
            **trained,
            **rollout_metrics(batch, rewards, inputs),
            "wd": self._config.optimizer.weight_decay,
            "trainable_params": float(self._policy.trainable_parameters()),
        }
        phases.add("total_step_time", time.perf_counter() - start)
        seconds = phases.take()
        console.results(metrics, seconds)
        self._writer.write(step, "train", metrics)
        self._writer.write(step, "timing/train", seconds)

    def _repeated_prompts(self) -> list[Prompt]:
        drawn = self._task.prompts(self._draw, self._config.rollout.prompts)
        return [prompt for prompt in drawn for _ in range(self._config.rollout.group_size)]

    def _rewards(self, prompts: list[Prompt], batch: Batch) -> Tensor:
        texts = [self._tokenizer.decode(ids) for ids in batch.responses().tolist()]
        scores = [self._task.reward(prompt, text) for prompt, text in zip(prompts, texts, strict=True)]
        return torch.tensor(scores, dtype=torch.float32, device=batch.input_ids.device)


def _settle_runtime(config: GrpoConfig) -> None:
    runtime = config.runtime
    if runtime.device == "cuda" and not torch.cuda.is_available():
        raise EnvironmentFaultError(
            "runtime.device=cuda, but this torch sees no CUDA device; use runtime.device=cpu"
        )
    torch.set_num_threads(runtime.threads)
    torch.use_deterministic_algorithms(runtime.deterministic)
    torch.utils.deterministic.fill_uninitialized_memory = False
    torch.manual_seed(config.seed)


def _report_provenance(config: GrpoConfig, folder: Path) -> None:
    record = provenance.collect(config.backend, config.runtime.device, config.runtime.threads)
    (folder / "provenance.json").write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    print("\n".join(provenance.lines(record)), flush=True)

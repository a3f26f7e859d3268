"""Any run, whatever its algorithm: setup, resume, steps, validation, checkpoints, export, end."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from proveout_bench import console, parity, provenance, ranks
from proveout_bench.algorithms.base import Algorithm
from proveout_bench.checkpoint import find, store
from proveout_bench.checkpoint.state import GlobalRandom
from proveout_bench.config import resolve
from proveout_bench.config.schema import RunConfig
from proveout_bench.errors import EnvironmentFaultError
from proveout_bench.faults import Faults
from proveout_bench.metrics.writer import MetricsWriter, NoWriter, TensorBoardWriter
from proveout_bench.timing import Phases


def drive(config: RunConfig, name: str, build: Callable[[Phases], Algorithm]) -> None:
    """Train with the algorithm that ``build`` makes, called ``name``; the output directory exists.

    Writes provenance and TensorBoard events there, and checkpoints and an export where the configuration says.
    """
    started, phases = time.perf_counter(), Phases()
    folder = Path(config.output_dir)
    _settle_runtime(config)
    _report_provenance(config, folder)
    writer: MetricsWriter = TensorBoardWriter(folder / resolve.TENSORBOARD) if ranks.first() else NoWriter()
    try:
        driver = Driver(config, name, build(phases), Faults(config.fault).writer(writer), phases)
        with phases.phase("load_parity_time_s"):
            driver.compare_load()
        done = driver.resume()
        phases.add("total_setup_time_s", time.perf_counter() - started)
        writer.write(done, "timing/setup", phases.take())
        print("SETUP COMPLETE", flush=True)
        driver.train(done)
    finally:
        writer.close()


class Driver:
    """The steps of one algorithm and what goes with them."""

    def __init__(
        self, config: RunConfig, name: str, algorithm: Algorithm, writer: MetricsWriter, phases: Phases
    ) -> None:
        self._config, self._algorithm, self._writer, self._phases = config, algorithm, writer, phases
        self._faults = Faults(config.fault)
        self._identity = identity(config, name)
        print(
            f"Model: {config.model or 'tiny'}, {algorithm.policy.trainable_parameters()} trainable parameters",
            flush=True,
        )

    def compare_load(self) -> None:
        """Write how far the policy is from the original model at load, before anything is resumed or trained."""
        self._writer.write(0, "parity", parity.at_load(self._config, self._algorithm.policy))

    def resume(self) -> int:
        """Go on from a checkpoint, if the configuration says so; the last step that is done, 0 for none."""
        folder = find.find(self._config)
        if folder is None:
            if self._config.resume == find.AUTO:
                print(console.NO_CHECKPOINT.format(folder=find.folder_of(self._config)), flush=True)
            return 0
        if not self._faults.resumes(True):
            return 0
        with self._phases.phase("checkpoint_load_time_s"):
            step = store.restore(folder, self._parts(), self._identity, self._faults.left_out())
        self._faults.restored(self._algorithm.policy.weights())
        print(console.RESUMED.format(folder=folder, step=step), flush=True)
        return step

    def train(self, done: int) -> None:
        """The steps after ``done``, or as many as ``stop_after_step`` allows; the export after the last."""
        total, stop = self._config.max_steps, self._config.stop_after_step
        ends = self._faults.last_step(total)
        for step in range(done + 1, total + 1):
            if step > ends:
                return
            console.banner(step, total)
            self._faults.step(step)
            self._step(step, last=step in (total, stop))
            if step == stop < total:
                print(f"\n{console.STOPPED_EARLY.format(step=step, total=total)}", flush=True)
                return
        if done < total:
            self._export(total)
        print(f"\n{console.MAX_STEPS_REACHED}", flush=True)

    def _step(self, step: int, last: bool) -> None:
        start = time.perf_counter()
        metrics = self._algorithm.step(step) | {
            "wd": self._config.optimizer.weight_decay,
            "trainable_params": float(self._algorithm.policy.trainable_parameters()),
            **self._algorithm.policy.measure(),
        }
        validated: dict[str, float] = {}
        if _due(self._config.validation.every, step, last):
            with self._phases.phase("validation", "Validating..."):
                validated = self._algorithm.validate()
        if _due(self._config.checkpoint.every, step, last):
            with self._phases.phase("checkpointing", f"Saving checkpoint of step {step}..."):
                self._save(step)
        self._phases.add("total_step_time", time.perf_counter() - start)
        seconds = self._phases.take()
        console.results(metrics, validated, seconds)
        refit = {name: value for name, value in metrics.items() if name.startswith("refit/")}
        self._writer.write(
            step, "refit", {name.removeprefix("refit/"): value for name, value in refit.items()}
        )
        self._writer.write(step, "train", {name: metrics[name] for name in metrics.keys() - refit.keys()})
        self._writer.write(step, "validation", validated)
        self._writer.write(step, "timing/train", seconds)

    def _save(self, step: int) -> None:
        self._faults.before_save()
        folder = store.save(
            find.folder_of(self._config), step, self._parts(), self._identity, self._config.checkpoint.keep
        )
        self._faults.checkpoint(folder)
        self._faults.saved(self._algorithm.policy.weights())
        print(console.SAVED.format(folder=folder, step=step), flush=True)

    def _parts(self) -> dict[str, store.Part]:
        return {**self._algorithm.parts(), "rng": GlobalRandom()}

    def _export(self, step: int) -> None:
        if not self._config.export:
            return
        folder, policy = Path(self._config.export), self._algorithm.policy
        folder.mkdir(parents=True, exist_ok=True)
        policy.export(folder)
        if ranks.first():
            self._algorithm.tokenizer.save(folder)
        errors = policy.export_errors(folder, self._algorithm.sample())
        self._writer.write(step, "export", errors)
        self._writer.write(step, "parity", parity.at_export(folder, policy))
        print(console.EXPORTED.format(folder=folder), flush=True)
        print("\n".join(f"  - {name}: {value:.3g}" for name, value in errors.items()), flush=True)


def identity(config: RunConfig, name: str) -> dict[str, Any]:
    """What a checkpoint and the run that goes on from it must have in common, by dotted key."""
    shape = {} if config.model else {f"tiny.{key}": value for key, value in vars(config.tiny).items()}
    lora = {f"lora.{key}": value for key, value in vars(config.lora).items()} if config.lora.rank else {}
    return {
        "algorithm": name,
        "backend": config.backend,
        "model": config.model,
        "lora.rank": config.lora.rank,
        **shape,
        **lora,
    }


def _due(every: int, step: int, last: bool) -> bool:
    return every > 0 and (last or step % every == 0)


def _settle_runtime(config: RunConfig) -> None:
    runtime = config.runtime
    if runtime.device == "cuda" and not _sees_cuda():
        raise EnvironmentFaultError(
            "runtime.device=cuda, but this torch sees no CUDA device; use runtime.device=cpu"
        )
    torch.set_num_threads(runtime.threads)
    torch.use_deterministic_algorithms(runtime.deterministic)
    torch.utils.deterministic.fill_uninitialized_memory = False
    torch.manual_seed(config.seed)


def _report_provenance(config: RunConfig, folder: Path) -> None:
    if not ranks.first():
        return
    record = provenance.collect(config.backend, config.runtime.device, config.runtime.threads)
    (folder / "provenance.json").write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    print("\n".join(provenance.lines(record)), flush=True)


def _sees_cuda() -> bool:
    """Whether a CUDA device is there, asked in a way that leaves CUDA untouched: the generation process is forked later
    and could not use it any more."""
    os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")
    return bool(torch.cuda.is_available())

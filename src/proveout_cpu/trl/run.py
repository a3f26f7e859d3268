"""One run of one of TRL's trainers."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from proveout_cpu.trl import rewards, rows
from proveout_cpu.trl.announcer import Announcer
from proveout_cpu.trl.measured import measured, say_imports
from proveout_cpu.trl.settings import Settings

LONGEST = 64
WARM_LR = 2e-3


def run(settings: Settings) -> None:
    """Warm start where asked, then train; metrics go to TRL's own event files below ``output_dir/runs``."""
    import torch

    torch.set_num_threads(settings.threads)
    from transformers import AutoModelForCausalLM, AutoTokenizer, set_seed

    set_seed(settings.seed)
    data = rows.dataset(settings.data, settings.algorithm, settings.seed)
    place = settings.model or _tiny(settings)
    model = AutoModelForCausalLM.from_pretrained(place, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(place, padding_side="left")
    if settings.warm_steps:
        print(f"Warm start: {settings.warm_steps} supervised steps", flush=True)
        model = _warm(settings, model, tokenizer)
    trainer = _trainer(settings, model, tokenizer, data)
    say_imports()
    trainer.add_callback(Announcer(trainer, settings.resume))
    print(f"Training {settings.algorithm} for {settings.max_steps} steps", flush=True)
    trainer.train(resume_from_checkpoint=settings.resume or None)
    if settings.keep:
        _keep(settings, trainer.state.global_step)
    print(f"Done: {trainer.state.global_step} of {settings.max_steps} steps", flush=True)


def _trainer(settings: Settings, model: Any, tokenizer: Any, data: Any) -> Any:
    import trl

    common = {
        "model": model,
        "processing_class": tokenizer,
        "train_dataset": data,
        "peft_config": _lora(settings),
    }
    sampling = {
        "num_generations": settings.group,
        "max_completion_length": settings.max_new_tokens,
        "temperature": settings.temperature,
        "beta": settings.beta,
    }
    match settings.algorithm:
        case "sft":
            return measured(trl.SFTTrainer)(
                args=trl.SFTConfig(**_args(settings), max_length=LONGEST), **common
            )
        case "dpo":
            return measured(trl.DPOTrainer)(args=trl.DPOConfig(**_args(settings)), **common)
        case "grpo":
            config, kind = trl.GRPOConfig, trl.GRPOTrainer
        case _:
            config, kind = trl.RLOOConfig, trl.RLOOTrainer
    reward = rewards.REWARDS[settings.reward]
    return measured(kind)(args=config(**_args(settings), **sampling), reward_funcs=reward, **common)


def _args(settings: Settings) -> dict[str, Any]:
    return {
        "output_dir": settings.output_dir,
        "per_device_train_batch_size": settings.batch,
        "learning_rate": settings.lr,
        "lr_scheduler_type": "constant",
        "max_steps": settings.max_steps,
        "logging_steps": 1,
        "report_to": ["tensorboard"],
        "use_cpu": True,
        "bf16": False,
        "activation_checkpointing": False,
        "save_strategy": "steps" if settings.save_every else "no",
        "save_steps": settings.save_every or 500,
        "seed": settings.seed,
    }


def _tiny(settings: Settings) -> str:
    from proveout_cpu.tiny.model import write

    place = Path(settings.output_dir, "model")
    print(f"Wrote a tiny model of {write('qwen2', place, settings.seed):,} parameters to {place}", flush=True)
    return str(place)


def _keep(settings: Settings, step: int) -> None:
    """Put the last checkpoint where a later run finds it, whatever was there."""
    shutil.rmtree(settings.keep, ignore_errors=True)
    shutil.copytree(Path(settings.output_dir, f"checkpoint-{step}"), settings.keep)
    print(f"Saved step {step} to {settings.keep}", flush=True)


def _lora(settings: Settings) -> Any:
    if not settings.lora_rank:
        return None
    from peft import LoraConfig

    return LoraConfig(
        r=settings.lora_rank,
        lora_alpha=4 * settings.lora_rank,
        target_modules="all-linear",
        task_type="CAUSAL_LM",
    )


def _warm(settings: Settings, model: Any, tokenizer: Any) -> Any:
    import trl

    config = trl.SFTConfig(
        output_dir=str(Path(settings.output_dir, "warm-start")),
        per_device_train_batch_size=16,
        learning_rate=WARM_LR,
        max_steps=settings.warm_steps,
        max_length=LONGEST,
        report_to=[],
        logging_strategy="no",
        save_strategy="no",
        use_cpu=True,
        bf16=False,
        activation_checkpointing=False,
        disable_tqdm=True,
        seed=settings.seed,
    )
    data = rows.demonstrations(settings.seed)
    trainer = trl.SFTTrainer(model=model, args=config, train_dataset=data, processing_class=tokenizer)
    trainer.train()
    return trainer.model

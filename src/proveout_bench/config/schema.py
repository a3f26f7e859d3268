"""The configuration trees of the algorithms, with defaults, types and limits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

from msgspec import Meta

Count = Annotated[int, Meta(ge=1)]
Natural = Annotated[int, Meta(ge=0)]
Rate = Annotated[float, Meta(ge=0)]
Positive = Annotated[float, Meta(gt=0)]
Fraction = Annotated[float, Meta(ge=0, lt=1)]


@dataclass(frozen=True, kw_only=True)
class TinyModel:
    """Shape of the model that is built when ``model`` is empty: of this ``family``, Qwen3-MoE-style with ``experts``.

    Unused tokens fill its vocabulary up to a multiple of ``vocab_multiple``, as tensor parallelism may need. With an
    ``image_size`` (pixels a side, a multiple of 8) it is a LLaVA-style model: a CLIP vision tower before the Qwen2.
    """

    family: Literal["qwen2", "qwen3", "llama", "mistral", "gemma"] = "qwen2"
    hidden_size: Count = 64
    intermediate_size: Count = 192
    layers: Count = 2
    heads: Count = 4
    kv_heads: Count = 2
    max_positions: Count = 512
    init_std: Positive = 0.02
    tied_embeddings: bool = True
    experts: Natural = 0
    experts_per_token: Count = 2
    vocab_multiple: Count = 1
    image_size: Natural = 0


@dataclass(frozen=True, kw_only=True)
class Task:
    """Which prompts and which rule reward.

    ``max_operand`` is the arithmetic task's largest number; ``ragged`` gives the prompts of digits many lengths.
    """

    name: str = "digits"
    max_operand: Count = 9
    ragged: bool = False


@dataclass(frozen=True, kw_only=True)
class Reward:
    """What scores responses: the task's ``rules``, or a ``model`` (a sequence classifier with one output): the
    checkpoint directory ``reward.model``, or a built-in one that prefers digits."""

    kind: Literal["rules", "model"] = "rules"
    model: str = ""


@dataclass(frozen=True, kw_only=True)
class Rollout:
    """One step samples ``prompts`` x ``group_size`` responses of at most ``max_new_tokens`` tokens.

    ``prefix_cache`` keeps the keys and values of the tokens with which all prompts begin until the next refit.
    ``lag`` 1: the rollout of the next step is sampled, by the weights before the update, while the step trains.
    """

    prompts: Count = 4
    group_size: Annotated[int, Meta(ge=2)] = 8
    max_new_tokens: Count = 16
    temperature: Positive = 1.0
    ignore_eos: bool = False
    engine: str = "inprocess"
    prefix_cache: bool = False
    lag: Annotated[int, Meta(ge=0, le=1)] = 0


@dataclass(frozen=True, kw_only=True)
class Refit:
    """How weights reach a separate generation process (``rollout.engine=process``).

    ``transfer``: ``dense`` sends each weight by itself, ``packed`` fills buckets of ``bucket_bytes``, ``delta`` sends
    places and values of the elements that changed (or a whole weight where that is less), and all of them in every
    ``full_every``-th refit. ``encoding`` of a delta: the new values, or their xor with the old ones. ``dtype`` is that
    of the wire. Every ``verify_every``-th refit compares a checksum of all weights on both sides. ``timeout_s``: how
    long an answer may take.
    """

    transfer: Literal["dense", "packed", "delta"] = "packed"
    encoding: Literal["overwrite", "xor"] = "overwrite"
    dtype: Literal["float32", "bfloat16"] = "float32"
    bucket_bytes: Count = 1 << 22
    compress: Literal["none", "zlib", "zstd"] = "none"
    full_every: Count = 10
    verify_every: Count = 1
    timeout_s: Positive = 120.0


@dataclass(frozen=True, kw_only=True)
class Optimizer:
    """AdamW and the linear warm-up of its learning rate (the rate itself is the key ``lr``)."""

    weight_decay: Rate = 0.0
    beta1: Fraction = 0.9
    beta2: Fraction = 0.95
    eps: Positive = 1e-8
    max_grad_norm: Positive = 1.0
    warmup_steps: Natural = 0


@dataclass(frozen=True, kw_only=True)
class Loss:
    """Clipped-ratio loss: clip range 1 - ``clip_low`` to 1 + ``clip_high``, KL weight ``kl_beta``.

    ``importance_correction`` weighs each token by the ratio of the policy's probability before the update to that of
    the weights which generated it, ``importance_cap`` at most.
    """

    clip_low: Fraction = 0.2
    clip_high: Rate = 0.2
    kl_beta: Rate = 0.01
    minibatch_size: Count = 16
    epochs: Count = 1
    normalize_advantages: bool = True
    importance_correction: bool = False
    importance_cap: Positive = 2.0


@dataclass(frozen=True, kw_only=True)
class Runtime:
    """Where and how the program computes. ``threads`` is part of what makes a run repeat bit for bit.

    ``ranks``: processes that share the rows of each minibatch of backend ``hf`` (data parallel); ``tp``: processes
    over which its layers are sharded (tensor parallel).
    """

    device: Literal["cpu", "cuda"] = "cpu"
    threads: Count = 1
    deterministic: bool = True
    ranks: Count = 1
    tp: Count = 1


@dataclass(frozen=True, kw_only=True)
class DynamicBatching:
    """Micro batches of at most ``train_mb_tokens`` padded tokens, rows of like length together; 0: one for all rows.

    The gradient of a minibatch is gathered over its micro batches. Backend ``hf``.
    """

    train_mb_tokens: Natural = 0


@dataclass(frozen=True, kw_only=True)
class Lora:
    """Low-rank adapters without dropout on the modules whose names end in one of ``targets`` (comma-separated).

    ``rank`` 0 trains all weights; the adapter's product is scaled by ``alpha / rank``.
    """

    rank: Natural = 0
    alpha: Positive = 16.0
    targets: str = "q_proj,k_proj,v_proj,o_proj,gate_proj,up_proj,down_proj"


@dataclass(frozen=True, kw_only=True)
class Megatron:
    """The layout of backend ``megatron``: tensor, pipeline, data, expert and context parallel sizes.

    A run has ``tp`` x ``pp`` x ``dp`` processes; experts are spread over ``ep`` of the data parallel ones.
    Each process takes its rows of a minibatch in ``microbatches``.
    """

    tp: Count = 1
    pp: Count = 1
    dp: Count = 1
    ep: Count = 1
    cp: Count = 1
    sequence_parallel: bool = False
    microbatches: Count = 1
    distributed_optimizer: bool = False


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """A checkpoint after each ``every`` steps and at the end (0: none), in ``dir`` or ``output_dir``/checkpoints.

    ``keep`` newest are kept; 0 keeps all.
    """

    every: Natural = 0
    dir: str = ""
    keep: Natural = 0


@dataclass(frozen=True, kw_only=True)
class Validation:
    """Accuracy on ``prompts`` held-out prompts after each ``every`` steps and at the end; 0 is off."""

    every: Natural = 0
    prompts: Count = 16


@dataclass(frozen=True, kw_only=True)
class Critic:
    """The value model of PPO: discount ``gamma``, GAE ``lam``, clip range of values and updates a step."""

    lr: Rate = 1e-3
    gamma: Annotated[float, Meta(ge=0, le=1)] = 1.0
    lam: Annotated[float, Meta(ge=0, le=1)] = 0.95
    clip: Positive = 0.2
    epochs: Count = 1


@dataclass(frozen=True, kw_only=True)
class Sft:
    """Each step takes ``batch_size`` of ``examples`` demonstrations, in an order drawn anew for each epoch."""

    batch_size: Count = 16
    examples: Count = 64


@dataclass(frozen=True, kw_only=True)
class Fault:
    """Defects put into the run on purpose; 0, false or empty is off. What each does stands in ``faults/``.

    ``inject`` names one of ``faults/names.py``; where it has a step at which it begins, that is ``at_step``.
    """

    inject: str = ""
    at_step: Count = 2

    nan_loss_at_step: Natural = 0
    resume_fresh: bool = False
    not_restored: Literal[
        "", "policy", "optimizer", "scheduler", "rng", "sampler", "dataloader", "minibatches", "critic"
    ] = ""
    adapter_frozen: bool = False
    adapter_not_delivered: bool = False
    adapter_exported_without_effect: bool = False
    advantage_sign: bool = False
    no_zero_grad: bool = False
    constant_reward: bool = False
    saving_spoils: bool = False
    restoring_spoils: bool = False
    nan_beyond_tokens: Natural = 0
    nan_second_update: bool = False
    padding_ignored: bool = False
    temperature_ignored: bool = False
    reference_nan: bool = False
    threads_race: bool = False


@dataclass(frozen=True, kw_only=True)
class InitModelConfig:
    """What the weights and shape of the tiny model depend on."""

    seed: Natural = 0
    tiny: TinyModel = field(default_factory=TinyModel)


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """What a run of any algorithm depends on.

    ``model`` is a local Hugging Face checkpoint directory, or empty for the tiny model.
    ``stop_after_step`` ends the run early, with exit status 0, as a wall-clock limit would; 0 is off.
    ``resume``: ``never``, ``auto`` (the newest checkpoint of the checkpoint directory, if there is one), or a
    checkpoint or a directory of checkpoints that must be there. ``export`` is where the trained model goes
    after the last step.
    """

    output_dir: str = "bench-output"
    seed: Natural = 0
    max_steps: Count = 20
    stop_after_step: Natural = 0
    lr: Rate = 8e-4
    model: str = ""
    backend: str = "hf"
    resume: str = "never"
    export: str = ""
    tiny: TinyModel = field(default_factory=TinyModel)
    task: Task = field(default_factory=Task)
    reward: Reward = field(default_factory=Reward)
    rollout: Rollout = field(default_factory=Rollout)
    refit: Refit = field(default_factory=Refit)
    optimizer: Optimizer = field(default_factory=Optimizer)
    lora: Lora = field(default_factory=Lora)
    dynamic_batching: DynamicBatching = field(default_factory=DynamicBatching)
    megatron: Megatron = field(default_factory=Megatron)
    checkpoint: Checkpoint = field(default_factory=Checkpoint)
    validation: Validation = field(default_factory=Validation)
    runtime: Runtime = field(default_factory=Runtime)
    fault: Fault = field(default_factory=Fault)


@dataclass(frozen=True, kw_only=True)
class GrpoConfig(RunConfig):
    """Everything that one ``grpo`` run depends on."""

    loss: Loss = field(default_factory=Loss)


@dataclass(frozen=True, kw_only=True)
class PpoConfig(GrpoConfig):
    """Everything that one ``ppo`` run depends on."""

    critic: Critic = field(default_factory=Critic)


@dataclass(frozen=True, kw_only=True)
class SftConfig(RunConfig):
    """Everything that one ``sft`` run depends on; ``rollout`` says how validation samples."""

    task: Task = field(default_factory=lambda: Task(name="arithmetic"))
    sft: Sft = field(default_factory=Sft)

"""Lets verl run without a GPU, through verl's own hooks: VERL_USE_EXTERNAL_MODULES names ``plugin``.

Environment of a run: ``VERL_PLATFORM=cpu``, ``VERL_USE_EXTERNAL_MODULES=proveout_cpu.verl.plugin``, this package on
PYTHONPATH, ``actor_rollout_ref.rollout.name=hf``, ``trainer.device=cpu``, and the settings of verl's loop in proveout.
"""

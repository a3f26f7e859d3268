"""The built-in RL post-training loop: a program of its own, started as ``python -m proveout_bench``.

It trains a tiny model (or a local Hugging Face checkpoint) with a complete, small loop and leaves behind what
any loop leaves: a console log, TensorBoard events, a resolved configuration and an exit status.
"""

__version__ = "0.1.0"

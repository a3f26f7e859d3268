"""proveout: runs a change to an RL post-training stack inside real RL loops and judges it from evidence."""

__version__ = "0.1.0"

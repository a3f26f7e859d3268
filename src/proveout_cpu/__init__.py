"""Platform "cpu": lets the real stacks run without a GPU. Loaded only inside their processes.

Each upstream package has a module (or package) of its own here, and in it one small function for each thing of it
that needs a GPU: a *repair* (see ``repair.py``). Nothing upstream is changed on disk.
``proveout_cpu.megatron.apply()`` is for every process that imports Megatron.
"""

from proveout_cpu.repair import BLOCKED, Applied, Repair, UnknownVersionError, applied, limitations, repair

__all__ = ["BLOCKED", "Applied", "Repair", "UnknownVersionError", "applied", "limitations", "repair"]

"""Read by Python at its start in every process of the stack, because this directory is on its PYTHONPATH."""

import os

if os.environ.get("PROVEOUT_PLATFORM") == "cpu-nemo-rl":
    from proveout_cpu.nemo_rl import install

    install()

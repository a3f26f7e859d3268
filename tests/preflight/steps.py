"""Steps for the tests: one command of one loop."""

from __future__ import annotations

from proveout.domain.step import Command, Coverage, Step

WRAPPER = "tests/special_e2e/run_ppo_trainer_megatron.sh"


def step(loop: str, *argv: str, **env: str) -> tuple[Step, ...]:
    """One step of a loop, with this command line and environment."""
    command = Command(argv=argv, env=env)
    coverage = Coverage(loop=loop, level=0)
    return (Step(id=f"{loop}-step", coverage=coverage, deliverable="", claim="", command=command),)


def wrapper(*words: str, **env: str) -> tuple[Step, ...]:
    """A step that starts verl's wrapper."""
    return step("verl", "bash", WRAPPER, *words, **env)

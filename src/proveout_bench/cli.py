"""The command line: one command for each algorithm, and one that writes the tiny model as a checkpoint."""

from __future__ import annotations

import os
import sys
import threading
from typing import TextIO

import click

from proveout_bench import registry
from proveout_bench.config import resolve
from proveout_bench.errors import BenchError, EnvironmentFaultError

WORDS = click.argument("overrides", nargs=-1, metavar="[KEY=VALUE]...")
CHECK = click.option(
    "--check", is_flag=True, help="Check the overrides and the model, print the result, run nothing."
)
SETTINGS = "Settings are dotted KEY=VALUE words, as in:"
HELP = {
    "grpo": f"Train with GRPO. {SETTINGS} max_steps=3 rollout.group_size=4",
    "ppo": f"Train with PPO and a critic. {SETTINGS} max_steps=3 critic.lr=1e-3",
    "sft": f"Train on demonstrations. {SETTINGS} max_steps=3 sft.batch_size=8",
}


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def program() -> None:
    """A complete, small RL post-training loop on a tiny model or a local checkpoint."""


def _algorithm(name: str, help_text: str) -> click.Command:
    def train(check: bool, overrides: tuple[str, ...]) -> None:
        config = resolve.resolve(overrides, name)
        if check:
            click.echo(resolve.as_json(config))
            return
        resolve.open_output(config)
        _import_offline()
        algorithm = registry.load(registry.ALGORITHMS, name)
        if config.backend in registry.STARTERS:
            registry.load(registry.STARTERS, config.backend)(config, lambda: algorithm(config))
        else:
            algorithm(config)

    return click.command(name, help=help_text)(CHECK(WORDS(train)))


@program.command("init-model")
@click.argument("directory")
@WORDS
def init_model(directory: str, overrides: tuple[str, ...]) -> None:
    """Write the tiny model as a Hugging Face checkpoint to DIRECTORY (settings: seed and tiny.*)."""
    config = resolve.resolve_init_model(overrides, directory)
    _import_offline()
    from proveout_bench.models import save_tiny

    save_tiny(config, directory)
    click.echo(f"Wrote the tiny model to {directory}")


for _name in registry.ALGORITHMS:
    program.add_command(_algorithm(_name, HELP[_name]))


def main() -> None:
    """Run the program; errors become one line on stderr and the exit status of their kind."""
    for stream in (sys.stdout, sys.stderr):
        _line_buffered(stream)
    threading.excepthook = _quiet_write_error
    try:
        program(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        _stop("Interrupted before the last step", 130)
    except BenchError as error:
        _stop(f"Error: {error}", error.exit_status)
    except ModuleNotFoundError as error:
        _stop(
            f"Error: package {error.name!r} is missing; remedy: pip install 'proveout[bench]'",
            EnvironmentFaultError.exit_status,
        )
    except OSError as error:
        where = f" {error.filename}" if error.filename else ""
        _stop(
            f"Error: cannot write or read{where}: {error.strerror or error}; "
            "free space or choose another output_dir",
            EnvironmentFaultError.exit_status,
        )


def _import_offline() -> None:
    """Settle what torch and transformers read from the environment at import: no network, no chatter."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")


def _line_buffered(stream: TextIO) -> None:
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(line_buffering=True)


def _quiet_write_error(raised: threading.ExceptHookArgs) -> None:
    """The event writer's thread hands its OSError to the next write, which reports it; anything else is shown."""
    if not isinstance(raised.exc_value, OSError):
        threading.__excepthook__(raised)


def _stop(message: str, status: int) -> None:
    print(message, file=sys.stderr, flush=True)
    sys.exit(status)

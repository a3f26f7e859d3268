"""What every launcher of containers needs: mounts, the words that run inside, Megatron-Core on node-local storage."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from proveout.domain.errors import UsageError
from proveout.domain.layout import AttemptLayout
from proveout.domain.step import Command
from proveout.launch.files import environment
from proveout.launch.site import LaunchSite

_PATHS = ("BRIDGE_REPO", "MCORE_REPO", "NEMO_RL_REPO", "VERL_REPO", "HF_HOME", "MODEL_PATH")
_NO_ROCR = 'if [[ -n "${CUDA_VISIBLE_DEVICES:-}" ]]; then unset ROCR_VISIBLE_DEVICES; fi'


def needs_image(site: LaunchSite, launcher: str) -> None:
    """Raises UsageError where no image is given."""
    if not site.image:
        raise UsageError(
            f"launcher {launcher!r} needs an image",
            remedy='give --image IMAGE, or image = "IMAGE" under [launch] of proveout.toml',
        )


def mounts(command: Command, files: AttemptLayout, site: LaunchSite) -> tuple[str, ...]:
    """``HOST:CONTAINER`` of all that the command must see, each once: the run directory, where it starts, the
    checkouts on its import path and in its variables, caches, and what the site adds. Paths stay the same inside.
    """
    env = environment(command)
    wanted = [str(files.root.parent.parent if files.root.parent.name == "attempts" else files.root)]
    wanted += [command.cwd, *(env[name] for name in _PATHS if env.get(name, "").startswith("/"))]
    wanted += [entry for entry in env.get("PYTHONPATH", "").split(os.pathsep) if entry.startswith("/")]
    own = [mount if ":" in mount else f"{mount}:{mount}" for mount in site.mounts]
    taken = {mount.split(":")[1] for mount in own}
    roots = _outermost([path for path in dict.fromkeys(wanted) if Path(path).exists() and path not in taken])
    return (*(f"{path}:{path}" for path in roots), *own)


def inside(command: Command, site: LaunchSite) -> str:
    """The shell words to run in the container: import path exported, Megatron-Core made ready, then the command.

    An image's own PYTHONPATH can win over that of the host, so it is exported here. A pipe that fails is an error.
    Set-up and command are one step, since what lies in node-local storage is gone in the next.
    """
    lines = ["set -eo pipefail"]
    lines += [f"unset {name}" for name in command.unset]
    lines += [f"export {name}={shlex.quote(value)}" for name, value in exported(command).items()]
    lines += set_up(site)
    lines += [f"cd {shlex.quote(command.cwd)}", shlex.join(command.argv)]
    return "\n".join(lines)


def set_up(site: LaunchSite) -> list[str]:
    """Lines that come before the command, in the same step. Raises UsageError for one that cannot be read."""
    lines = [_NO_ROCR]
    for words in site.setup:
        try:
            line = shlex.join(shlex.split(words.removeprefix("-")))
        except ValueError as error:
            raise UsageError(f"{words!r}: {error}", where="launch.setup") from error
        lines.append(f"{line} || true" if words.startswith("-") else line)
    if site.mcore_copy:
        lines += local_mcore(site.mcore_copy, site.mcore_python)
    return lines


def exported(command: Command) -> dict[str, str]:
    """The step's own variables but for secrets, which the scheduler carries; PYTHONPATH even where it is inherited."""
    from proveout.domain import redact

    env = environment(command)
    names = [*(["PYTHONPATH"] if env.get("PYTHONPATH") else []), *command.env]
    shown = redact.environment({name: env[name] for name in dict.fromkeys(names)})
    return {name: value for name, value in shown.items() if value == env[name]}


def local_mcore(folder: str, python: str) -> list[str]:
    """Lines that copy Megatron-Core to ``folder``, build its helpers there and put it on the import path.

    ``$MCORE_REPO``, else the Bridge's submodule, is copied and left alone. The suffix is that of the Python of the
    container: where python3-config is absent, the Makefile would leave a library without one, which nothing
    imports. The built file is asserted before a long run starts.
    """
    where, interpreter = shlex.quote(folder), shlex.join(shlex.split(python))
    return [
        'mcore_from="${MCORE_REPO:-$BRIDGE_REPO/3rdparty/Megatron-LM}"',
        f"mcore_to={where}",
        'mkdir -p "$(dirname "$mcore_to")"',
        '[[ -d "$mcore_to/megatron" ]] || cp -a "$mcore_from" "$mcore_to"',
        f"suffix=$({interpreter}"
        ' -c \'import sysconfig; print(sysconfig.get_config_var("EXT_SUFFIX") or ".so")\')',
        'make -C "$mcore_to/megatron/core/datasets" LIBEXT="$suffix"',
        'test -s "$mcore_to/megatron/core/datasets/helpers_cpp$suffix"',
        'export MCORE_REPO="$mcore_to"',
        'export PYTHONPATH="${PYTHONPATH//$mcore_from/$mcore_to}"',
        'case ":$PYTHONPATH:" in *":$mcore_to:"*) ;; *) PYTHONPATH="$mcore_to${PYTHONPATH:+:$PYTHONPATH}" ;; esac',
        "export PYTHONPATH",
    ]


def _outermost(paths: list[str]) -> list[str]:
    """The paths that lie in none of the others; never the root."""
    found: list[str] = []
    for path in sorted((str(Path(each)) for each in paths), key=len):
        if path != "/" and not any(Path(path).is_relative_to(other) for other in found):
            found.append(path)
    return sorted(found)

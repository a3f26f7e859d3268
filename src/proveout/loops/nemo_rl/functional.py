"""NeMo-RL's functional scripts read as text: the runs they start, the checks they make, what they leave."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

import msgspec

from proveout.domain.tree import Tree
from proveout.loops.shell import ShellCommand, read

_ENTRY = re.compile(r"(?:^|/)(examples/[\w/]*run_\w+\.py)$")
_DEFAULT_CONFIG = re.compile(
    r"[\"']configs[\"']\s*,\s*[\"']([\w./-]+\.yaml)[\"']|[\"'/]configs/([\w./-]+\.yaml)"
)
_OVERRIDE = re.compile(r"(?:\+\+?)?[A-Za-z_][\w.]*=|~[A-Za-z_]")
_TRAPPED = re.compile(r"rm\s+-rf\s+(.*)")


class RunCall(msgspec.Struct, frozen=True, kw_only=True):
    """One run that a script starts: entry script and configuration relative to the root, its own overrides.

    ``config`` is '' where the script writes its configuration itself.
    """

    line: int
    entry: str
    config: str
    overrides: tuple[str, ...]
    extras: tuple[str, ...] = ()


class FunctionalScript(msgspec.Struct, frozen=True, kw_only=True):
    """What one script would do. Paths are absolute where the script makes them so.

    ``checks`` are the expressions of its metric checks, by the metrics file that they look at;
    ``removed_at_exit`` are what its EXIT trap deletes.
    """

    path: str
    runs: tuple[RunCall, ...]
    checks: dict[str, tuple[str, ...]]
    log_dir: str
    metrics: tuple[str, ...]
    pipefail: bool
    removed_at_exit: tuple[str, ...] = ()
    overrides_pass: bool = True

    @property
    def last_checks(self) -> tuple[str, ...]:
        """The expressions of the last metrics file checked."""
        return list(self.checks.values())[-1] if self.checks else ()


def read_script(tree: Tree, relative: str) -> FunctionalScript:
    """One functional script. Raises UsageError when it cannot be read."""
    key = ("functional", relative)
    if key not in tree.kept:
        tree.kept[key] = _read(tree, relative)
    script: FunctionalScript = tree.kept[key]
    return script


def _read(tree: Tree, relative: str) -> FunctionalScript:
    root, text = str(tree.root), tree.text(relative)
    name = PurePosixPath(relative).stem
    folder = f"{root}/{PurePosixPath(relative).parent}"
    fixed = {"SCRIPT_DIR": folder, "PROJECT_ROOT": root, "EXP_NAME": name}
    script = read(text, {"HOME": "$HOME"}, fixed)
    runs = [run for command in script.commands if (run := _run(tree, command))]
    checks: dict[str, tuple[str, ...]] = {}
    metrics: list[str] = []
    removed: list[str] = []
    pipefail = False
    for command in script.commands:
        words = command.words
        if words[0] == "set":
            pipefail |= "pipefail" in words
        elif words[0] == "trap" and len(words) > 1 and (match := _TRAPPED.search(words[1])):
            removed += match[1].split()
        elif at := _index(words, "check_metrics.py"):
            checks[words[at + 1]] = tuple(word for word in words[at + 2 :] if not word.startswith("--"))
        elif (at := _index(words, "json_dump_tb_logs.py")) and "--output_path" in words:
            metrics.append(words[words.index("--output_path") + 1])
    return FunctionalScript(
        path=relative,
        runs=tuple(runs),
        checks=checks,
        log_dir=script.variables.get("LOG_DIR", f"{folder}/{name}/logs"),
        metrics=tuple(dict.fromkeys(metrics)),
        pipefail=pipefail,
        removed_at_exit=tuple(removed),
        overrides_pass="$@" in text or "${@" in text,
    )


def _run(tree: Tree, command: ShellCommand) -> RunCall | None:
    root = str(tree.root)
    words = list(command.words)
    at = next((i for i, word in enumerate(words) if _ENTRY.search(word)), None)
    if at is None:
        return None
    entry_match = _ENTRY.search(words[at])
    entry = entry_match[1] if entry_match else ""
    config, overrides = "", []
    rest = iter(words[at + 1 :])
    for word in rest:
        if word == "--config":
            config = next(rest, "")
        elif word.startswith("--config="):
            config = word.partition("=")[2]
        elif _OVERRIDE.match(word):
            overrides.append(word)
    config = config.removeprefix(root + "/") if config else default_config(tree, entry)
    if "$" in config:
        config = ""
    extras = [words[i + 1] for i, word in enumerate(words[:at]) if word == "--extra" and i + 1 < len(words)]
    return RunCall(
        line=command.line, entry=entry, config=config, overrides=tuple(overrides), extras=tuple(extras)
    )


def default_config(tree: Tree, entry: str) -> str:
    """The configuration that an entry script loads without ``--config``, or '' when its text does not say."""
    if not tree.exists(entry):
        return ""
    match = _DEFAULT_CONFIG.search(tree.text(entry))
    return f"{PurePosixPath(entry).parent}/configs/{match[1] or match[2]}" if match else ""


def _index(words: tuple[str, ...], name: str) -> int:
    return next((i for i, word in enumerate(words) if word.endswith(name)), 0)

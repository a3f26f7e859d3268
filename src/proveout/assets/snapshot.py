"""Looks at a Hugging Face snapshot without loading it: is it there, and is all of it there?"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

import msgspec

INDEXES = ("model.safetensors.index.json", "pytorch_model.bin.index.json")
SINGLE = ("model.safetensors", "pytorch_model.bin")
TOKENIZERS = (
    ("tokenizer.json",),
    ("tokenizer.model",),
    ("vocab.json", "merges.txt"),
    ("spiece.model",),
    ("tekken.json",),
    ("tiktoken.model",),
    ("vocab.txt",),
)
LOCK_SUFFIX = ".incomplete"


class Fault(StrEnum):
    """What is wrong with a snapshot."""

    ABSENT = "absent"
    CONFIG = "config"
    WEIGHTS = "weights"
    TOKENIZER = "tokenizer"


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong, and the file or directory that shows it."""

    fault: Fault
    what: str
    path: str


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A snapshot as it was found. ``path`` is empty where none is on this disk."""

    model: str
    path: str
    problems: tuple[Problem, ...] = ()
    files: int = 0
    size: int = 0

    @property
    def whole(self) -> bool:
        """Whether it is there and nothing is missing."""
        return bool(self.path) and not self.problems


def is_hub_name(model: str) -> bool:
    """Whether a model is named as ``ORG/NAME`` of the hub rather than by a path."""
    parts = model.split("/")
    return len(parts) == 2 and all(parts) and not model.startswith((".", "~")) and not Path(model).exists()


def find(model: str, hub: Path) -> Path | None:
    """The directory of a model: its own path or its snapshot in the hub cache; None where there is none."""
    if not is_hub_name(model):
        path = Path(model).expanduser()
        return path if path.exists() else None
    place = hub / f"models--{model.replace('/', '--')}"
    try:
        revision = (place / "refs" / "main").read_text(encoding="utf-8").strip()
        if (chosen := place / "snapshots" / revision).is_dir():
            return chosen
    except (OSError, UnicodeDecodeError):
        pass
    kept = sorted((place / "snapshots").glob("*"), key=lambda path: path.stat().st_mtime)
    return kept[-1] if kept else None


def inspect(model: str, hub: Path, *, tokenizer: bool = True) -> Snapshot:
    """What is there of a model. Reads the configuration, the index and the headers of the shards."""
    path = find(model, hub)
    if path is None:
        problem = Problem(fault=Fault.ABSENT, what="not on this disk", path=str(hub))
        return Snapshot(model=model, path="", problems=(problem,))
    if not path.is_dir():
        problem = Problem(fault=Fault.ABSENT, what="a model is a directory, this is a file", path=str(path))
        return Snapshot(model=model, path="", problems=(problem,))
    problems = [*_config(path), *_weights(path), *(_tokenizer(path) if tokenizer else ())]
    problems += _unfinished(path) if problems else ()
    inside = (
        file for file in path.rglob("*") if not any(p.startswith(".") for p in file.relative_to(path).parts)
    )
    files = [file for file in inside if file.is_file()]
    return Snapshot(
        model=model,
        path=str(path),
        problems=tuple(problems),
        files=len(files),
        size=sum(file.stat().st_size for file in files),
    )


def _config(path: Path) -> Iterator[Problem]:
    file = path / "config.json"
    try:
        whole = isinstance(json.loads(file.read_bytes()), dict)
        why = "config.json is not a JSON object"
    except FileNotFoundError:
        whole, why = False, "no config.json"
    except (OSError, ValueError) as error:
        whole, why = False, f"config.json cannot be read: {error}"
    if not whole:
        yield Problem(fault=Fault.CONFIG, what=why, path=str(file))


def _weights(path: Path) -> Iterator[Problem]:
    index = next((path / name for name in INDEXES if (path / name).is_file()), None)
    if index is not None:
        try:
            shards = sorted(set(json.loads(index.read_bytes())["weight_map"].values()))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            what = f"the index cannot be read: {type(error).__name__}: {error}"
            yield Problem(fault=Fault.WEIGHTS, what=what, path=str(index))
            return
        for shard in shards:
            yield from _shard(path / str(shard), f"of {len(shards)} in the index")
        return
    weights = next((path / name for name in SINGLE if (path / name).exists()), None)
    if weights is None:
        broken = next((path / name for name in (*SINGLE, *INDEXES) if (path / name).is_symlink()), None)
        what = f"{broken.name} points at a file that is gone" if broken else "no weights"
        yield Problem(fault=Fault.WEIGHTS, what=what, path=str(broken or path))
        return
    yield from _shard(weights, "alone")


def _shard(file: Path, which: str) -> Iterator[Problem]:
    if not file.is_file():
        yield Problem(fault=Fault.WEIGHTS, what=f"shard missing: {file.name} ({which})", path=str(file))
    elif file.stat().st_size == 0:
        yield Problem(fault=Fault.WEIGHTS, what=f"shard empty: {file.name}", path=str(file))
    elif file.suffix == ".safetensors" and (why := cut_short(file)):
        yield Problem(fault=Fault.WEIGHTS, what=f"shard damaged: {file.name}: {why}", path=str(file))


def cut_short(file: Path) -> str:
    """Why a safetensors file cannot hold what its header promises; empty where it can.

    The header is eight bytes of little-endian length and JSON whose ``data_offsets`` end where the file does
    (the safetensors format's own description).
    """
    size = file.stat().st_size
    with file.open("rb") as stream:
        head = stream.read(8)
        length = struct.unpack("<Q", head)[0] if len(head) == 8 else -1
        if not 0 < length <= size - 8:
            return "its header is not whole"
        try:
            tensors = json.loads(stream.read(length))
            ends = [entry["data_offsets"][1] for name, entry in tensors.items() if name != "__metadata__"]
        except (ValueError, KeyError, TypeError, AttributeError, IndexError):
            return "its header cannot be read"
    expected = 8 + length + max(ends, default=0)
    return "" if size == expected else f"{size} bytes, its header promises {expected}"


def _unfinished(path: Path) -> Iterator[Problem]:
    """Downloads that were not finished: beside a local directory's files, or among the hub cache's blobs."""
    places = [path / ".cache" / "huggingface" / "download"]
    places += [path.parent.parent / "blobs"] if path.parent.name == "snapshots" else []
    for place in places:
        for file in sorted(place.rglob(f"*{LOCK_SUFFIX}")):
            what = f"a download was not finished: {file.name}"
            yield Problem(fault=Fault.WEIGHTS, what=what, path=str(file))


def _tokenizer(path: Path) -> Iterator[Problem]:
    if not any(all((path / name).is_file() for name in names) for names in TOKENIZERS):
        what = "no tokenizer (tokenizer.json, tokenizer.model, or vocab.json with merges.txt)"
        yield Problem(fault=Fault.TOKENIZER, what=what, path=str(path))

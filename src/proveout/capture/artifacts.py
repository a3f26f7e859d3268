"""What became of the artifacts that a step declares."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from glob import glob
from pathlib import Path

from proveout.domain.evidence import ArtifactState
from proveout.domain.step import Artifact


def look(artifacts: Iterable[Artifact], base: Path) -> tuple[ArtifactState, ...]:
    """The state of each artifact; a glob or a directory counts with its newest file and its bytes in all."""
    return tuple(_state(artifact, base) for artifact in artifacts)


def _state(artifact: Artifact, base: Path) -> ArtifactState:
    matches = glob(str(base / artifact.path), recursive=True)  # noqa: PTH207 - the pattern may be absolute
    stats = [stat for match in matches for stat in _files(Path(match))]
    return ArtifactState(
        path=artifact.path,
        what=artifact.what,
        exists=bool(stats),
        modified=max((stat.st_mtime for stat in stats), default=0.0),
        size=sum(stat.st_size for stat in stats),
        min_bytes=artifact.min_bytes,
    )


def _files(path: Path) -> Iterator[os.stat_result]:
    """Status of a file, or of every file below a directory; what vanishes meanwhile is left out."""
    paths = (
        (Path(root) / name for root, _, names in os.walk(path) for name in names)
        if path.is_dir()
        else (path,)
    )
    for each in paths:
        try:
            yield each.stat()
        except OSError:
            continue

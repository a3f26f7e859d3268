"""The table of the two testing documents names rules that exist."""

from __future__ import annotations

import re
from pathlib import Path

from proveout.triage.catalog import load

TABLE = Path(__file__).parents[2] / "docs" / "triage.md"


def test_every_rule_that_the_table_names_exists():
    named = set(
        re.findall(
            r"`((?:env|prov|bridge|gen|train|loop|oom|hang|num|inc|wrap|after|noise)-[a-z0-9-]+)`",
            TABLE.read_text(),
        )
    )
    assert len(named) > 30
    assert named - set(load().by_id) == set()

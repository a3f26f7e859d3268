"""What may be tracked."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from proveout.pytest_plugin.tracking.values import NotSerialisableError, plain, split_non_finite

NUMBERS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
JSON_DATA = st.recursive(
    NUMBERS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(JSON_DATA)
def test_json_data_is_kept_as_it_is(value: Any) -> None:
    assert plain("x", value) == value
    assert split_non_finite(value) == (value, None)


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (np.float32(0.5), 0.5),
        (np.int64(7), 7),
        (np.bool_(True), True),
        (np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
        (torch.tensor(0.25, dtype=torch.bfloat16, requires_grad=True), 0.25),
        (torch.tensor([1, 2]), [1, 2]),
        ((1, (2.0, "three")), [1, [2.0, "three"]]),
        ({1: np.float64(2.0), "b": {"c": torch.tensor(3)}}, {"1": 2.0, "b": {"c": 3}}),
    ],
)
def test_scalars_arrays_and_tensors_become_plain_numbers(value: object, kept: object) -> None:
    assert plain("x", value) == kept
    assert json.loads(json.dumps(plain("x", value))) == kept


def _contains_itself() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    ("value", "where"),
    [
        (object(), "metric 'loss': a value of type object"),
        ({"a": [1, {2, 3}]}, "metric 'loss'['a'][1]: a value of type set"),
        (Path(), "metric 'loss': a value of type pathlib.PosixPath"),
        (np.array([object()]), "metric 'loss'[0]: a value of type object"),
        ({(1, 2): 3}, "metric 'loss': a value of type tuple cannot be a key"),
        (torch.Tensor, "metric 'loss': a value of type"),
        (torch.empty(2, device="meta"), "metric 'loss': a value of type torch.Tensor gave no plain numbers"),
        (1 + 2j, "metric 'loss': a value of type complex"),
    ],
)
def test_what_json_cannot_hold_is_named(value: object, where: str) -> None:
    with pytest.raises(NotSerialisableError) as raised:
        plain("loss", value)
    assert str(raised.value).startswith(where)


def test_a_value_that_contains_itself_is_refused() -> None:
    with pytest.raises(NotSerialisableError, match="contains itself"):
        plain("x", _contains_itself())


def test_a_later_change_does_not_reach_what_was_tracked() -> None:
    value = {"a": [1]}
    kept = plain("x", value)
    value["a"].append(2)
    assert kept == {"a": [1]}


def test_non_finite_numbers_keep_their_place() -> None:
    assert split_non_finite(math.inf) == (None, "Infinity")
    assert split_non_finite({"a": [1.0, math.nan]}) == ({"a": [1.0, None]}, {".a[1]": "NaN"})

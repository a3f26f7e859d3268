"""Packed attention is the attention of each sequence by itself."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

from proveout_cpu.megatron_local import attend_packed  # noqa: E402


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("batched", [False, True])
def test_no_token_sees_another_sequence_or_what_comes_after_it(padded: bool, batched: bool) -> None:
    torch.manual_seed(0)
    tokens, heads, groups, size = 9, 4, 2, 8
    query = torch.randn(tokens, heads, size)
    key, value = torch.randn(tokens, groups, size), torch.randn(tokens, groups, size)
    real = torch.tensor([0, 3, 7])
    bounds = SimpleNamespace(
        cu_seqlens_q=real, cu_seqlens_q_padded=torch.tensor([0, 4, 8]) if padded else None
    )
    q, k, v = (tensor[:, None] if batched else tensor for tensor in (query, key, value))

    out = attend_packed(q, k, v, bounds, 0.3)

    assert out.shape == ((tokens, 1, heads * size) if batched else (tokens, heads * size))
    edges = [0, 4, 8] if padded else [0, 3, 7]
    for start, end in pairwise(edges):
        for place in range(start, end):
            for head in range(heads):
                seen = slice(start, place + 1)
                score = torch.softmax(key[seen, head // 2] @ query[place, head] * 0.3, 0)
                wanted = score @ value[seen, head // 2]
                got = out.reshape(tokens, heads, size)[place, head]
                assert torch.allclose(got, wanted, atol=1e-5)
    assert not out[edges[-1] :].any()

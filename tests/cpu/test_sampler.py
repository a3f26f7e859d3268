"""What is sampled depends on the request alone, and its log-probabilities are the model's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from proveout_cpu.sampler import Request, choose, sample, seed_of  # noqa: E402

PAD = 0


@pytest.fixture(scope="module")
def model() -> Iterator[Any]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    config = transformers.Qwen2Config(
        vocab_size=97,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=128,
    )
    yield transformers.Qwen2ForCausalLM(config).eval()
    torch.set_num_threads(threads)


def requests(count: int) -> list[Request]:
    return [
        Request(prompt=tuple(range(1, 4 + index)), seed=seed_of("test", index), new_tokens=9)
        for index in range(count)
    ]


def test_tokens_and_logprobs_do_not_depend_on_what_else_is_asked(model: Any) -> None:
    asked = requests(11)
    together = sample(model, asked, PAD)
    backwards = sample(model, asked[::-1], PAD)[::-1]
    alone = [sample(model, [request], PAD)[0] for request in asked]
    assert together == backwards == alone
    assert len({tuple(one.tokens) for one in together}) == 11


def test_another_seed_gives_other_tokens(model: Any) -> None:
    one, other = (Request(prompt=(5, 6), seed=seed_of(n), new_tokens=12) for n in (1, 2))
    assert sample(model, [one], PAD) == sample(model, [one], PAD)
    assert sample(model, [one], PAD) != sample(model, [other], PAD)


def test_logprobs_are_those_of_a_whole_forward_pass(model: Any) -> None:
    request = Request(prompt=(7, 8, 9), seed=3, new_tokens=6, temperature=0.7)
    made = sample(model, [request], PAD)[0]
    whole = torch.tensor([[*request.prompt, *made.tokens]])
    with torch.no_grad():
        logits = model(input_ids=whole).logits[0, len(request.prompt) - 1 : -1]
    wanted = torch.log_softmax(logits / 0.7, -1).gather(-1, torch.tensor(made.tokens)[:, None])[:, 0]
    assert torch.allclose(torch.tensor(made.logprobs), wanted, atol=1e-5)


def test_a_response_ends_with_the_first_stop_token(model: Any) -> None:
    free = sample(model, [Request(prompt=(4, 2), seed=9, new_tokens=20)], PAD)[0]
    stop = free.tokens[5]
    until = free.tokens[: free.tokens.index(stop) + 1]
    request = Request(prompt=(4, 2), seed=9, new_tokens=20, stops=frozenset({stop}))
    assert sample(model, [request, *requests(3)], PAD)[0].tokens == until


def test_logits_that_are_no_distribution_do_not_end_the_run(model: Any) -> None:
    broken = transformers.Qwen2ForCausalLM(model.config).eval()
    torch.nn.init.constant_(broken.model.norm.weight, float("nan"))
    made = sample(broken, requests(2), PAD)[0]
    assert len(made.tokens) == 9
    assert all(value != value for value in made.logprobs)


def test_top_k_and_top_p_leave_out_what_is_unlikely() -> None:
    logits = torch.tensor([0.0, 3.0, 2.0, 1.0])
    draws = {}
    for name, limits in (
        ("all", {}),
        ("k", {"top_k": 2}),
        ("p", {"top_p": 0.6}),
        ("greedy", {"temperature": 0.0}),
    ):
        request = Request(prompt=(1,), seed=0, new_tokens=1, **limits)
        generator = torch.Generator().manual_seed(0)
        draws[name] = {choose(logits, request, generator)[0] for _ in range(400)}
    assert draws == {"all": {0, 1, 2, 3}, "k": {1, 2}, "p": {1}, "greedy": {1}}
    assert choose(logits, Request(prompt=(1,), seed=0, new_tokens=1, top_k=1), torch.Generator())[
        1
    ] == pytest.approx(float(torch.log_softmax(logits, -1)[1]))

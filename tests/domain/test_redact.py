"""Secrets are recognised by name and by form; what is no secret stays."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proveout.domain import redact

SECRETS = [
    "hf_" + "aB3" * 8,
    "ghp_" + "a1" * 15,
    "github_pat_" + "a_1" * 8,
    "sk-" + "abc123" * 5,
    "AKIA" + "ABCD1234" * 2,
    "xoxb-" + "1234567890-abc",
    "nvapi-" + "Ab1_" * 8,
]


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("around", ["{}", "token {} used", "url?x={}&y=1", "'{}',"])
def test_a_token_is_masked_wherever_it_stands(secret: str, around: str) -> None:
    assert secret not in redact.text(around.format(secret))


@pytest.mark.parametrize(
    ("line", "secret"),
    [
        ("password=hunter22", "hunter22"),
        ("password=1.5e10x7", "1.5e10x7"),
        ("password: 12345678", "12345678"),
        ("password=1234.5678", "1234.5678"),
        ("secret: -12.3456789", "-12.3456789"),
        ('"api_key": "zzz999zzz"', "zzz999zzz"),
        ("Authorization: Bearer abcdef0123456789", "abcdef0123456789"),
        ("https://user:pa55word@host/x", "pa55word"),
    ],
)
def test_a_named_secret_is_masked(line: str, secret: str) -> None:
    assert secret not in redact.text(line)


@pytest.mark.parametrize(
    "name", ["HF_TOKEN", "WANDB_API_KEY", "AWS_SECRET_ACCESS_KEY", "DB_PASSWORD", "X_AUTH"]
)
def test_a_secret_variable_is_masked_whatever_it_holds(name: str) -> None:
    assert redact.environment({name: "v"}) == {name: redact.MASK}


@pytest.mark.parametrize("name", ["TOKENIZERS_PARALLELISM", "PATH", "MAX_TOKENS", "HF_HOME", "AUTHOR"])
def test_an_ordinary_variable_is_kept(name: str) -> None:
    assert redact.environment({name: "v"}) == {name: "v"}


@pytest.mark.parametrize(
    "line",
    [
        "train/token_mult_prob_error = 1.0000001",
        "mean_gen_tokens_per_sample: 15.5",
        "step 3/60 in 0.12 s",
        "tokenizer=Qwen2Tokenizer",
        "step:3 - rollout_corr/chi2_token:1.1920928955078125e-07 - actor/lr:100.0",
        "rollout_corr/chi2_token:np.float64(0.00012345)",
    ],
)
def test_what_a_log_says_of_tokens_is_kept(line: str) -> None:
    assert redact.text(line) == line


@given(st.text(max_size=200))
def test_masking_twice_changes_nothing_more(text: str) -> None:
    once = redact.text(text)
    assert redact.text(once) == once

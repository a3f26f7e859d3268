"""The vision-language model: its images matter, in the policy, in generation, and to the reward."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.bench.runs import SMALL, Finished, inside

from proveout_bench import models, registry
from proveout_bench.config.resolve import resolve
from proveout_bench.config.schema import GrpoConfig, Rollout, Task, TinyModel
from proveout_bench.errors import ConfigError
from proveout_bench.forward import response_logprobs
from proveout_bench.generation.inprocess import InProcessGenerator
from proveout_bench.tasks.colour import COLOURS, LETTERS, ColourTask, square
from proveout_bench.vision import IMAGE, Processor

IMAGES = ("task.name=colour", "tiny.image_size=16")


@pytest.fixture(scope="module")
def loaded() -> tuple[Any, Any]:
    config = GrpoConfig(tiny=TinyModel(image_size=16, init_std=0.2))
    return models.load(config)


def test_blank_images_change_the_logprobs_and_images_of_other_colours_do_too(loaded: tuple[Any, Any]) -> None:
    model, tokenizer = loaded
    processor = Processor(16)
    pixels = processor.pixels([square(name, 2, 2) for name in COLOURS])
    assert pixels.shape == (3, 3, 16, 16)
    assert torch.unique(pixels.flatten(1), dim=0).shape[0] == 3
    prompts = [tokenizer.encode(processor.expand(f"{IMAGE}colour: "))] * 3
    assert prompts[0].count(model.config.image_token_id) == processor.tokens == 4
    batch = InProcessGenerator(Rollout(max_new_tokens=8), model, tokenizer, seed=1).generate(prompts, pixels)
    with torch.no_grad():
        seen = response_logprobs(model, batch, 1.0)
        blank = response_logprobs(model, type(batch)(*list(vars(batch).values())[:-1], pixels * 0), 1.0)
        other = response_logprobs(
            model, type(batch)(*list(vars(batch).values())[:-1], pixels.roll(1, 0)), 1.0
        )
    assert torch.allclose(seen * batch.response_mask, batch.generation_logprobs, atol=2e-5)
    for wrong in (blank, other):
        assert float(((seen - wrong).abs() * batch.response_mask).max()) > 1e-3


def test_the_image_token_is_never_sampled(loaded: tuple[Any, Any]) -> None:
    model, tokenizer = loaded
    ids = torch.tensor([tokenizer.encode("colour: ")])
    assert model(input_ids=ids).logits.shape[-1] == len(tokenizer) - 1 == model.config.image_token_id


def test_the_text_alone_does_not_tell_the_colour() -> None:
    task = ColourTask(Task(name="colour"))
    prompts = task.prompts(random.Random(1), 40)
    assert len({prompt.text for prompt in prompts}) == 1
    assert {prompt.answer for prompt in prompts} == set(COLOURS)
    for prompt in prompts:
        assert task.reward(prompt, task.demonstration(prompt)) == 1.0
        assert COLOURS[prompt.answer] in {colour for _, colour in prompt.image.getcolors()}
    assert not set(LETTERS["red"]) & set(LETTERS["blue"])


def test_a_run_trains_all_of_it_and_blank_images_show(tmp_path: Path) -> None:
    found = inside("grpo", tmp_path / "sound", *IMAGES, "loss.minibatch_size=4")
    assert min(found["train/image_effect"].values()) > 1e-3
    assert max(found["train/token_mult_prob_error"].values()) < 1.0001
    assert found["train/unmoved_tensors"][2] == 0
    blank = inside("grpo", tmp_path / "blank", *IMAGES, "fault.inject=vision-image-dropped")
    assert max(blank["train/image_effect"].values()) == 0
    lost = inside("grpo", tmp_path / "lost", *IMAGES, "fault.inject=vision-lost-in-generation")
    assert max(lost["train/token_mult_prob_error"].values()) > 1.0001


def test_images_reach_a_separate_generation_process(tmp_path: Path) -> None:
    words = [*SMALL, *IMAGES, "loss.minibatch_size=4", "rollout.engine=process", f"output_dir={tmp_path}"]
    registry.load(registry.ALGORITHMS, "grpo")(resolve(words))
    found = Finished(0, "", "", tmp_path).series()
    assert max(found["train/token_mult_prob_error"].values()) < 1.0001
    assert found["parity/load_weights_differing"][0] == 0


@pytest.mark.parametrize(
    "words", [["task.name=colour"], ["tiny.image_size=16"], [*IMAGES, "lora.rank=4"], [*IMAGES, "export=x"]]
)
def test_combinations_that_do_not_run_are_refused(words: list[str], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="image"):
        resolve([*words, f"output_dir={tmp_path / 'out'}"])

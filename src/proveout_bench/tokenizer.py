"""Text to token ids and back: the built-in one-character tokenizer, or that of a checkpoint directory."""

from __future__ import annotations

import json
import string
from pathlib import Path
from typing import Any, Protocol

PAD, EOS, UNK = "<|pad|>", "<|eos|>", "<|unk|>"
CHARACTERS = string.digits + string.ascii_lowercase + " +-*/=:?.,()"
BYTE_LEVEL_SPACE = "\u0120"
TOKENIZER_CONFIG = {
    "tokenizer_class": "PreTrainedTokenizerFast",
    "pad_token": PAD,
    "eos_token": EOS,
    "unk_token": UNK,
    "padding_side": "left",
    "clean_up_tokenization_spaces": False,
}


class Tokenizer(Protocol):
    """What the loop needs of a tokenizer."""

    pad_id: int
    eos_ids: tuple[int, ...]

    def __len__(self) -> int:
        """Size of the vocabulary."""
        ...

    def encode(self, text: str) -> list[int]:
        """Token ids without an end token."""
        ...

    def decode(self, ids: list[int]) -> str:
        """Text without special tokens."""
        ...

    def save(self, folder: Path) -> None:
        """Write the files that a Hugging Face checkpoint needs."""
        ...


class CharacterTokenizer:
    """One token for each character of ``CHARACTERS``, after padding, end and unknown.

    A byte-level BPE without merges, because transformers gives every Qwen2 checkpoint the byte-level splitting of
    Qwen2's own tokenizer, whatever its tokenizer.json says; this one reads the same either way.
    """

    pad_id: int = 0
    eos_ids: tuple[int, ...] = (1,)

    def __init__(self, special: tuple[str, ...] = ()) -> None:
        """``special``: further special tokens, after all others."""
        from tokenizers import AddedToken, decoders, models, pre_tokenizers
        from tokenizers import Tokenizer as Fast

        pieces = [PAD, EOS, UNK, *CHARACTERS.replace(" ", BYTE_LEVEL_SPACE), *special]
        self._fast = Fast(models.BPE({token: index for index, token in enumerate(pieces)}, [], unk_token=UNK))
        self._fast.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        self._fast.decoder = decoders.ByteLevel()
        self._fast.add_special_tokens(
            [AddedToken(token, special=True) for token in (PAD, EOS, UNK, *special)]
        )

    def __len__(self) -> int:
        return int(self._fast.get_vocab_size())

    def encode(self, text: str) -> list[int]:
        """Token ids; a character outside the alphabet becomes the unknown token."""
        return list(self._fast.encode(text).ids)

    def decode(self, ids: list[int]) -> str:
        """The characters, special tokens left out."""
        return str(self._fast.decode(ids, skip_special_tokens=True))

    def save(self, folder: Path) -> None:
        """Write ``tokenizer.json`` and ``tokenizer_config.json``."""
        self._fast.save(str(folder / "tokenizer.json"))
        (folder / "tokenizer_config.json").write_text(
            json.dumps(TOKENIZER_CONFIG, indent=2), encoding="utf-8"
        )


class CheckpointTokenizer:
    """The tokenizer of a local checkpoint directory, through transformers."""

    def __init__(self, folder: str) -> None:
        from transformers import AutoTokenizer

        self._inner: Any = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        eos = self._inner.eos_token_id
        self.eos_ids: tuple[int, ...] = () if eos is None else (int(eos),)
        pad = self._inner.pad_token_id
        self.pad_id = int(pad) if pad is not None else (self.eos_ids[0] if self.eos_ids else 0)

    def __len__(self) -> int:
        return len(self._inner)

    def encode(self, text: str) -> list[int]:
        """Token ids, without the special tokens that the tokenizer might add."""
        return list(self._inner.encode(text, add_special_tokens=False))

    def decode(self, ids: list[int]) -> str:
        """Text, special tokens left out."""
        return str(self._inner.decode(ids, skip_special_tokens=True))

    def save(self, folder: Path) -> None:
        """Write it as transformers does."""
        self._inner.save_pretrained(str(folder))

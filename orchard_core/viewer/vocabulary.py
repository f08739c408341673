"""What token ids spell, where the user names the model's tokenizer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from orchard_core.errors import ConfigError


class Vocabulary:
    """A `tokenizer.json`, as Hugging Face models have it."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer

    @classmethod
    def open(cls, path: Path) -> Vocabulary:
        """Read one from a file, or from a model's directory. Raises ConfigError."""
        file = path / "tokenizer.json" if path.is_dir() else path
        try:
            from tokenizers import Tokenizer  # type: ignore[import-not-found, unused-ignore]
        except ImportError:
            raise ConfigError("--tokenizer needs one more package", hint="pip install tokenizers") from None
        try:
            return cls(Tokenizer.from_file(str(file)))
        except Exception as error:  # noqa: BLE001 - the library raises nothing narrower
            raise ConfigError(
                f"{file} is no tokenizer: {str(error)[:200]}", hint="name the tokenizer.json of the model"
            ) from None

    def text(self, token: int) -> str:
        """What one id spells; empty for one that is in no vocabulary."""
        try:
            known = self._tokenizer.id_to_token(token)
        except (OverflowError, TypeError):
            return ""
        if known is None:
            return ""
        spelled: str = self._tokenizer.decode([token], skip_special_tokens=False)
        return spelled or str(known)

"""The real LiteLLM package against real servers."""

from importlib.util import find_spec

import pytest

# Looked for, not imported: what an import does is for our own loader to see to.
needs_litellm = [
    pytest.mark.skipif(find_spec("litellm") is None, reason="needs pip install 'orchard-core[litellm]'"),
    pytest.mark.filterwarnings("ignore:::pydantic", "ignore:::litellm"),
]

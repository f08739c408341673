"""OpenAI responses: the native dialect, and its translation to chat completions."""

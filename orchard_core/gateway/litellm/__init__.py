"""Models of any vendor through LiteLLM. The package is large, and imported only when such a model is made."""

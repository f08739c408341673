"""Credit by a judge: a model is shown an unresolved trajectory and values its key steps."""

"""Small generated tasks that need no image, no network and no model to be solved."""

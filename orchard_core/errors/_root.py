"""The root, and what is wrong before anything starts."""

from __future__ import annotations


class OrchardError(Exception):
    """Root of the tree. `hint` is one sentence or command that mends the matter, or empty."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n  hint: {self.hint}" if self.hint else self.message


class ConfigError(OrchardError):
    """A flag, recipe field or plugin option is wrong; nothing has started."""


class PluginError(OrchardError):
    """A plugin could not be found or loaded."""


class UnknownPlugin(PluginError):
    """No plugin of that kind has this name, and no known distribution offers it."""


class PluginNotInstalled(PluginError):
    """The name is known, but the distribution (or extra) that offers it is not installed."""


class PluginImportFailed(PluginError):
    """The plugin is installed, but importing or registering it raised."""


class PluginApiMismatch(PluginError):
    """The plugin was written for another version of the plugin API."""


class DuplicatePlugin(PluginError):
    """Two distributions offer the same name of the same kind."""

"""mini-swe-agent, the real package, in this process.

Read the files in this order: `harness` (the contract), `environment` (its commands, in the sandbox), `model`
(its calls, through the gateway), `bridge` (its thread), `settings` (its YAML files), `trajectory`.
"""

__version__ = "0.1.0"

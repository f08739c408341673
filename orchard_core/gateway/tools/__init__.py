"""A task's tools for programs: an MCP server and a plain REST pair, behind the session's own key.

The listener, the key and the tunnel are those of the model, so a sandbox needs no second way out.
"""

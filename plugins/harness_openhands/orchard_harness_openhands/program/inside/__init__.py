"""OpenHands driven on a sandbox: OpenHands itself, and nothing of Orchard but the kit for such programs.

Read `episode` (the run), `terminal` and `editor` (the stock tools' executors).
"""

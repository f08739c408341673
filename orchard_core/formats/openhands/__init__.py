"""Event logs of OpenHands' software-agent-sdk."""

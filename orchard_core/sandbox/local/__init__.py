"""The local provider: Linux namespaces through bubblewrap, for root and ordinary users alike."""

"""Task directories in the Harbor / Terminal-Bench 2 shape."""

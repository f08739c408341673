"""`orchard view`: runs, matrices and datasets read in a browser on this machine.

Everything that is shown is hostile: it is escaped, bounded, and never rendered as anything but text and
raster images. Sources are told by number and rollouts by key; no path is ever taken from a request.
"""

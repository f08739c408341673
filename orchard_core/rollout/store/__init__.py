"""The run store: an append-only directory that survives the death of its writer at any moment.

    run.json               the resolved config, written once by rename
    lock                   held by flock while a writer lives
    journal.jsonl          planned, started, retried, finished, cancelled: one checksummed JSON line each
    shards/00000.jsonl.zst rollouts, one checksummed zstd frame each; `zstd -dc` reads them as JSON lines
    blobs/ab/abcdef...     artifacts by SHA-256

Order of durability: blobs, then the shard's frames, then the journal's lines, then the report. So a line
in the journal always points at bytes that are on the disk, and whatever was not reported may be cut off.
"""

"""A dataset on the disk: Parquet shards and a manifest. It is there when its manifest is.

    manifest.json                       what it is made of, its shards with sizes and hashes; written last
    data/SPLIT-00000-of-0000N.parquet   the rows, one column a field of DatasetRow; JSON fields are text
    README.md                           a card, so that `datasets.load_dataset(DIRECTORY)` finds the splits
    .partial/                           while it is written: whole shards, their list, the writer's lock

A shard is written under another name, synced and renamed; one that is listed in `.partial/` survives
anything, and a writer that resumes goes on after the last of them.
"""

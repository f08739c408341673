"""Near duplicates: texts that say almost the same, found without comparing each with each.

words.py      a text as normalised words, in arrays
minhash.py    a signature of 128 bytes, from which the resemblance of two texts is estimated
bands.py      which parts of a signature are looked up, for a threshold
index.py      NearIndex: the earlier near duplicate of a text, streamed
groups.py     near_links: the near duplicates among all texts at hand
actions.py    what of a rollout is compared: what the agent did, not what it said
tasks.py      near-duplicate tasks: what tells two tasks of one template apart
"""

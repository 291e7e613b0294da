"""The first thing to try: contracts two tensors on a server.

Usage: first_contraction.py [ADDRESS]; by default $TENSORD_ADDRESS or localhost:8470.
"""

import sys

import numpy as np

import tensord

with tensord.connect(*sys.argv[1:]) as session:
    a = session.upload(np.random.rand(500, 40, 60))
    b = session.upload(np.random.rand(60, 40, 300))
    c = session.einsum("ijk,kjl->il", a, b)
    print(c, "sums up to", c.numpy().sum())

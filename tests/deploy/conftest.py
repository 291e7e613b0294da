"""Where the tests of the deployment find the server, its tools and what tests/python has."""

from __future__ import annotations

import os
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]

sys.path.insert(0, str(REPOSITORY / "tests/python"))
os.environ.setdefault("TENSORD_SERVER", str(REPOSITORY / "build/dev/bin/tensord"))

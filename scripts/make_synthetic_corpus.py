#!/usr/bin/env python3
"""Build the synthetic corpus with the code of this repository, whatever is installed: nmt-synthetic.

python scripts/make_synthetic_corpus.py --output data/synthetic
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # to find the package when run as a file

from nmt.cli import start

if __name__ == "__main__":
    sys.exit(start.main("nmt-synthetic"))

"""``python -m platform.launch +grid=diagnostics``: run this checkout, installed or not."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from adaexplore.launch import main

if __name__ == "__main__":
    main()

"""``python -m platform.launch +grid=diagnostics``: run this checkout, installed or not."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

try:
    from adaexplore.launch import main

    if __name__ == "__main__":
        main()
except ModuleNotFoundError as missing:
    print(
        f"error: {missing.name} is missing: run 'make .venv/.installed' and use .venv/bin/python, "
        "or activate it",
        file=sys.stderr,
    )
    sys.exit(4)

"""`python -m stack up|down|status|keys`: the services of a team on this machine.

`make stack` and `make stack-down` call this. Exit codes: 0 done, 2 configuration, 4 infrastructure.
"""

import argparse
import os
import sys
from pathlib import Path

from adaexplore.errors import AdaExploreError
from stack import keys, layout, processes
from stack.services import NAMES, Stack


def main(arguments: list[str]) -> int:
    """Do one command; its exit code."""
    options = _parser().parse_args(arguments)
    try:
        if not sys.platform.startswith("linux"):
            raise layout.StackError(f"expected Linux, got {sys.platform}; use compose.yaml instead")
        return _do(options.command, options.folder.absolute(), options.ports)
    except AdaExploreError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        return layout.StackError.exit_code  # nobody reads; what was started keeps running
    except OSError as error:
        mend = "make room, or mend the folder"
        if isinstance(error, PermissionError):
            mend = "use the account that made the stack, or another --folder"
        print(
            f"error: {error.filename or options.folder}: {error.strerror}; {mend}", file=sys.stderr
        )
        return layout.StackError.exit_code
    except KeyboardInterrupt:
        print(
            "interrupted: make stack goes on from here, make stack-down stops what runs",
            file=sys.stderr,
        )
        return 3


def _do(command: str, folder: Path, moved: str) -> int:
    if command == "keys":
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        print(keys.ensure(folder).files / "compose.env")
        return 0
    stack = Stack(folder, layout.saved(folder).moved(moved))
    if command == "up":
        stack.up()
        _show(stack)
    elif command == "down":
        stack.down()
        print(f"data and keys stay in {_short(folder)}")
    else:
        for name in NAMES:
            root = processes.running(stack.services[name].site)
            print(f"{name}: {'not running' if root is None else f'process {root.pid}'}")
    return 0


def _show(stack: Stack) -> None:
    folder = _short(stack.folder)
    print(f"""
PostgreSQL  {layout.HOST}:{stack.ports.postgres}
S3          {stack.endpoint}
MLflow      {stack.tracking_uri}
data, keys and logs in {folder}; ports move with STACK_PORTS=mlflow=5001,... make stack

. {folder}/env
python -m platform.launch +grid=smoke {" ".join(stack.overrides)}""")


def _short(folder: Path) -> Path:
    return folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m stack",
        description="PostgreSQL, SeaweedFS (S3) and an MLflow server on loopback, as ordinary processes.",
        epilog="Data, keys (mode 600) and logs are below the folder; `down` leaves them there.",
    )
    parser.add_argument("command", choices=["up", "down", "status", "keys"])
    parser.add_argument(
        "--folder", type=Path, default=Path("runs/stack"), help="default: runs/stack"
    )
    parser.add_argument(
        "--ports",
        default=os.environ.get("STACK_PORTS", ""),
        help="ports that move, as postgres=N,s3=N,mlflow=N,seaweed=N; default: $STACK_PORTS",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

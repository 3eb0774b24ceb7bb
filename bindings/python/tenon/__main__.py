"""The command `tenon`, as wheels install it, and as `python -m tenon`: runs the program that is beside the library.

    python -m tenon doctor
"""

from __future__ import annotations

import os
import sys

from . import _library

NAME = "tenon.exe" if sys.platform == "win32" else "tenon"


def find_command() -> str:
    """The program of the library that this package uses. SystemExit lists the folders that have none."""
    named = os.environ.get("TENON_LIBRARY")
    folders = [os.path.dirname(os.path.abspath(named))] if named else _library.folders()
    paths = [os.path.join(folder, NAME) for folder in folders]
    for path in paths:
        if os.access(path, os.X_OK) and os.path.isfile(path):
            return path
    raise SystemExit(f"tenon: the command is not here; tried {', '.join(paths)}; install a wheel that contains it, as "
                     "`make wheel` writes one, or run `make install`")


def main() -> None:
    """Becomes the command, with the same arguments."""
    command = find_command()
    arguments = [NAME, *sys.argv[1:]]
    if sys.platform == "win32":  # where the caller would not wait for a process that took another's place
        import subprocess

        raise SystemExit(subprocess.run([command, *arguments[1:]], check=False).returncode)
    os.execv(command, arguments)


if __name__ == "__main__":
    main()

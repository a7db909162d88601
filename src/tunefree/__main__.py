"""The program, ``tunefree`` or ``python -m tunefree``: it answers interruptions from before it imports anything."""

import gc
import os
import signal
import sys
from contextlib import suppress

INTERRUPTED = 130  # the status of a program that was interrupted
OBJECTS = (20_000, 20, 100)  # new ones before the collector looks; importing and compiling make many, and few are waste


def main() -> None:
    """Run the command line; an interruption while it is loaded ends in one line, as later ones do."""
    gc.set_threshold(*OBJECTS)
    try:
        from tunefree.cli.app import main as run

        run()
    except KeyboardInterrupt:
        sys.stderr.write("tunefree: interrupted; nothing was written\n")
        _end()
    except SystemExit as end:
        if end.code == INTERRUPTED:
            _end()
        if not isinstance(end.code, int) or end.code == 0:
            raise
        _end_at_once(end.code)


def _end() -> None:
    """End with the status; a further Ctrl-C, or the interpreter's own signal to itself, would end with another one."""
    if hasattr(signal, "pthread_sigmask"):  # as all systems but Windows have it
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    sys.exit(INTERRUPTED)


def _end_at_once(status: int) -> None:
    """End with a status without taking the interpreter apart: a thread of Arrow that still lets go of a Python object
    then would end the process with another status."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # closed, or nobody reads it
            stream.flush()
    os._exit(status)


if __name__ == "__main__":
    main()

"""The program, ``tunefree`` or ``python -m tunefree``: it answers interruptions from before it imports anything."""

import atexit
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
    status = [1]  # of errors that are raised, whose traceback Python prints
    atexit.register(_end_at_once, status)  # the first to be registered is the last to be called
    try:
        from tunefree.cli.app import main as run

        run()
        status[0] = 0
    except KeyboardInterrupt:
        sys.stderr.write("tunefree: interrupted; nothing was written\n")
        status[0] = INTERRUPTED
        _end()
    except SystemExit as end:
        status[0] = end.code if isinstance(end.code, int) else int(end.code is not None)
        if end.code != INTERRUPTED:
            raise
        _end()


def _end() -> None:
    """End with the status; a further Ctrl-C, or the interpreter's own signal to itself, would end with another one."""
    if hasattr(signal, "pthread_sigmask"):  # as all systems but Windows have it
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    sys.exit(INTERRUPTED)


def _end_at_once(status: list[int]) -> None:
    """End without taking the interpreter apart, after all other functions that are called at its exit.

    Arrow reads ahead in threads of its own, which may still let go of a buffer of Python's: where the interpreter
    is gone by then, they abort the process.
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # whoever reads it has closed it, or we have
            stream.flush()
    os._exit(status[0])


if __name__ == "__main__":
    main()

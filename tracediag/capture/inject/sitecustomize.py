"""Found first on PYTHONPATH in the profiled process: starts the recording, and hands over to the environment's own sitecustomize."""

import os
import sys

_FOLDER = os.path.dirname(os.path.abspath(__file__))


def _same(path: str) -> bool:
    return bool(path) and os.path.abspath(path) == _FOLDER


def _leave_search_path() -> None:
    """Take our folder out of sys.path and out of the environment: children of the script must not record."""
    sys.path[:] = [path for path in sys.path if not _same(path)]
    rest = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if not _same(path)]
    if rest:
        os.environ["PYTHONPATH"] = os.pathsep.join(rest)
    else:
        os.environ.pop("PYTHONPATH", None)


def _start_recording() -> None:
    if sys.version_info < (3, 9):
        sys.stderr.write("tracediag: nothing is recorded: Python 3.9 or later is needed\n")
        return
    try:
        sys.path.insert(0, _FOLDER)
        try:
            from _tracediag import start  # type: ignore[import-not-found,unused-ignore]
        finally:
            sys.path.remove(_FOLDER)
        start.run(_FOLDER)
    except Exception as error:  # the script must run, recorded or not
        sys.stderr.write("tracediag: nothing is recorded: %s: %s\n" % (type(error).__name__, error))


def _chain() -> None:
    """Run the sitecustomize that this file hides, if there is one."""
    mine = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # type: ignore[import-not-found,unused-ignore] # noqa: F401 (the environment's own)
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
        if mine is not None:
            sys.modules["sitecustomize"] = mine


_leave_search_path()
_start_recording()
_chain()

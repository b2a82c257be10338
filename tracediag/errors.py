"""The exception tree: what is wrong, where, and what to do about it.

TracediagError                 anything we raise on purpose; exit code 2, one line on stderr
+-- InputError                 a file or argument that cannot be used
|   +-- NotATraceError         a readable file that is no timeline (the message says what it is)
|   +-- BrokenTraceError       a timeline of which nothing whole is left
+-- RuleError                  a rule file that is wrong (all its errors in one message)
+-- CaptureError               a script that could not be run under the profiler
+-- PostError                  a report that GitHub did not take
"""

__all__ = ["BrokenTraceError", "CaptureError", "InputError", "NotATraceError", "PostError", "RuleError", "TracediagError"]


class TracediagError(Exception):
    """Base of all errors raised on purpose; `str(error)` is one line that says what, where, and what to do."""


class InputError(TracediagError):
    """A path, option or file that cannot be used."""


class NotATraceError(InputError):
    """A readable file that is not a timeline; the message says what it is and which file to give instead."""


class BrokenTraceError(InputError):
    """A timeline file of which no whole event could be recovered."""


class RuleError(TracediagError):
    """One or more rule files are wrong; the message lists every error with its file."""


class CaptureError(TracediagError):
    """The command could not be run under the profiler."""


class PostError(TracediagError):
    """GitHub could not be reached or did not take a report; the message says why."""

"""Run a command under its framework's own profiler."""

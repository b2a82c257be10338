"""`python -m tracediag` is the command `tracediag`."""

from tracediag.cli import main

if __name__ == "__main__":
    raise SystemExit(main())

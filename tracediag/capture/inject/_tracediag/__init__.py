"""Recording inside the user's process: standard library and the user's own framework only, Python 3.9 and later."""

"""There is no curses library in the sandbox; says so."""

raise ImportError(
    "curses is not in this Python: it needs a C library that was not compiled to WebAssembly. Terminals here "
    "understand ANSI escape sequences, termios and tty work, and so do packages of pure Python (rich, prompt_toolkit)",
    name="_curses",
)

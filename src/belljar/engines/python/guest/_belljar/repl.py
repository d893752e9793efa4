"""Interactive `python3`: a prompt on the terminal, with line editing, history and completion of names."""

import code
import os
import sys

from _belljar import lines, main


class Console(code.InteractiveConsole):
    """Reads lines from the terminal, or from standard input if that is none."""

    def raw_input(self, prompt=""):
        if lines.is_terminal():
            return lines.read(prompt)
        sys.stdout.flush()
        sys.stderr.write(prompt)
        sys.stderr.flush()
        line = sys.stdin.buffer.readline()
        if not line:
            raise EOFError
        return line.decode("utf-8", "surrogateescape").rstrip("\n")


def interactive(options):
    """The program of the command line first, if there is one; then a prompt until the end of input."""
    namespace = None
    if not main.is_interactive(options):
        main.outcome(lambda: main.run_main(options))
        namespace = sys.modules["__main__"].__dict__
    else:
        if not options.values["safe_path"]:
            sys.path.insert(0, "")
        namespace = main.fresh_main()
    if main.is_interactive(options) and not options.values["quiet"]:
        version = sys.version.replace("\n", " ")
        sys.stderr.write(f"Python {version} on {sys.platform}\n")
        sys.stderr.write('Type "help", "copyright", "credits" or "license" for more information.\n')
    sys.ps1, sys.ps2 = ">>> ", "... "
    startup = os.environ.get("PYTHONSTARTUP")
    if startup and not options.values["ignore_environment"]:
        main.outcome(lambda: startup_file(startup, namespace))
    return main.finish(*main.outcome(lambda: talk(namespace)))


def startup_file(path, namespace):
    with open(path, "rb") as file:
        main.run_source(file.read(), path, -1, namespace)


def talk(namespace):
    import readline
    import rlcompleter

    readline.set_completer(rlcompleter.Completer(namespace).complete)
    console = Console(namespace, filename="<stdin>")
    console.interact(banner="", exitmsg="")

"""The command line of `python3`, as CPython reads it."""

import sys

USAGE = "usage: {name} [option] ... [-c cmd | -m mod | file | -] [arg] ...\n"
HELP = """\
Options (and corresponding environment variables):
-b     : accepted
-B     : don't write .pyc files on import; also PYTHONDONTWRITEBYTECODE=x
-c cmd : program passed in as string (terminates option list)
-E     : ignore PYTHON* environment variables (such as PYTHONPATH)
-h     : print this help message and exit (also -? or --help)
-i     : inspect interactively after running script; also PYTHONINSPECT=x
-I     : isolate Python from the user's environment (implies -E, -P and -s)
-m mod : run library module as a script (terminates option list)
-O     : remove assert and __debug__-dependent statements; also PYTHONOPTIMIZE=x
-OO    : do -O changes and also discard docstrings
-P     : don't prepend a potentially unsafe path to sys.path; also PYTHONSAFEPATH
-q     : don't print version and copyright messages on interactive startup
-s     : don't add user site directory to sys.path
-S     : accepted
-u     : force the stdout and stderr streams to be unbuffered; also PYTHONUNBUFFERED=x
-v     : accepted
-V     : print the Python version number and exit (also --version)
-W arg : warning control; also PYTHONWARNINGS=arg
-x     : skip first line of source
-X opt : set implementation-specific option
file   : program read from script file
-      : program read from stdin (default; interactive mode if a tty)
arg ...: arguments passed to program in sys.argv[1:]
"""
FLAGS = (
    "debug inspect interactive optimize dont_write_bytecode no_user_site no_site ignore_environment verbose "
    "bytes_warning quiet hash_randomization isolated dev_mode utf8_mode warn_default_encoding safe_path "
    "int_max_str_digits"
).split()
_LETTERS = {
    "b": "bytes_warning", "B": "dont_write_bytecode", "d": "debug", "E": "ignore_environment", "i": "inspect",
    "I": "isolated", "O": "optimize", "P": "safe_path", "q": "quiet", "s": "no_user_site", "S": "no_site",
    "v": "verbose",
}  # fmt: skip


_FLAGS = sys.flags
"""The template's sys.flags. Others are made by its `__replace__`: C code relies on the type."""
_DEFAULTS = dict.fromkeys(FLAGS, 0) | {
    "hash_randomization": 1, "dev_mode": False, "utf8_mode": 1, "safe_path": False, "int_max_str_digits": 4300,
}  # fmt: skip
_PLAIN = _FLAGS.__replace__(**_DEFAULTS)


class Bad(Exception):
    """Exit before running anything: a message and the exit status."""

    def __init__(self, text, status=2, stream="stderr"):
        super().__init__(text)
        self.text, self.status, self.stream = text, status, stream


class Options:
    """A parsed command line."""

    def __init__(self, argv, environment):
        self.name = argv[0]
        self.values = _DEFAULTS.copy()
        self.command = self.module = self.file = None
        self.unbuffered = self.skip_first = False
        self.warnings = []
        self.xoptions = {}
        self.versions = 0
        self.read(argv[1:])
        if environment is not None and not self.values["ignore_environment"]:
            self.apply(environment)

    def read(self, words):
        words = list(words)
        while words:
            word = words[0]
            if word == "-" or not word.startswith("-"):
                break
            words.pop(0)
            if word == "--":
                break
            if word.startswith("--"):
                self.long(word, words)
                continue
            letters = word[1:]
            while letters:
                letter, letters = letters[0], letters[1:]
                if letter in "cmWX":
                    if not letters and not words:
                        raise Bad(f"Argument expected for the -{letter} option\n{self.usage()}")
                    value = letters or words.pop(0)
                    if letter in "cm":
                        self.command, self.module = (value, None) if letter == "c" else (None, value)
                        self.args = ["-" + letter, *words]
                        return self.version()
                    self.more(letter, value)
                    break
                self.letter(letter)
        self.version()
        self.file = words[0] if words and words[0] != "-" else None
        self.args = words or [""]

    def version(self):
        if self.versions:
            text = sys.version if self.versions > 1 else sys.version.split()[0]
            raise Bad(f"Python {text}\n", 0, "stdout")

    def usage(self):
        return USAGE.format(name=self.name) + f"Try '{self.name} -h' for more information.\n"

    def long(self, word, words):
        if word in ("--help", "--help-all", "--help-env", "--help-xoptions"):
            raise Bad(USAGE.format(name=self.name) + HELP, 0, "stdout")
        if word == "--version":
            self.versions += 1
        elif word == "--check-hash-based-pycs" and words:
            words.pop(0)
        else:
            raise Bad(f"unknown option {word}\n{self.usage()}")

    def letter(self, letter):
        if letter in "h?":
            raise Bad(USAGE.format(name=self.name) + HELP, 0, "stdout")
        if letter == "V":
            self.versions += 1
        elif letter == "u":
            self.unbuffered = True
        elif letter == "x":
            self.skip_first = True
        elif letter in "tR":
            pass
        elif letter in _LETTERS:
            name = _LETTERS[letter]
            self.values[name] = True if name == "safe_path" else self.values[name] + 1
            if letter == "i":
                self.values["interactive"] += 1
            if letter == "I":
                self.values |= {"isolated": 1, "ignore_environment": 1, "no_user_site": 1, "safe_path": True}
        else:
            raise Bad(f"Unknown option: -{letter}\n{self.usage()}")

    def more(self, letter, value):
        if letter == "W":
            self.warnings.append(value)
            return
        name, separator, setting = value.partition("=")
        self.xoptions[name] = setting if separator else True
        if name == "dev":
            self.values["dev_mode"] = True
            self.warnings.insert(0, "default")
        elif name == "int_max_str_digits" and setting.isdigit():
            self.values["int_max_str_digits"] = int(setting)

    def apply(self, environment):
        """Apply the PYTHON* variables."""
        for variable, name in (
            ("PYTHONDONTWRITEBYTECODE", "dont_write_bytecode"), ("PYTHONINSPECT", "inspect"),
            ("PYTHONOPTIMIZE", "optimize"), ("PYTHONVERBOSE", "verbose"), ("PYTHONNOUSERSITE", "no_user_site"),
        ):  # fmt: skip
            if value := environment.get(variable):
                level = int(value) if value.isdigit() else 1
                self.values[name] = max(self.values[name], level)
        if environment.get("PYTHONSAFEPATH"):
            self.values["safe_path"] = True
        if environment.get("PYTHONUNBUFFERED"):
            self.unbuffered = True
        if given := environment.get("PYTHONWARNINGS"):
            self.warnings = given.split(",") + self.warnings

    def flags(self):
        return _PLAIN if self.values == _DEFAULTS else _FLAGS.__replace__(**self.values)

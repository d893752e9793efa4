"""stty - change and print terminal line settings

Usage: stty [-F DEVICE] [SETTING]...
       stty [-F DEVICE] [-a|-g]

Settings: size, rows N, cols N, sane, raw, cooked, cbreak, echo and the other flags (with - to turn one off), and
characters: intr eof kill erase werase susp quit start stop lnext rprnt with ^X, undef or a character.
"""

from belljar.abi import termios as t
from belljar.abi.dataclass import replace
from belljar.abi.errors import SysError
from belljar.abi.flags import O_NONBLOCK, O_RDWR
from belljar.abi.termios import Termios, WinSize
from belljar.bin._kit import UsageError, utility
from belljar.bin._kit.quoting import quote
from belljar.kernel.process import Process

FLAGS = {
    "iflag": "ignbrk brkint ignpar parmrk inpck istrip inlcr igncr icrnl ixon ixoff iuclc ixany imaxbel iutf8".split(),
    "oflag": "opost olcuc ocrnl onlcr onocr onlret".split(),
    "lflag": "isig icanon iexten echo echoe echok echonl noflsh tostop echoprt echoctl echoke".split(),
}
CHARACTERS = {
    "intr": t.VINTR, "quit": t.VQUIT, "erase": t.VERASE, "kill": t.VKILL, "eof": t.VEOF, "eol": t.VEOL, "eol2": t.VEOL2,
    "start": t.VSTART, "stop": t.VSTOP, "susp": t.VSUSP, "rprnt": t.VREPRINT, "werase": t.VWERASE, "lnext": t.VLNEXT,
    "discard": t.VDISCARD,
}  # fmt: skip


@utility("stty")
def main(process: Process, args: list[str]) -> int:
    fd, device = 0, "'standard input'"
    if args[:1] in (["-F"], ["--file"]) and len(args) > 1:
        fd, device, args = process.open(args[1], O_RDWR | O_NONBLOCK), args[1], args[2:]
    try:
        settings, size = process.ioctl(fd, "termios"), process.ioctl(fd, "winsize")
    except SysError as error:
        raise UsageError(f"{device}: {error.reason}", hint=False) from None
    assert isinstance(settings, Termios)
    assert isinstance(size, WinSize)
    if args == ["-g"]:
        flags = [settings.iflag, settings.oflag, settings.cflag, settings.lflag, *settings.cc]
        process.print(":".join(f"{number:x}" for number in flags))
        return 0
    if not args or args in (["-a"], ["--all"]):
        for line in describe(settings, size, everything=bool(args)):
            process.print(line)
        return 0
    Changer(process, fd, settings, size).apply(args)
    return 0


def describe(settings: Termios, size: WinSize, *, everything: bool) -> list[str]:
    sane = Termios()
    head = f"speed {settings.ospeed} baud;"
    lines = [f"{head} rows {size.rows}; columns {size.columns}; line = 0;" if everything else f"{head} line = 0;"]
    shown = [
        f"{name} = {character(settings.cc[place])};"
        for name, place in CHARACTERS.items()
        if everything or settings.cc[place] != sane.cc[place]
    ]
    lines += wrap([*shown, "min = 1; time = 0;"] if everything else shown)
    for field, names in FLAGS.items():
        words = []
        for name in names:
            bit = getattr(t, name.upper())
            on = bool(getattr(settings, field) & bit)
            if everything or on != bool(getattr(sane, field) & bit):
                words.append(name if on else "-" + name)
        lines += wrap(words)
    return [line for line in lines if line]


def wrap(words: list[str], width: int = 80) -> list[str]:
    lines = [""]
    for word in words:
        if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def character(code: int) -> str:
    if code == 0:
        return "<undef>"
    return "^?" if code == 127 else f"^{chr(code + 64)}" if code < 32 else chr(code)


class Changer:
    def __init__(self, process: Process, fd: int, settings: Termios, size: WinSize) -> None:
        self._process = process
        self._fd = fd
        self._settings = settings
        self._size = size

    def apply(self, args: list[str]) -> None:
        queue = list(args)
        while queue:
            self._one(queue.pop(0), queue)
        self._process.ioctl(self._fd, "set_termios", self._settings)

    def _one(self, word: str, queue: list[str]) -> None:
        name, on = (word[1:], False) if word.startswith("-") else (word, True)
        field = next((field for field, names in FLAGS.items() if name in names), None)
        if word == "size":
            self._process.print(f"{self._size.rows} {self._size.columns}")
        elif word in ("rows", "cols", "columns") and queue and queue[0].isdecimal():
            number = int(queue.pop(0))
            self._size = self._size._replace(rows=number) if word == "rows" else self._size._replace(columns=number)
            self._process.ioctl(self._fd, "set_winsize", self._size)
        elif field is not None:
            bit = getattr(t, name.upper())
            old = getattr(self._settings, field)
            self._set(**{field: old | bit if on else old & ~bit})
        elif word in CHARACTERS and queue:
            cc = list(self._settings.cc)
            cc[CHARACTERS[word]] = parse_character(queue.pop(0))
            self._set(cc=tuple(cc))
        elif word in ("sane", "cooked", "-raw"):
            self._settings = Termios(cc=self._settings.cc) if word != "sane" else Termios()
        elif word in ("raw", "-cooked"):
            self._set(iflag=0, oflag=self._settings.oflag & ~t.OPOST, lflag=self._settings.lflag & ~(t.ISIG | t.ICANON))
        elif name == "cbreak":
            lflag = self._settings.lflag
            self._set(lflag=lflag & ~t.ICANON if on else lflag | t.ICANON)
        elif ":" in word:
            self._restore(word)
        elif word in ("min", "time", "ispeed", "ospeed", "line") and queue:
            queue.pop(0)
        else:
            raise UsageError(f"invalid argument {quote(word, self._process.env)}")

    def _set(self, **changes: object) -> None:
        self._settings = replace(self._settings, **changes)

    def _restore(self, word: str) -> None:
        """Apply settings in the form that -g prints."""
        try:
            numbers = [int(part, 16) for part in word.split(":")]
            iflag, oflag, cflag, lflag, *cc = numbers
            self._settings = Termios(iflag, oflag, cflag, lflag, tuple(cc))
        except ValueError:
            raise UsageError(f"invalid argument {quote(word, self._process.env)}") from None


def parse_character(text: str) -> int:
    if text in ("undef", "^-"):
        return 0
    if len(text) == 2 and text[0] == "^":
        return 127 if text[1] == "?" else ord(text[1].upper()) & 0x1F
    if len(text) == 1:
        return ord(text) & 0xFF
    if text.isdecimal() and int(text) < 256:
        return int(text)
    raise UsageError(f"invalid integer argument: '{text}'")

"""Records what real bash makes of vi's keys: `python -m tests.shell.record_vi` writes vi.jsonl, a pair a line.

All lines are typed in one shell, one after the other; `^[` stands for Escape. Of each, what it prints is kept.
"""

from __future__ import annotations

import json
import os
import pty
import re
import select
import time
from pathlib import Path

PROMPT = "P> "
ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|[\r\a]")
TABLE = Path(__file__).with_name("vi.jsonl")
LINES = """
echo plain
echo one two three^[bdwaX
echo one two three^[bbdwiX
echo one two three^[0wwcwTWO
echo one two three^[0wwceTWO
echo one-two three^[0wdwiX
echo one-two three^[0wdWiX
echo one-two three^[0wcWX
echo one two three^[bDaX
echo one two three^[bCX
echo one two three^[0wd$aX
echo one two three^[hhxiX
echo one two three^[hhXiX
echo one two three^[3XiX
echo one two three^[0w3xiX
echo one two three^[0w2sAB
echo one two three^[Secho new
echo one two three^[ccecho new
echo one two three^[ddiecho new
echo abc^[hrZ
echo abcdef^[hh2rZ
echo abcdef^[0wRXYZ
echo abcdef^[0wRXYZ^[aQ
echo abcDEF^[0w~~~~~~iX
echo abcdef^[0w3~aX
echo abcdef^[0wylp
echo abcdef^[0wyw$p
echo abcdef gh^[0wywP
echo abcdef^[0wxp
echo abcdef^[0w2xp
echo abcdef^[0wx3p
echo a,b,c,d^[0f,xiX
echo a,b,c,d^[0f,;xiX
echo a,b,c,d^[0f,;;,xiX
echo a,b,c,d^[02f,xiX
echo a,b,c,d^[F,xiX
echo a,b,c,d^[0t,xiX
echo a,b,c,d^[T,xiX
echo a,b,c,d^[0wdf,iX
echo a,b,c,d^[0wdt,iX
echo a,b,c,d^[dF,aX
echo a,b,c,d^[dT,aX
echo a,b,c,d^[0w2df,iX
echo a b c d^[02wdwiX
echo a b c d^[0w2dwiX
echo a b c d^[0wd2wiX
echo a b c d^[0w2cwX
echo a b c d^[0wdwu
echo a b c d^[0wdwdwu
echo a b c d^[0wdwdwuu
echo a b c d^[0wdwdwU
echo a b c d^[0wdw.
echo a b c d^[0wdw..
echo a b c d^[0wx.iX
echo a b c d^[0wcwQ^[w.
echo a b c d^[0wcwQ^[w.w.
echo a b c d^[0wiQ^[w.
echo a b c d^[0wrQw.
echo a b c d^[0w3x.aX
echo a b c d^[Aef^[0wi1
echo a b c d^[I: 1; ^[0wiX
echo abc^[0ie^[aX
echo (x) end^[hhhh0f(l%iX^[0ccecho ok
echo 'f(a[1]{b})' z^[0f(%iX
echo 'f(a[1]{b})' z^[0f(d%iX
echo 'f(a[1]{b})' z^[0f{%iX
echo 'f(a[1]{b})' z^[0f]%iX
echo abcdef^[8|iX
echo abcdef^[^iX^[0x
echo one two^[bbx0xiecho.
echo one two three^[0eeaX
echo one two three^[02eaX
echo one-two three^[0eeaX
echo one-two three^[0eEaX
echo one-two three^[BiX
echo one-two three^[BBiX
echo one-two three^[bbiX
echo one-two three^[bbbiX
echo one two three^[0wdeiX
echo one two three^[dbaX
echo one two three^[d0iecho X
echo one two three^[y0Pa; echo.
echo one two three^[hhhhyeP
echo one two three^[0wyyp
echo one two three^[0wYp
echo one two three^[0whhhlllliX
echo one two three^[0w5liX
echo one two three^[99liX
echo one two three^[99hiecho X
echo one two three^[d3hiX
echo one two three^[0wd3liX
echo one two three^[0wd iX
echo one two three^[0w3 iX
echo one two three^[k
echo one two three^[kka more
echo mmm^[kjj
echo one two three^[0wmaw`aiX
echo one two three^[0wmawwd`aiX
echo second^[/plain
 two
echo second^[/abc
nA Q
echo second^[/one
NA Q
echo tail^[_
echo 12345^[0w10lxiX
echo a bb ccc^[0wcfbX
echo a bb ccc^[0wctbX
echo a bb ccc^[c3bX
echo foo bar^[0wi1^[l.
echo foo bar^[0wa1^[.
echo foo bar^[0wA1^[.
echo foo bar^[0wi1^[2.
echo foo bar^[0w2iZ^[
echo foo bar^[0wdwiX^[u
echo foo bar^[aXYZ^[u
echo foo bar^[aXYZ 123^[u
echo foo bar^[hhiXYZ^[uaQ
echo foo bar^[0wcwXYZ^[u
echo foo  bar^[0wdw$p
echo foo  bar^[0wcwX
echo foo  bar^[0www
echo  foo^[0wi-
echo foo.bar/baz^[bcwX
echo foo.bar/baz^[BcwX
echo foo.bar/baz^[0wcwX
echo foo.bar/baz^[0wdwdwiX
echo x^[xiy
echo x^[Xiy
echo abc^[0wrxlrylrz
echo abc def^[bi\x17X
echo abc def ghi\x17X
echo abc/def ghi/jkl\x17X
echo abc\x7f\x7fX
echo abc def\x15echo X
echo abc^[\x7f\x7fiX
echo abc^[\x08iX
echo abc^[0w\x0biX
echo abc^[hiX\x14
echo 'it''s'^[0fsxiX
echo héllo^[0wllrEaX
echo aXb^[0wtbrY
echo a b^[0wdwdwdwiecho Z
echo abc^[dziX
echo abc^[0wfziX
echo q^[uiecho z
echo q^[uuiecho z
echo q^[aw^[uuiecho z
echo q^[0wxUiZ
echo a b^[bdwpiX
echo a b c^[bbd2wiX
echo foo bar^[0wcw^[iX
echo foo bar^[0wRab^[w.
echo foo bar^[0wdf z^[0x
echo foo bar^[2bix
echo foo_bar baz^[0wdwiX
echo foo bar^[xxxxu.
echo foo bar^[0w2x2.
echo foo bar^[0wsX^[w.
echo foo bar^[ylPPP
echo foo bar^[0wdlp.
echo foo bar^[0wpaX
echo foo bar^[0wdw\x1b[Dxi
echo foo bar\x1b[D\x1b[DX
echo foo bar^[\x1b[D\x1b[DiX
echo foo bar^[0wlcbX
echo foo bar^[^x0iX^[x
echo foo bar^[0wd^iecho.
echo foo bar^[|Decho z^[0iecho.
echo foo bar^[0wd;iX
echo foo bar^[0wfod;iX
echo foo boo^[0wfod;iX
echo foo boo^[0wfod,iX
echo foo bar baz^[0wyw2wP
echo foo bar baz^[0w2yw$p
echo foo bar^[0wy$$p
echo foo bar^[0wa X^[bbi-
echo foo bar^[0wdw:iX
echo foo bar^[0wZiX
echo foo bar^[0cbX
echo foo bar^[0c0X
echo foo bar^[0chX
echo foo bar^[0c^X
echo foo bar^[c$X
echo foo bar^[0cfzX
echo foo bar^[0c%X
echo foo bar^[0wctoX
echo foo bar^[0dhiX
echo foo bar^[0dbiX
echo foo bar^[clX
echo foo bar^[d$iX
echo foo bar^[dliX
"""


class Shell:
    """Real bash on a terminal."""

    def __init__(self) -> None:
        pid, self.fd = pty.fork()
        if pid == 0:
            env = {"PS1": PROMPT, "TERM": "xterm", "HISTFILE": "", "INPUTRC": "/dev/null", "LC_ALL": "C.UTF-8"}
            os.execvpe("bash", ["bash", "--norc", "-i"], env)  # noqa: S606
        self.wait()

    def wait(self) -> str:
        """What is shown until the next prompt."""
        seen = ""
        end = time.monotonic() + 10
        while not (seen.endswith(PROMPT) and "\n" in seen) and time.monotonic() < end:
            if not select.select([self.fd], [], [], 0.3)[0]:
                if seen.endswith(PROMPT):
                    break
                continue
            seen += ESCAPES.sub("", os.read(self.fd, 65536).decode())
        return seen

    def type(self, keys: str) -> str:
        os.write(self.fd, keys.encode() + b"\r")
        return self.wait().partition("\n")[2].removesuffix(PROMPT)


def cases() -> list[str]:
    """The keys of each case; a line that follows `/text` is what is typed after that is found."""
    text = LINES.strip("\n").replace("^[", "\x1b")
    text = re.sub(r"\\x(..)", lambda match: chr(int(match[1], 16)), text)
    return re.sub(r"(\x1b/[^\n]*)\n", "\\1\r", text).split("\n")


def main() -> None:
    shell = Shell()
    shell.type("set -o vi")
    with TABLE.open("w") as out:
        for keys in cases():
            print(json.dumps([keys, shell.type(keys)]), file=out)


if __name__ == "__main__":
    main()

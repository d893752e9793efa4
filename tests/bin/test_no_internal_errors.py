"""No command line ends a sandbox: an exception of our own, other than those the kernel expects, is a bug."""

from __future__ import annotations

import random
import shlex
import traceback
import zlib

import pytest

from belljar.abi.limits import Limits
from belljar.bin._kit.discovery import names
from belljar.kernel.process import Process
from belljar.worker.session import Result, Session
from tests.adapter import new_session, put, run_command

LIMITS = Limits(wall_seconds=1, cpu_seconds=2, output_bytes=1 << 20, file_bytes=16 << 20)
MANY = "9" * 5000
"""More digits than int() reads."""

FILES: dict[str, object] = {
    "text": b"b 2\na 1\na 1\n\n  x\ty\n",
    "bin": bytes(range(256)) * 8,
    "d": ("dir",),
    "j.json": b'{"a":[1,2.5,null],"z":-0}\n',
}

FAILED_ONCE = [
    "flock ²",
    "cal 13 ²",
    "tput -S ² 2",
    "ps -ef ²",
    "uniq 0>out",
    "b2sum -c text",
    "echo 513 nonl | b2sum -c",
    "strings -n 99999999999999 text",
    "pr --pages=-- text",
    "pr --pages=x:1 text",
    "tr a '[a*08]'",
    "echo a | sed L",
    "jq -c transpose j.json",
    "jq -nc '[nan]|transpose'",
    "jq -nc '[infinite,0.5]|transpose'",
    "fd 日本",
    "uvx $'\\xff'",
    "rg 日本 text",
    "grep -P 日 text",
    "grep -P '[^日]' text",
    r"grep -P '[^\x{100}]' text",
    "grep -P \udcff text",
    "grep --group-separator=\udcff -A1 b text",
    "rg --context-separator=\udcff b text",
    "script -c \udcff",
    "fd --max-results x",
    "sqlite3 <bin",
    r"printf 'select 1;\0;\xff\n' | sqlite3",
    "sqlite3 :memory: '.import bin t' '.schema \udcff'",
    f"grep -P 'a{{{MANY}}}' text",
    f"/bin/kill -l {MANY}",
    f"sort +{MANY} -{MANY} text",
    *(
        f"{command} {MANY} text"
        for command in (
            "b2sum -l", "bat -r", "cmp -i", "cut -b", "df -B", "dir -T", "du -d", "fd -d", "fd --max-results",
            "head -n", "kill -s", "nice -n", "numfmt --field", "numfmt --to-unit", "shred -n", "sort -k",
            "split -a", "tail -c", "timeout -s", "tput cup", "tree -L", "tree --filelimit", "truncate -s",
            "uniq -f", "xargs -n", "find -mtime", "find -size", "find -links", "find -maxdepth", "cal",
        )
    ),
    f"dd bs={MANY} if=text",
    f"pr --pages={MANY} text",
    f"flock {MANY}",
    *(
        template.replace("N", MANY)
        for template in (
            "xxd -l N text", "date -d @N", "date -d 'N days'", "date -d N-01-01", "join -1 N text text",
            "column -t -H N text", "column -l N -t text", "seq N N", "seq -f %Ng 1", "echo ~N", "SECONDS=N",
            "FUNCNEST=N; f() { :; }; f", "grep -P '(?(N)a|b)' text", r"grep -P '(a)\g{N}' text", "find -printf %Np",
            "csplit text N", "csplit text /a/+N", "csplit text 2 {N}", "csplit -n N text 2", "csplit -b %Nd text 2",
            "zstd -N text", "ps -p N", """jq -n '"a"|test("a{N}")'""", "yq -I N . j.json", "rg -r '$N' a text",
            "split -n l/N/N text", "od -t xN text", """hexdump -e 'N/N "%N.Nd"' text""", "stat -c %Nn text",
            "numfmt --format=%N.Nf 1", "printf 'NcN\\n< a\\n---\\n> b\\n' | patch text", "cksum -l N -a blake2b text",
            "printf 'BLAKE2b-N (x) = aa\\n' | cksum -c", "nproc --ignore=N",
        )
    ),
    "tail -n 99999999999999999999 text",
    "cksum -l 3 -a blake2b text",
    "seq -f %٣g 1",
    "seq 1 inf 5",
    "tr -c '' '[:alpha:]' <text",
    "iconv -f utf-16 -t utf-8 text",
    "ps --sort pid=",
    "csplit -b %٣d text 2",
    f"fd --changed-before={MANY}",
]  # fmt: skip

SWEEP = ["", "--help", "--version", "--bogus", "missing", "d", "<bin", "text >&-", "<&-"]


class Bugs:
    """A session, and what it reported as our own mistakes."""

    def __init__(self, limits: Limits = LIMITS) -> None:
        self.found: list[str] = []
        self.session: Session = new_session(None, limits)
        self.session.kernel.report_bug = self._report
        for name, value in FILES.items():
            put(self.session, f"/tmp/w/{name}", value)

    def _report(self, process: Process, error: BaseException) -> str:
        self.found.append(f"{process.argv!r:.200}: " + "".join(traceback.format_exception(error)[-2:]))
        return "bug"

    def run(self, script: str) -> Result:
        return run_command(self.session, ["bash", "-c", script], stdin=b"b 2\n\xff\n", cwd="/tmp/w")


@pytest.mark.parametrize("script", FAILED_ONCE, ids=lambda script: ascii(script)[1:41])
def test_what_failed_once(script: str) -> None:
    bugs = Bugs()
    bugs.run(script)
    assert bugs.found == []


GIT_WORDS = """
HEAD HEAD~1 b v2 nope f d d/g n - -- '' ² $'\\xff' -n -L -L²,3 -L, --abbrev=² --abbrev=0 --unified=² -U --stat=²
--stat=1 --format=% '--format=%<(²)%h' '--format=%C(' '--format=%(refname:strip=²)'
'--format=%(objectname:short=²)' --sort=² --sort= --count=² 'HEAD^{' HEAD^² HEAD~² HEAD@{²} @{-²} @{99} HEAD:
HEAD:² :f :/ a.. .. ... -m -m² -s -p -v --all --date=² --since=² '--author=(' '--grep=(' '-G(' -S --diff-filter=²
--batch --cacheinfo 1,2 --type=int --get a.b start good bad run reset push pop list branch -e '(' ')' --not --and
--word-diff --color=always --raw -z --check --no-index --relative=² -i -x --onto --graph --porcelain=v2 --continue
-L1,2:f -L:o:f '-L/o/,+1:f' '-L/(/,/²/:f' --abort
--skip --stdout -1 -² --mainline=² --fixup=HEAD --trailer=² -F /dev/null
""".split()
GIT_SETUP = """git init -q -b main r; cd r; git config user.name a; git config user.email a@b
printf 'one\\ntwo\\n' >f; mkdir d; echo x >d/g; git add .; git commit -qm first; git branch b
echo 3 >>f; git commit -qam second; git tag v1; git tag -a v2 -m x; echo z >>f; echo n >n
"""


def test_git_command_lines() -> None:
    """Any words after any of git's commands are answered."""
    from belljar.bin.git.run import COMMANDS

    chance = random.Random(5)
    bugs = Bugs()
    bugs.run(GIT_SETUP)
    for command in [*sorted(COMMANDS), "config", "clone", "ls-remote"]:
        lines = [command] + [f"{command} {' '.join(chance.sample(GIT_WORDS, count))}" for count in (1, 1, 2, 3)]
        bugs.run("cd r\n" + "\n".join(f"git {line} <../text >/dev/null 2>&1" for line in lines))
    assert bugs.found == []


OBJECTS = [
    b"", b"abc", b"tree 123\n", b"100644 f\0abc", b"-5 f\0" + b"\4" * 20, b"100644 \0" + b"\2" * 20, b"\xff" * 30,
    b"40000 d\0" + b"\1" * 20, b"100644 ../x\0" + b"\2" * 20, b"160000 s\0" + b"\3" * 20,
    b"object x\ntype commit\ntag t\n\n", b"object " + b"1" * 40 + b"\ntype what\ntag t\ntagger x\n\n",
    b"tree " + b"1" * 40 + b"\nauthor a\ncommitter b 5\n\nx",
    b"tree " + b"0" * 40 + b"\nparent zz\nauthor a <b> 1 +0\ncommitter a <b> 99999999999999999999 +9999\n\n",
]  # fmt: skip
"""What is no object, or refers to none."""
TEXTS = [
    b"", b"\xff\xfe", b"ref: ", b"ref: refs/heads/../../x\n", b"ref: HEAD\n", b"1" * 40 + b"\n", b"[a\n", b"x" * 50,
    b"DIRC\0\0\0\2\0\0\0\x05" + b"\0" * 40,
]  # fmt: skip
GIT_LOOKS = """status|log --all --graph --stat|log -p --all|show --all|branch -avv|diff HEAD|commit -qam z|stash list
stash show -p|stash pop|tag -n|describe --all|name-rev HEAD|blame f|fsck|ls-tree -r HEAD|ls-files -s|reflog|notes show
worktree list|for-each-ref --format='%(subject)%(author)%(upstream)'|archive HEAD|merge main|checkout main|rebase b
cherry-pick b|cat-file -p HEAD|rev-list --objects --all|shortlog HEAD|format-patch -1 --stdout|config -l|clone . ../e
fetch .|grep x|reset --hard|log --follow f|show-ref|write-tree|rev-parse HEAD v2 'HEAD^{tree}'""".replace(
    "\n", "|"
).split("|")


def test_damaged_repositories() -> None:
    """Whatever a file of a repository holds, git says what is wrong with it."""
    chance = random.Random(1)
    bugs = Bugs(Limits(wall_seconds=60, cpu_seconds=60))
    dates = "export GIT_AUTHOR_DATE='1700000000 +0000' GIT_COMMITTER_DATE='1700000000 +0000'\n"
    more = "git notes add -m n; git worktree add -q ../wt; git stash -q; git checkout -q b; git merge -q main"
    bugs.run(dates + GIT_SETUP + more)
    files = bugs.run("cd r; find .git -type f | sort").stdout.decode().split()
    assert len(files) > 20
    for _ in range(30):
        path = chance.choice(files)
        data = chance.choice(TEXTS)
        if "/objects/" in path:
            body = chance.choice(OBJECTS)
            kind = chance.choice([b"commit", b"tree", b"blob", b"tag", b"what"])
            data = zlib.compress(b"%s %d\0%s" % (kind, len(body), body))
        bugs.run("rm -rf c e; cp -a r c; chmod -R u+w c")
        put(bugs.session, f"/tmp/w/c/{path}", data)
        bugs.run("cd c\n" + "\n".join(f"git {line} >/dev/null 2>&1" for line in chance.sample(GIT_LOOKS, 10)))
    assert bugs.found == []


@pytest.mark.battery
def test_every_utility() -> None:
    found: list[str] = []
    for name in names():
        bugs = Bugs()
        for arguments in SWEEP:
            if name in ("sleep", "top", "watch", "yes") and arguments in ("", "<bin", "<&-", "text >&-"):
                continue  # they go on until a limit ends them
            result = bugs.run(f"{shlex.quote(name)} {arguments}")
            assert b"Traceback (most recent" not in result.stdout + result.stderr
        found += bugs.found
    assert found == []

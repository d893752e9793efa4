"""`python3` in a sandbox: the command line, streams, exit codes, tracebacks, files and processes."""

from __future__ import annotations

from typing import Unpack

import pytest

from belljar import Sandbox
from belljar.api.command import ExecOptions
from belljar.api.results import ExecResult


def python(box: Sandbox, code: str, *arguments: str, **options: Unpack[ExecOptions]) -> ExecResult:
    return box.exec(["python3", "-c", code, *arguments], **options)


def said(box: Sandbox, code: str) -> str:
    """What a program that must succeed prints."""
    result = python(box, code)
    assert (result.exit_code, result.stderr) == (0, ""), result.stderr
    return result.stdout


def test_where_a_program_comes_from(box: Sandbox) -> None:
    box.files.write("/workspace/p.py", "import sys\nprint(__name__, __file__, sys.argv, sys.path[0])\n")
    box.files.write("/workspace/lib/m.py", "import sys\nprint(__name__, sys.argv[1:], __package__ == '')\n")
    assert said(box, "print(1)") == "1\n"
    assert box.exec("python3 p.py a b").stdout == "__main__ /workspace/p.py ['p.py', 'a', 'b'] /workspace\n"
    assert box.exec("cd lib && python3 -m m x").stdout == "__main__ ['x'] True\n"
    assert box.exec("python3 -m unittest -h").stdout.startswith("usage: python3 -m unittest ")
    missing = box.exec("python3 -m nosuch")
    assert (missing.exit_code, missing.stderr) == (1, "/usr/bin/python3: No module named nosuch\n")
    assert box.exec("echo 'import sys; print(sys.argv)' | python3 - a").stdout == "['-', 'a']\n"
    assert box.exec("echo 'print(__name__)' | python3").stdout == "__main__\n"
    assert box.exec("mkdir z && echo 'print(7)' > z/__main__.py && python3 z").stdout == "7\n"
    assert box.exec("printf '#!/usr/bin/env python3\nprint(8)\n' > s && chmod +x s && ./s").stdout == "8\n"


def test_an_interpreter_whose_path_is_no_text(box: Sandbox) -> None:
    box.exec("mkdir $'/tmp/\\xff' && ln -s /usr/bin/python3 $'/tmp/\\xff/p'").check()
    assert box.exec("$'/tmp/\\xff/p' -c 'import sys; print(ascii(sys.executable))'").stdout == "'/tmp/\\udcff/p'\n"


def test_a_program_finds_nothing_of_the_rehearsal(box: Sandbox) -> None:
    """The process that it runs in has run another, as for a sandbox like most."""
    show = "import os; print(os.getcwd(), sorted(os.environ), os.popen('echo $HOME').read(), end='')"
    assert box.exec(["env", "-i", "python3", "-c", show], cwd="/").stdout == "/ [] \n"
    assert box.exec(["env", "-i", "HOME=/x", "python3", "-c", show], cwd="/tmp").stdout == "/tmp ['HOME'] /x\n"
    assert said(box, "import time; print(time.strftime('%Z'))") == "UTC\n"
    draw = "import random, os; print(random.random(), os.urandom(8).hex())"
    assert len({said(box, draw) for _ in range(6)}) == 6


def test_what_is_said_last(box: Sandbox) -> None:
    """It goes along with the program's end, and is as if it had been written before."""
    order = "import sys; print(1, end=''); sys.stderr.write('err'); sys.exit(3)"
    result = box.exec(["python3", "-c", order], merge_stderr=True)
    assert (result.stdout, result.exit_code) == ("1err", 3)
    full = box.exec("python3 -c 'print(1)' > /dev/full")
    assert (full.exit_code, full.stderr.splitlines()[1:]) == (120, ["OSError: [Errno 28] No space left on device"])
    assert box.exec("python3 -c 'print(1); 1 / 0' > /dev/full").exit_code == 1
    gone = "python3 -c 'import sys; sys.stdin.read(); print(1)' < f | true; echo ${PIPESTATUS[@]}"
    result = box.exec(f"mkfifo f; (sleep 0.5 > f) & {gone}")
    assert (result.stdout, result.stderr) == ("120 0\n", "")
    assert box.exec("python3 -c 'print(\"x\" * 3_000_000)' | wc -c").stdout == "3000001\n"
    assert box.exec("python3 -c 'print(1)' > f2; python3 -c 'print(2)' >> f2; cat f2").stdout == "1\n2\n"
    for last in ("sys.stdout.detach()", "sys.stdout.close()", "sys.stderr = None", "sys.stderr = sys.stdout"):
        assert said(box, f"import sys; print(1); {last}") == "1\n", last
    bye = "import atexit; atexit.register(lambda: print('bye')); print(1); raise SystemExit('no')"
    result = python(box, bye)
    assert (result.stdout, result.stderr, result.exit_code) == ("1\nbye\n", "no\n", 1)


def test_streams_that_are_closed_are_not_there(box: Sandbox) -> None:
    result = box.exec(
        "python3 -c 'print(1)' >&-; python3 -u -c 'import sys; print(sys.__stdout__, file=sys.stderr)' >&-"
    )
    assert (result.exit_code, result.stderr) == (0, "None\n")
    assert box.exec("python3 -c 'import sys; print(sys.stdin)' <&-").stdout == "None\n"
    assert box.exec("python3 -c '1 / 0' 2>&-").exit_code == 1


def test_processor_time_is_not_what_the_clock_shows(box: Sandbox) -> None:
    code = """
import os, time
began, clock = time.process_time_ns(), time.monotonic_ns()
time.sleep(1)
print((time.process_time_ns() - began) * 2 < time.monotonic_ns() - clock)
before = os.times().user
while time.process_time() < before + 0.01: pass
print(os.times().user >= before + 0.01, time.thread_time() > 0, len(os.getloadavg()))
"""
    assert said(box, code) == "True\nTrue True 3\n"


def test_a_pool_without_threads_does_its_work(box: Sandbox) -> None:
    code = """
import asyncio
from concurrent.futures import ThreadPoolExecutor, as_completed, wait
begun = []
def work(n, scale=1):
    if n == 3:
        raise ValueError(n)
    return n * n * scale
with ThreadPoolExecutor(4, initializer=begun.append, initargs=("begun",)) as pool:
    print(list(pool.map(work, range(3))), pool.submit(work, 2, scale=10).result(), begun)
    futures = [pool.submit(work, n) for n in (1, 3)]
    print(sorted(str(f.exception() or f.result()) for f in as_completed(futures)), len(wait(futures).done))
    print(pool.submit(lambda: pool.submit(work, 5).result()).result())
try:
    pool.submit(work, 1)
except RuntimeError as error:
    print(error)
async def main():
    loop = asyncio.get_running_loop()
    print(await asyncio.gather(asyncio.to_thread(work, 6), loop.run_in_executor(None, work, 7)))
    try:
        await asyncio.to_thread(work, 3)
    except ValueError as error:
        print(repr(error))
asyncio.run(main())
"""
    assert said(box, code).splitlines() == [
        "[0, 1, 4] 40 ['begun']",
        "['1', '3'] 2",
        "25",
        "cannot schedule new futures after shutdown",
        "[36, 49]",
        "ValueError(3)",
    ]


def test_the_programs_own_objects_end_with_it(box: Sandbox) -> None:
    """Whether or not it removes modules that were there before it."""
    box.files.write("/workspace/ends.py", "class Ends:\n    def __del__(self): print('gone')\nmine = Ends()\n")
    removals = ("pass", "del sys.modules['json']", "del sys.modules['json']; import json", "sys.modules.popitem()")
    for removal in removals:
        assert said(box, f"import sys\n{removal}\nimport ends") == "gone\n", removal


def test_the_command_line(box: Sandbox) -> None:
    assert box.exec("python3 -V").stdout.startswith("Python 3.15")
    assert box.exec("python --version").stdout.startswith("Python 3.15")
    bad = box.exec("python3 -z")
    assert bad.exit_code == 2
    assert bad.stderr.startswith("Unknown option: -z\nusage: python3 ")
    missing = box.exec("python3 none.py")
    assert missing.exit_code == 2
    assert missing.stderr == "python3: can't open file '/workspace/none.py': [Errno 2] No such file or directory\n"
    flags = "import sys; f = sys.flags; print(f.optimize, f.isolated, f.dont_write_bytecode, f.quiet, __debug__)"
    assert box.exec(["python3", "-OBq", "-c", flags]).stdout == "1 0 1 1 False\n"
    assert box.exec(["python3", "-IuEsS", "-X", "dev", "-c", flags]).stdout == "0 1 0 0 True\n"
    warning = "import warnings; warnings.warn('careful')"
    assert box.exec(["python3", "-W", "error", "-c", warning]).exit_code == 1
    assert box.exec("echo 'print(5)' > h.py; PYTHONPATH=/workspace python3 -c 'import h'").stdout == "5\n"
    assert box.exec("echo 'assert 0; print(6)' > i.py; python3 -O -c 'import i'").stdout == "6\n"


def test_how_it_ends(box: Sandbox) -> None:
    assert python(box, "import sys; sys.exit(3)").exit_code == 3
    told = python(box, "import sys; sys.exit('told')")
    assert (told.exit_code, told.stderr) == (1, "told\n")
    assert python(box, "import os; os._exit(4)").exit_code == 4
    assert said(box, "import atexit; atexit.register(print, 'last'); print('first')") == "first\nlast\n"
    assert said(box, "class A:\n  def __del__(self): print('gone')\na = A()") == "gone\n"
    python(box, "f = open('/workspace/left', 'w'); f.write('open')").check()
    assert box.files.read("/workspace/left") == "open"


def test_tracebacks(box: Sandbox) -> None:
    box.files.write("/workspace/t.py", "def f(x):\n    return 1 / x\n\n\nf(0)\n")
    result = box.exec("python3 t.py")
    assert result.exit_code == 1
    assert result.stderr == (
        "Traceback (most recent call last):\n"
        '  File "/workspace/t.py", line 5, in <module>\n'
        "    f(0)\n"
        "    ~^^^\n"
        '  File "/workspace/t.py", line 2, in f\n'
        "    return 1 / x\n"
        "           ~~^~~\n"
        "ZeroDivisionError: division by zero\n"
    )
    syntax = python(box, "x = = 1")
    assert syntax.stderr == '  File "<string>", line 1\n    x = = 1\n        ^\nSyntaxError: invalid syntax\n'
    missing = python(box, "open('/no/such')")
    assert missing.stderr.endswith("FileNotFoundError: [Errno 2] No such file or directory: '/no/such'\n")
    chained = python(box, "try:\n  1/0\nexcept Exception as e:\n  raise KeyError('k') from e")
    assert "The above exception was the direct cause" in chained.stderr
    assert "_belljar" not in chained.stderr


def test_errors_are_the_right_ones(box: Sandbox) -> None:
    code = """
import errno, os
for body in (
    lambda: open('/no'), lambda: os.mkdir('/tmp'), lambda: os.listdir('/etc/passwd'), lambda: os.rmdir('/usr/bin'),
    lambda: open('/tmp'), lambda: os.rename('/no', '/tmp/x'), lambda: os.readlink('/etc/passwd'),
):
    try:
        body()
    except OSError as error:
        print(type(error).__name__, error, error.errno == getattr(errno, errno.errorcode[error.errno]))
"""
    assert said(box, code) == (
        "FileNotFoundError [Errno 2] No such file or directory: '/no' True\n"
        "FileExistsError [Errno 17] File exists: '/tmp' True\n"
        "NotADirectoryError [Errno 20] Not a directory: '/etc/passwd' True\n"
        "PermissionError [Errno 13] Permission denied: '/usr/bin' True\n"
        "IsADirectoryError [Errno 21] Is a directory: '/tmp' True\n"
        "FileNotFoundError [Errno 2] No such file or directory: '/no' -> '/tmp/x' True\n"
        "OSError [Errno 22] Invalid argument: '/etc/passwd' True\n"
    )


def test_files(box: Sandbox) -> None:
    code = """
import os, pathlib, shutil, stat, tempfile
p = pathlib.Path('d/e'); p.mkdir(parents=True)
(p / 'x').write_text('hello'); os.chmod(p / 'x', 0o640)
print(stat.filemode(os.stat(p / 'x').st_mode), os.stat(p / 'x').st_uid == os.getuid())
os.symlink('x', p / 'l'); print(os.readlink(p / 'l'), os.path.islink(p / 'l'), os.path.realpath(p / 'l'))
os.utime(p / 'x', (1, 2)); print(os.stat(p / 'x').st_mtime, os.path.getsize(p / 'l'))
shutil.copytree('d', 'c'); shutil.move('c/e/x', 'y'); shutil.rmtree('d')
print(sorted((r, sorted(ds), sorted(fs)) for r, ds, fs in os.walk('.')))
with tempfile.NamedTemporaryFile('w+') as f:
    f.write('abc'); f.flush(); f.seek(1); print(f.read(), oct(os.stat(f.name).st_mode))
with open('y', 'r+b') as f:
    f.seek(0, 2); f.write(b'!'); f.seek(-3, 1); print(f.read(), f.tell())
with open('y', 'a') as f:
    f.write('?')
print(open('y').read(), os.access('y', os.W_OK), os.access('/etc/passwd', os.W_OK), oct(os.umask(0o22)))
os.chdir('/tmp'); print(os.getcwd(), os.listdir('/workspace') != [])
"""
    assert said(box, code) == (
        "-rw-r----- True\nx True /workspace/d/e/x\n2.0 5\n"
        "[('.', ['c'], ['y']), ('./c', ['e'], []), ('./c/e', [], ['l'])]\n"
        "bc 0o100600\nb'lo!' 6\nhello!? True False 0o22\n/tmp True\n"
    )


def test_what_functions_refuse(box: Sandbox) -> None:
    code = """
import os, subprocess
for attempt in (
    lambda: os.mkdir("a\\0b"),
    lambda: os.stat(1.5),
    lambda: os.stat(0, follow_symlinks=False),
    lambda: os.chown("/tmp", 1.0, 1),
    lambda: os.utime("/tmp", [1, 2]),
    lambda: subprocess.run(["true\\0"]),
    lambda: subprocess.run(["true"], env={"a": "b\\0"}),
    lambda: os.execv("/bin/true", []),
    lambda: os.putenv("a=b", "c"),
):
    try:
        attempt()
        print("done")
    except (TypeError, ValueError) as error:
        print(type(error).__name__)
"""
    assert said(box, code).split() == (
        "ValueError TypeError ValueError TypeError TypeError ValueError ValueError ValueError ValueError".split()
    )


def test_accounts_environment_and_limits(box: Sandbox) -> None:
    code = """
    import os, pwd, grp, subprocess, pathlib, sys, posix
    print(pwd.getpwuid(os.getuid()).pw_name, grp.getgrgid(0).gr_name, pathlib.Path("/etc").owner())
    os.putenv("SET", "1")
    print(subprocess.run("echo $SET", shell=True, capture_output=True, text=True).stdout.strip(), os.environ.get("SET"))
    subprocess.run(["touch", "made"], umask=0o077)
    print(oct(os.stat("made").st_mode & 0o777), oct(os.umask(0o022)))
    print(os.spawnlp(os.P_WAIT, "sh", "sh", "-c", "exit 3"), os.sysconf("SC_OPEN_MAX") > 100)
    print(posix.stat is os.stat, sum(1 for _ in os.scandir(os.open("/etc", os.O_RDONLY))) > 3)
    """
    assert said(box, code) == "agent root root\n1 None\n0o600 0o22\n3 True\nTrue True\n"


def test_input_and_output(box: Sandbox) -> None:
    assert box.exec(["python3", "-c", "print(input('? ') * 2)"], stdin="ab\n").stdout == "? abab\n"
    ended = box.exec(["python3", "-c", "input()"], stdin="")
    assert ended.stderr.endswith("EOFError: EOF when reading a line\n")
    assert box.exec("python3 -c 'print(1); import os; os.write(1, b\"2\\n\")' | cat").stdout == "2\n1\n"
    assert box.exec("python3 -uc 'print(1); import os; os.write(1, b\"2\\n\")' | cat").stdout == "1\n2\n"
    assert box.exec("seq 100000 | python3 -c 'import sys; print(sum(map(int, sys.stdin)))'").stdout == "5000050000\n"
    assert len(said(box, "print('x' * 5_000_000)")) == 5_000_001
    broken = box.exec("python3 -c 'while True: print(1)' | head -1")
    assert broken.stdout == "1\n"


def test_processes(box: Sandbox) -> None:
    code = """
import os, subprocess, sys
print(subprocess.run(['echo', 'hi'], capture_output=True, text=True).stdout, end='')
print(subprocess.check_output('seq 3 | tac', shell=True))
p = subprocess.Popen(['cat'], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
print(p.communicate('abc'), p.returncode)
try: subprocess.run(['false'], check=True)
except subprocess.CalledProcessError as e: print(e)
try: subprocess.run(['sleep', '50'], timeout=0.1)
except subprocess.TimeoutExpired as e: print(e)
try: subprocess.run(['nosuch'])
except FileNotFoundError as e: print(e)
print(os.system('exit 3') >> 8, os.popen('echo x').read().strip())
sys.stdout.flush()
with open('out', 'w') as f:
    f.write('a\\n'); f.flush()
    subprocess.run(['sh', '-c', 'echo b; echo c >&2'], stdout=f, stderr=subprocess.STDOUT)
    f.write('d\\n')
print(open('out').read().split())
e = {'V': '5', 'PATH': '/usr/bin'}
print(subprocess.run('pwd; echo $V', shell=True, cwd='/tmp', env=e, capture_output=True).stdout)
print(subprocess.run([sys.executable, '-c', 'print(6 * 7)'], capture_output=True, text=True).stdout, end='')
k = subprocess.Popen(['sleep', '100']); k.terminate(); print(k.wait(), os.getpid() > 1, os.getppid() > 0)
"""
    assert said(box, code) == (
        "hi\nb'3\\n2\\n1\\n'\n('abc', None) 0\nCommand '['false']' returned non-zero exit status 1.\n"
        "Command '['sleep', '50']' timed out after 0.1 seconds\n[Errno 2] No such file or directory: 'nosuch'\n"
        "3 x\n['a', 'b', 'c', 'd']\nb'/tmp\\n5\\n'\n42\n-15 True True\n"
    )


def test_sqlite_on_sandbox_files(box: Sandbox) -> None:
    code = """
import sqlite3
for n in (1, 2):
    with sqlite3.connect('t.db') as c:
        c.execute('create table if not exists t(a)'); c.execute('insert into t values(?)', (n,))
print(sqlite3.connect('t.db').execute('select sum(a) from t').fetchall())
"""
    assert said(box, code) == "[(3,)]\n"
    assert box.exec("sqlite3 t.db 'select count(*) from t'").stdout == "2\n"


def test_what_is_not_there_says_so(box: Sandbox) -> None:
    started = python(box, "import threading; threading.Thread(target=print).start()").stderr
    assert "RuntimeError: can't start new thread: WebAssembly has none here." in started
    assert "asyncio" in started
    assert "Error" in python(box, "import socket; socket.create_connection(('1.1.1.1', 80), 1)").stderr
    assert "unavailable" in python(box, "import ctypes; ctypes.CDLL(None)").stderr
    assert python(box, "import os; os.fork()").exit_code == 1


def test_asyncio(box: Sandbox) -> None:
    code = """
import asyncio
async def step(n):
    await asyncio.sleep(0.01 * n)
    return n
async def main():
    print(await asyncio.gather(*(step(n) for n in (3, 1, 2))))
    process = await asyncio.create_subprocess_exec('echo', 'child', stdout=asyncio.subprocess.PIPE)
    print((await process.communicate())[0], process.returncode)
    try:
        await asyncio.wait_for(asyncio.sleep(100), 0.05)
    except TimeoutError:
        print('late')
asyncio.run(main())
"""
    assert said(box, code) == "[3, 1, 2]\nb'child\\n' 0\nlate\n"


def test_programs_share_nothing(box: Sandbox) -> None:
    random = [said(box, "import random, uuid; print(random.random(), uuid.uuid4())") for _ in range(3)]
    assert len(set(random)) == 3
    python(box, "import builtins, json; builtins.leak = json.leak = 1").check()
    assert (
        said(box, "import builtins, json; print(hasattr(builtins, 'leak'), hasattr(json, 'leak'))") == "False False\n"
    )


@pytest.mark.parametrize("kind", ["numpy", "pandas"])
def test_data_libraries(box: Sandbox, kind: str) -> None:
    code = {
        "numpy": "import numpy as np; a = np.eye(300); print(np.arange(6).reshape(2, 3) @ np.ones(3), (a @ a).sum())",
        "pandas": "import pandas as pd; print(pd.DataFrame({'a': [1, 1], 'b': [1, 2]}).groupby('a').b.sum().tolist())",
    }[kind]
    assert said(box, code) == {"numpy": "[ 3. 12.] 300.0\n", "pandas": "[3]\n"}[kind]


def test_a_figure_becomes_a_file(box: Sandbox) -> None:
    python(box, "import matplotlib.pyplot as plt; plt.plot([1, 3, 2]); plt.title('t'); plt.savefig('f.png')").check()
    assert box.files.read_bytes("/workspace/f.png").startswith(b"\x89PNG")


def test_what_the_template_holds_is_immortal_and_nothing_of_its_practice_is_left(box: Sandbox) -> None:
    code = """
import builtins, gc, json, sys
from _belljar import tools
print(sys._is_immortal(json.loads), sys._is_immortal(json.loads.__code__), sys._is_immortal(object()))
print(hasattr(builtins, "display"), list(tools.bound), gc.get_freeze_count() > 1000, sorted(vars()))
"""
    assert said(box, code) == (
        "True True False\nFalse [] True ['__builtins__', '__doc__', '__loader__', '__name__', '__package__', "
        "'__spec__', 'builtins', 'gc', 'json', 'sys', 'tools']\n"
    )


def test_what_is_told_of_the_directory_is_true_once(box: Sandbox) -> None:
    box.exec("mkdir -p here/sub; touch here/a; chmod 751 here").check()
    program = """
import os
print(oct(os.stat(".").st_mode), os.getcwd())
os.chmod(".", 0o700)
print(oct(os.stat(".").st_mode))
"""
    result = box.exec(["python3", "-c", program], cwd="/workspace/here")
    assert (result.stdout, result.stderr) == ("0o40751 /workspace/here\n0o40700\n", "")
    gone = box.exec("mkdir gone; cd gone; rmdir ../gone; python3 -c 'print(1)'")
    assert (gone.stdout, gone.stderr) == ("1\n", "")


def test_flags_are_pythons_own(box: Sandbox) -> None:
    """What C code changes in them is changed in the right place, and nothing beside it."""
    code = (
        "import sys; real = type(sys.flags); assert len(sys.flags) == real.n_sequence_fields == 18\n"
        "for digits in (5000, 640, 0, 4300) * 50:\n"
        "    sys.set_int_max_str_digits(digits)\n"
        "    assert sys.flags.int_max_str_digits == sys.get_int_max_str_digits() == digits\n"
        "assert type(sys.flags) is real; print(sys.flags.optimize, sys.flags.gil, sys.flags.lazy_imports)"
    )
    for _ in range(3):
        result = box.exec(["python3", "-O", "-c", code])
        assert (result.stdout, result.stderr) == ("1 1 -1\n", "")


def test_a_tls_context_can_be_a_subclass_that_knows_better(box: Sandbox) -> None:
    """As that of truststore, which asks the one it wraps."""
    code = (
        "import ssl\n"
        "class Context(ssl.SSLContext):\n"
        "    security_level = property(lambda self: 1)\n"
        "print(Context(ssl.PROTOCOL_TLS_CLIENT).security_level, ssl.create_default_context().security_level)"
    )
    assert box.exec(["python3", "-c", code]).stdout == "1 2\n"


def test_an_edit_within_the_same_second_counts(box: Sandbox) -> None:
    for text, expected in (("a + b", "5\n"), ("a - b", "-1\n"), ("a * b", "6\n")):
        box.files.write("sums.py", f"def f(a, b):\n    return {text}\n")
        result = box.exec("python3 -c 'import sums; print(sums.f(2, 3))'")
        assert result.stdout == expected, result.stderr
    box.exec("touch -d '1 hour ago' sums.py; python3 -c 'import sums'").check()
    assert "sums." in box.exec("ls __pycache__").stdout, "what does not change is compiled once"

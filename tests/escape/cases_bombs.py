"""BOMB: attempts to use more than a sandbox has."""

# ruff: noqa: E501 - a case is a line
import bz2
import gzip
import io
import lzma
import tarfile

from tests.escape.case import Case

MIB = 1 << 20
QUICK = {"cpu_seconds": 0.5}


def nested_tar(levels: int) -> bytes:
    data = b"x" * 1000
    for level in range(levels):
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
            info = tarfile.TarInfo(f"level{level}.tgz")
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
        data = buffer.getvalue()
    return data


ZEROS = bytes(64 * MIB)

CASES = [
    Case("25a the fork bomb", "L", ":(){ :|:& };:", limit="processes|wall_seconds|cpu_seconds", limits={"wall_seconds": 5}),
    Case("25b children that stay", "L", "for i in {1..1000}; do sleep 100 & done; wait", limit="processes"),
    Case("25c subshells in subshells", "L", "f() { (f); }; f", limit="processes|depth"),
    Case("26a a function that calls itself", "L", "f(){ f; };f", limit="depth"),
    Case("26b two that call each other", "L", "f(){ g; }; g(){ f; }; f", limit="depth"),
    Case("26c a trap that sets itself off", "L", "trap 'kill -USR1 $$' USR1; kill -USR1 $$; while :; do :; done", limit="cpu_seconds|depth", limits=QUICK),
    Case("26d an alias of itself", "S", "shopt -s expand_aliases\nalias e='e '\nalias e=echo\ne ok", out="ok\n"),
    Case("26e a script that sources itself", "L", "echo '. ./s' > s; . ./s", limit="depth"),
    Case("26f a script that runs itself", "L", "echo './s' > s; chmod +x s; ./s", limit="depth|processes"),
    Case("26g eval in eval", "L", "x='eval \"$x\"'; eval \"$x\"", limit="depth"),
    Case("26h substitution in substitution", "L", "f(){ echo $(f); }; f", limit="depth|processes"),
    Case("26i a DEBUG trap with a function", "L", "f(){ g; }; g(){ f; }; set -T; trap f DEBUG; :", limit="depth"),
    Case("26j PROMPT_COMMAND and command_not_found", "L", "command_not_found_handle(){ nope; }; nope", limit="depth|processes"),
    Case("27a while", "L", "while :; do :; done", limit="cpu_seconds", limits=QUICK),
    Case("27b until", "L", "until false; do :; done", limit="cpu_seconds", limits=QUICK),
    Case("27c for", "L", "for ((;;)); do :; done", limit="cpu_seconds", limits=QUICK),
    Case("27d steps", "L", "for ((;;)); do :; done", limit="steps", limits={"steps": 100_000}),
    Case("27e in the background", "L", "while :; do :; done & while :; do :; done & wait", limit="cpu_seconds", limits=QUICK),
    Case("28a a long range", "L", "echo {1..999999999}", limit="expansion_bytes|steps|cpu_seconds|memory_bytes", seconds=10),
    Case("28b letters", "L", "echo {a..z}{a..z}{a..z}{a..z}{a..z}{a..z}", limit="expansion_bytes|cpu_seconds"),
    Case("28c nested", "L", "echo " + "{a,b" * 1 + "".join("{a,b}" for _ in range(40)) + "}", limit="expansion_bytes|cpu_seconds"),
    Case("28d a range by huge numbers", "L", "echo {1..9223372036854775807}", limit="expansion_bytes|cpu_seconds|memory_bytes"),
    Case("29a doubling", "L", "x=a; for i in {1..40}; do x=$x$x; done", limit="expansion_bytes|memory_bytes"),
    Case("29b doubling by +=", "L", "x=aaaaaaaa; for i in {1..40}; do x+=$x; done", limit="expansion_bytes|memory_bytes"),
    Case("29c replacing", "L", "printf -v x '%01000000d' 0; printf -v b '%01000d' 0; y=${x//0/$b}", limit="expansion_bytes|memory_bytes"),
    Case("29d printf width", "L", "printf '%0999999999d' 1", limit="expansion_bytes|output_bytes|memory_bytes"),
    Case("29e printf -v", "L", "printf -v x '%999999999s' y", limit="expansion_bytes|memory_bytes"),
    Case("29f printf by star", "L", "/usr/bin/printf '%*d' 2000000000 1", limit="expansion_bytes|output_bytes|memory_bytes"),
    Case("29g awk's printf", "L", "awk 'BEGIN { printf \"%0999999999d\", 1 }'", limit="maybe"),
    Case("29h awk doubling", "L", "awk 'BEGIN { x = \"a\"; while (1) x = x x }'", limit="expansion_bytes|memory_bytes|cpu_seconds"),
    Case("29i sed doubling", "L", "echo a | sed ':a;s/.*/&&/;ba'", limit="expansion_bytes|memory_bytes|cpu_seconds", dies=True),
    Case("29j jq repeating", "L", "jq -n '\"a\" * 9999999999'", limit="maybe"),
    Case("29k arguments", "L", "x=$(head -c 30000000 /dev/zero | tr '\\0' a); for i in {1..30}; do set -- \"$@\" \"$x\"; done; echo \"$*\"", limit="expansion_bytes|memory_bytes|output_bytes"),
    Case("30a a far index", "S", "a[999999999]=1; echo ${#a[@]}", out="1\n"),
    Case("30b a million entries", "S", "a=({1..1000000}); echo ${#a[@]}", out="1000000\n", limits={"cpu_seconds": 30, "wall_seconds": 60}, slow=True),
    Case("30c variables", "S", "for ((i=0; i<50000; i++)); do declare v$i=$i; done; echo $v49999", out="49999\n", limits={"cpu_seconds": 30, "wall_seconds": 60}),
    Case("30d functions", "S", "for ((i=0; i<5000; i++)); do eval \"f$i() { :; }\"; done; declare -F | wc -l", out="5000\n", limits={"cpu_seconds": 30, "wall_seconds": 60}),
    Case("30e an index beyond numbers", "B", "a[99999999999999999999]=1; a[-1]=; b[-1]=2", says="bad array subscript"),
    Case("31a yes", "L", "yes", limit="output_bytes"),
    Case("31b zeros", "L", "cat /dev/zero", limit="output_bytes"),
    Case("31c seq", "L", "seq 1 1000000000000", limit="output_bytes"),
    Case("31d yes | head", "S", "yes | head -1", out="y\n", seconds=2),
    Case("31e zeros | head", "S", "cat /dev/zero | head -c 1 | od -An -tx1", out=" 00\n", seconds=2),
    Case("31f seq | head", "S", "seq 1 1000000000000 | head -1", out="1\n", seconds=2),
    Case("31g yes into nothing", "L", "yes > /dev/null", limit="cpu_seconds", limits=QUICK),
    Case("32a stderr", "L", "yes >&2", limit="output_bytes"),
    Case("32b both at once", "L", "yes & yes >&2 & wait", limit="output_bytes"),
    Case("32c a line without end", "L", "tr '\\0' a < /dev/zero", limit="output_bytes"),
    Case("33a a sparse file of 8E", "S", "truncate -s 8E f || truncate -s 4E f; ls -l f | wc -l; head -c 3 f | od -An -tx1; tail -c 2 f | od -An -tx1; rm f", out="1\n 00 00 00\n 00 00\n"),
    Case("33b cat of it", "L", "truncate -s 4E f; cat f", limit="output_bytes"),
    Case("33c seek", "S", "dd if=/dev/zero of=f bs=1 count=1 seek=1T 2>/dev/null; stat -c %s f", out="1099511627777\n"),
    Case("33d sort of it", "L", "truncate -s 1T f; sort f", limit="maybe", limits={"cpu_seconds": 5, "memory_bytes": 256 * MIB}, dies=True),
    Case("33e tar of it", "L", "truncate -s 1T f; tar cf g f", limit="maybe", limits={"cpu_seconds": 2, "file_bytes": 64 * MIB}),
    Case("33f $(<) of it", "L", "truncate -s 1T f; x=$(<f)", limit="maybe", limits={"memory_bytes": 256 * MIB, "cpu_seconds": 4}, dies=True),
    Case("33g wc and md5sum of it", "L", "truncate -s 1T f; wc f; md5sum f", limit="cpu_seconds", limits=QUICK),
    Case("33h holes are not charged to the host", "S", "for i in 1 2 3 4 5 6 7 8; do truncate -s 100G f$i; done; ls | wc -l", out="8\n"),
    Case("34a sort without end", "L", "head -c 99999999999999 /dev/zero | sort", limit="memory_bytes|cpu_seconds|expansion_bytes", limits={"memory_bytes": 256 * MIB}, dies=True),
    Case("34b tac without end", "L", "yes | tac", limit="memory_bytes|cpu_seconds|expansion_bytes", limits={"memory_bytes": 256 * MIB}, dies=True),
    Case("34c a variable without end", "L", "x=$(yes)", limit="expansion_bytes|memory_bytes|cpu_seconds", limits={"memory_bytes": 256 * MIB}, dies=True),
    Case("34d mapfile without end", "L", "mapfile a < <(yes)", limit="memory_bytes|cpu_seconds|expansion_bytes", limits={"memory_bytes": 256 * MIB, "cpu_seconds": 8}, dies=True),
    Case("34e uniq, tail, wc", "S", "yes | head -n 200000 | uniq -c; yes | head -n 200000 | tail -n 1; yes | head -n 100000 | wc -l", out=" 200000 y\ny\n100000\n"),
    Case("34f awk array without end", "L", "awk 'BEGIN { while (1) a[i++] = i }'", limit="memory_bytes|cpu_seconds", limits={"memory_bytes": 128 * MIB, "cpu_seconds": 1}, dies=True),
    Case("34g a pipe nobody reads", "L", "yes | sleep 100", limit="wall_seconds", limits={"wall_seconds": 0.5}),
    Case("35a grep -E", "S", f"echo {'a' * 60}! | grep -cE '^(a+)+$'; true", out="0\n", seconds=4),
    Case("35b grep -E, two ways", "S", f"echo {'a' * 60}! | grep -cE '^(a|aa)+$'; true", out="0\n", seconds=4),
    Case("35c sed -E", "S", f"echo {'a' * 60}! | sed -nE '/^(a+)+$/p'", out="", seconds=4),
    Case("35d awk", "S", f"echo {'a' * 60}! | awk '/^(a+)+$/'", out="", seconds=4),
    Case("35e [[ =~ ]]", "S", f"[[ {'a' * 60}! =~ ^(a+)+$ ]]; echo $?", out="1\n", seconds=4),
    Case("35f jq test", "L", f"echo '\"{'a' * 60}!\"' | jq 'test(\"^(a+)+$\")'", limit="maybe", limits={"cpu_seconds": 1}, seconds=8),
    Case("35g back-references", "L", f"echo {'a' * 60}! | grep -E '^(a*)*\\1$'", limit="maybe", limits={"cpu_seconds": 1}, seconds=8),
    Case("35h repeats of repeats", "L", "echo aaa | grep -E '((a{1,255}){1,255}){1,255}'", limit="maybe", limits={"cpu_seconds": 3}, seconds=8),
    Case("35i grep -P", "L", f"echo {'a' * 60}! | grep -P '^(a+)+$'", limit="maybe", limits={"cpu_seconds": 1}, seconds=8),
    Case("35j rg", "L", f"echo {'a' * 60}! | rg '^(a+)+$'", limit="maybe", limits={"cpu_seconds": 1}, seconds=8),
    Case("35k sed with back-references", "L", f"echo {'ab' * 40} | sed 's/\\(a*b*\\)*\\1\\1x//'", limit="maybe", limits={"cpu_seconds": 1}, seconds=8),
    Case("36a extglob", "L", f"shopt -s extglob; [[ {'a' * 60}! == +(a|aa) ]]", limit="maybe", limits={"cpu_seconds": 1}, seconds=8),
    Case("36b stars", "S", f"[[ {'a' * 200} == *a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b ]]; echo $?", out="1\n", seconds=4),
    Case("36c globstars", "L", "shopt -s globstar; mkdir -p a/b/c/d/e/f/g; echo **/**/**/**/**/**/** | wc -c", limit="maybe", limits={"cpu_seconds": 4}),
    Case("36d the whole tree, deep", "L", "echo /*/*/*/* /*/*/../*/*/../* > /dev/null", limit="maybe", limits={"cpu_seconds": 4}),
    Case("36e ${x//} with extglob", "L", f"shopt -s extglob; x={'a' * 300}; echo ${{x//+(a|aa)b/}} | wc -c", limit="maybe", limits={"cpu_seconds": 1}, seconds=8),
    Case("37a gzip", "L", "zcat /tmp/z | cat", limit="output_bytes", files={"/tmp/z": gzip.compress(gzip.compress(ZEROS)[:0] or ZEROS, 9)}),
    Case("37b bzip2", "L", "bzcat /tmp/z", limit="output_bytes", files={"/tmp/z": bz2.compress(ZEROS)}),
    Case("37c xz", "L", "xzcat /tmp/z", limit="output_bytes", files={"/tmp/z": lzma.compress(ZEROS, preset=0)}),
    Case("37d into a file", "B", "gunzip < /tmp/z > f", says="No space left", files={"/tmp/z": gzip.compress(ZEROS)}, limits={"file_bytes": 4 * MIB}),
    Case("37e many members", "S", "zcat /tmp/z | wc -c", out="0\n", files={"/tmp/z": gzip.compress(b"") * 20_000}),
    Case("37f tar in tar", "S", "f=/tmp/z; while tar xzf $f 2>/dev/null; do rm -f $f; f=$(ls level* | head -1); test -n \"$f\" || break; done; ls | wc -l", files={"/tmp/z": nested_tar(30)}),
    Case("37g rubbish", "B", "gunzip < /tmp/z || bunzip2 < /tmp/z || unxz < /tmp/z || tar tf /tmp/z", files={"/tmp/z": bytes(range(256)) * 40}),
    Case("38a jq repeat", "L", "jq -n '[repeat(1)]'", limit="cpu_seconds|memory_bytes|steps|expansion_bytes", limits={"cpu_seconds": 2, "memory_bytes": 256 * MIB}, dies=True),
    Case("38b jq range", "L", "jq -n 'range(0; 1e18)' > /dev/null", limit="cpu_seconds", limits=QUICK),
    Case("38c awk", "L", "awk 'BEGIN { while (1); }'", limit="cpu_seconds", limits=QUICK),
    Case("38d sed", "L", "echo | sed ':a;ba'", limit="cpu_seconds|steps", limits=QUICK),
    Case("38e bc", "L", "echo '2^2^30' | bc", limit="maybe", limits={"cpu_seconds": 1}, seconds=9, dies=True),
    Case("38f arithmetic wraps", "S", "echo $((9**9**9))", seconds=2),
    Case("38g dc", "L", "echo '9 9 9 9^^^p' | dc", limit="maybe", limits={"cpu_seconds": 1}, seconds=9, dies=True),
    Case("38h awk recursion", "L", "awk 'function f(x) { return f(x+1) } BEGIN { f(1) }'", limit="maybe", exit=2, says="nested too deeply"),
    Case("38i jq recursion", "L", "jq -n 'def f: f + 1; f'", limit="maybe", exit=5, says="nested too deeply"),
    Case("38j jq recursion in tail position", "L", "jq -n 'def f: f; f'", limit="depth|memory_bytes|cpu_seconds", limits={"cpu_seconds": 1}, dies=True),
    Case("38k bc recursion", "L", "echo 'define f(x) { return f(x+1); } f(1)' | bc", limit="maybe", limits={"cpu_seconds": 3}, dies=True),
    Case("38l bc scale", "L", "echo 'scale=2000000000; 1/3' | bc", limit="maybe", limits={"cpu_seconds": 2, "memory_bytes": 256 * MIB}, seconds=9, dies=True),
    Case("39a sleep inf", "L", "sleep inf", limit="wall_seconds", limits={"wall_seconds": 0.3}),
    Case("39b read with no input", "L", "mkfifo f; exec 3<>f; read x <&3", limit="wall_seconds", limits={"wall_seconds": 0.3}),
    Case("39c wait for a stopped job", "L", "sleep 1 & kill -STOP $!; wait", limit="wall_seconds", limits={"wall_seconds": 0.3}),
    Case("39d timeouts in timeouts", "S", "timeout 5 timeout 5 timeout 0.1 sleep 100; echo $?", out="124\n", seconds=4),
    Case("39e a trap that goes on", "L", "trap 'sleep 100' TERM EXIT; kill $$; sleep 100", limit="wall_seconds", limits={"wall_seconds": 0.3}),
    Case("39f signals ignored", "L", "trap '' TERM INT HUP QUIT; while :; do :; done", limit="wall_seconds", limits={"wall_seconds": 0.5}),
    Case("39g nohup and disown", "L", "nohup sleep 1000 & disown; (sleep 1000 &) ; sleep 1000", limit="wall_seconds", limits={"wall_seconds": 0.3}),
    Case("40a descriptors", "B", "for ((i=0; i<2000; i++)); do exec {fd}> f || exit 1; done", says="Too many open files"),
    Case("40b a pipeline of 2000", "L", "eval \"echo x $(printf '| cat %.0s' {1..2000})\"", limit="processes|depth"),
    Case("40c a pipeline that fits", "S", "eval \"echo x $(printf '| cat %.0s' {1..50})\"", out="x\n"),
    Case("40d ulimit can't be raised", "B", "ulimit -n 1000000 && exit 0; exit 1"),
    Case("40e a descriptor that high", "B", "exec 99999> f", says="Bad file descriptor"),
    Case("41a a here-document never closed", "S", "cat << E\nx", out="x\n"),
    Case("41b a large here-document", "S", "cat << E | wc -c\n" + "x" * 5_000_000 + "\nE", out="5000001\n"),
    Case("41c a thousand on a line", "S", "cat " + " ".join(f"<<E{i}" for i in range(1000)) + "\n" + "".join(f"x\nE{i}\n" for i in range(1000)), out="x\n"),
    Case("41d here-strings in a loop", "S", "for i in {1..2000}; do read x <<< $i; done; echo $x", out="2000\n"),
    Case("42a many files", "S", "for ((i=0; i<20000; i++)); do : > f$i; done; ls | wc -l; set -- *; echo $#; find . -type f | wc -l; rm *; ls", out="20000\n20000\n20000\n", limits={"cpu_seconds": 60, "wall_seconds": 120}, slow=True),
    Case("42b more than the quota", "B", "for ((i=0; ; i++)); do : > f$i || exit 1; done", says="No space left on device", limits={"files": 3000, "cpu_seconds": 20}),
    Case("45a diff of what differs", "L", "seq 1 60000 > a; seq 60000 -1 1 > b; diff a b > /dev/null", limit="maybe", limits={"cpu_seconds": 4}, seconds=12),
    Case("45b shuffling a trillion", "L", "shuf -i 1-1000000000000 -n 3 | wc -l || sort -R /dev/zero", limit="maybe", limits={"cpu_seconds": 3}, dies=True),
    Case("45c splitting by bytes", "L", "head -c 100000 /dev/zero > f; split -b 1 -a 5 f", limit="maybe", limits={"files": 5000, "cpu_seconds": 5}),
    Case("45d find with a command for each", "L", "find / -exec find / \\; > /dev/null", limit="cpu_seconds|steps|processes", limits={"cpu_seconds": 1}),
    Case("45e xargs without end", "L", "yes | xargs -n 1 true", limit="cpu_seconds|steps|expansion_bytes", limits=QUICK),
    Case("46a a long multiplication", "L", "echo '9^99999*9^99999*9^99999*9^9999999' | bc", limit="maybe", limits={"cpu_seconds": 1}, seconds=9, dies=True),
    Case("46b a long regular expression", "L", "x=$(printf 'a?%.0s' {1..5000}); echo aaaa | grep -E \"$x\" > /dev/null", limit="maybe", limits={"cpu_seconds": 3}, seconds=9),
    Case("46c sort with a slow key", "L", "seq 1 300000 | sort -k1,1nr -k2,2h -k3,3V -k4,4M > /dev/null", limit="maybe", limits={"cpu_seconds": 1}, seconds=10),
]  # fmt: skip

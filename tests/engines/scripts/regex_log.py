import re
from collections import Counter

LOG = """\
127.0.0.1 - - [10/Oct/2024:13:55:36 +0000] "GET /index.html HTTP/1.1" 200 2326
10.0.0.5 - bob [10/Oct/2024:13:56:01 +0000] "POST /api/v1/items?x=1 HTTP/1.1" 201 12
10.0.0.5 - bob [10/Oct/2024:13:57:00 +0000] "GET /missing HTTP/1.1" 404 -
"""
pattern = re.compile(r'(?P<ip>\S+) \S+ (?P<user>\S+) \[(?P<time>[^]]+)\] "(?P<verb>\w+) (?P<path>[^ ?]+)\S* [^"]+" (?P<status>\d{3}) (?P<size>\d+|-)')
for found in pattern.finditer(LOG):
    print(found["ip"], found["user"], found["verb"], found["path"], found["status"], found.span("size"))
print(Counter(m["ip"] for m in pattern.finditer(LOG)).most_common(1))
print(re.sub(r"(\d+)\.(\d+)\.(\d+)\.(\d+)", lambda m: ".".join(reversed(m.groups())), LOG.split()[0]))
print(re.split(r"[,;]\s*", "a, b;c,  d"), re.findall(r"(?<=\$)\d+(?:\.\d\d)?", "cost $12.50 or $7"))
print(re.fullmatch(r"(a|b)*?c{2,3}", "abcc") is not None, re.search(r"(?i)straße", "STRASSE STRAßE").start())

"""dd - convert and copy a file

Usage: dd [OPERAND]...

Copy a file, converting and formatting according to the operands.

  bs=BYTES        read and write up to BYTES bytes at a time (default: 512); overrides ibs and obs
  cbs=BYTES       convert BYTES bytes at a time
  conv=CONVS      convert the file as per the comma separated symbol list
  count=N         copy only N input blocks
  ibs=BYTES       read up to BYTES bytes at a time (default: 512)
  if=FILE         read from FILE instead of stdin
  iflag=FLAGS     read as per the comma separated symbol list
  obs=BYTES       write BYTES bytes at a time (default: 512)
  of=FILE         write to FILE instead of stdout
  oflag=FLAGS     write as per the comma separated symbol list
  seek=N          (or oseek=N) skip N obs-sized output blocks
  skip=N          (or iseek=N) skip N ibs-sized input blocks
  status=LEVEL    the LEVEL of information to print to stderr: none, noxfer or progress

N and BYTES may be followed by multiplicative suffixes: c=1, w=2, b=512, kB=1000, K=1024, MB, M, xM and so on. If N
ends in B, it counts bytes not blocks. CONV may be: ascii ebcdic ibm block unblock lcase ucase sparse swab
sync excl nocreat notrunc noerror fdatasync fsync. FLAG may be: append fullblock count_bytes skip_bytes seek_bytes
nofollow directory and others that change nothing here.
"""

from belljar.bin._kit import utility
from belljar.bin._kit.program import version
from belljar.bin.dd.copy import copy
from belljar.bin.dd.operands import parse_operands
from belljar.kernel.process import Process


@utility("dd")
def main(process: Process, args: list[str]) -> int:
    if args[:1] == ["--help"]:
        process.print(main.help().rstrip())
        return 0
    if args[:1] == ["--version"]:
        process.print(version("dd"))
        return 0
    return copy(process, parse_operands(process, args))

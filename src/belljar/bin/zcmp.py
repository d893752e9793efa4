"""zcmp - compare compressed files byte by byte

Usage: zcmp [CMP OPTION]... FILE1 [FILE2]

Compare the uncompressed contents of the files by cmp. With one FILE, compare it with FILE without its suffix.
"""

from belljar.bin._script import script_utility

SCRIPT = r"""
options=()
while [[ $1 == -?* ]]; do options+=("$1"); shift; done
(( $# == 1 || $# == 2 )) || { echo "Usage: $0 [OPTION]... FILE1 [FILE2]" >&2; exit 2; }
(( $# == 2 )) || set -- "$1" "${1%.*}"
for file; do [[ $file == - || -r $file ]] || { echo "$0: $file: No such file or directory" >&2; exit 2; }; done
cmp "${options[@]}" <(gzip -cdfq -- "$1") <(gzip -cdfq -- "$2")
"""

main = script_utility("zcmp", __doc__, SCRIPT)

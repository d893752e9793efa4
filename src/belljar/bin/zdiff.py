"""zdiff - compare compressed files line by line

Usage: zdiff [DIFF OPTION]... FILE1 [FILE2]

Compare the uncompressed contents of the files by diff. With one FILE, compare it with FILE without its suffix.
"""

from belljar.bin._script import script_utility

SCRIPT = r"""
options=()
while [[ $1 == -?* ]]; do options+=("$1"); shift; done
(( $# == 1 || $# == 2 )) || { echo "Usage: $0 [OPTION]... FILE1 [FILE2]" >&2; exit 2; }
(( $# == 2 )) || set -- "$1" "${1%.*}"
for file; do [[ $file == - || -r $file ]] || { echo "$0: $file: No such file or directory" >&2; exit 2; }; done
diff "${options[@]}" <(gzip -cdfq -- "$1") <(gzip -cdfq -- "$2")
"""

main = script_utility("zdiff", __doc__, SCRIPT)

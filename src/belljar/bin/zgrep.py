"""zgrep - search compressed files for a regular expression

Usage: zgrep [GREP OPTION]... PATTERN [FILE]...

Look for lines that match PATTERN in the uncompressed contents of each FILE (or of standard input). Files that are not
compressed are searched as they are. All options of grep but -r and -Z are understood.
"""

from belljar.bin._script import script_utility

SCRIPT = r"""
options=() pattern=() names=
while (( $# )); do
  case $1 in
    --) shift; break ;;
    -[hH]|--no-filename|--with-filename) names=$1 ;;
    -[ABCDdmef]|--regexp|--file|--context|--max-count|--after-context|--before-context)
      (( $# > 1 )) || { echo "$0: option requires an argument -- '${1#-}'" >&2; exit 2; }
      case $1 in -e|-f|--regexp|--file) pattern+=("$1" "$2") ;; *) options+=("$1" "$2") ;; esac
      shift ;;
    -e?*|-f?*|--regexp=*|--file=*) pattern+=("$1") ;;
    -r|-R|--recursive|-Z|--null) echo "$0: $1: option not supported" >&2; exit 2 ;;
    -?*) options+=("$1") ;;
    *) break ;;
  esac
  shift
done
if (( ! ${#pattern[@]} )); then
  (( $# )) || { echo "Usage: $0 [OPTION]... [-e] PATTERN [FILE]..." >&2; exit 2; }
  pattern=(-e "$1"); shift
fi
(( $# )) || set -- -
[[ $names || $# -lt 2 ]] || names=-H
status=1
for file; do
  gzip -cdfq -- "$file" | grep ${names:+"$names"} --label="$file" "${options[@]}" "${pattern[@]}" -
  codes=("${PIPESTATUS[@]}")
  if (( codes[0] == 1 || codes[1] > 1 )); then status=2
  elif (( codes[1] == 0 && status == 1 )); then status=0
  fi
done
exit $status
"""

main = script_utility("zgrep", __doc__, SCRIPT)

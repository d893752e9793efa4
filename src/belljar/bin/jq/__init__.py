"""jq - commandline JSON processor

Usage: jq [OPTIONS] FILTER [FILE...]
       jq [OPTIONS] --args FILTER [STRING...]
       jq [OPTIONS] --jsonargs FILTER [JSON_TEXT...]

Applies FILTER to JSON texts and writes its results as JSON. The simplest filter is ., which copies its input.

What is read:
  -n, --null-input           nothing: the filter runs once, on null
  -R, --raw-input            lines of text, each a string
  -s, --slurp                everything at once, as one array (with -R one string)
      --stream               each value as a series of [path, leaf] events
      --stream-errors        the same, with errors as events
      --seq                  texts that start with the RS character; they are written so too
  -f, --from-file FILE       the filter itself comes from FILE
  -L, --library-path DIR     where `import` and `include` look

What is written:
  -c, --compact-output       one value a line
  -r, --raw-output           strings as they are, without quotes
      --raw-output0          -r, and a NUL after each value
  -j, --join-output          -r, and nothing after each value
  -a, --ascii-output         characters beyond ASCII as escapes
  -S, --sort-keys            the keys of objects in order
  -C, --color-output         in colour; -M, --monochrome-output: never
      --tab, --indent N      indent by a tab, or by N spaces (at most 7)
      --unbuffered           hand on each value at once
  -e, --exit-status          exit with 1 if the last value was false or null, with 4 if there was none

Variables for the filter:
      --arg NAME TEXT        $NAME is the string TEXT
      --argjson NAME JSON    $NAME is the value JSON
      --slurpfile NAME FILE  $NAME is the array of the values in FILE
      --rawfile NAME FILE    $NAME is the text of FILE
      --args, --jsonargs     what follows are strings (JSON texts), found in $ARGS.positional

  -V, --version              say which version this is
  -h, --help                 say this
"""

from belljar.bin._kit import utility
from belljar.kernel.process import Process


@utility("jq", usage_status=2)
def main(process: Process, args: list[str]) -> int:
    from belljar.bin.jq.options import VERSION, ArgumentReader, Usage
    from belljar.bin.jq.session import run_session

    try:
        options = ArgumentReader(process, args).read()
    except Usage as usage:
        process.error(str(usage))
        return 2
    if "help" in options.flags:
        process.stdout.write(main.help().encode())
        return 0
    if "version" in options.flags:
        process.print(VERSION)
        return 0
    if options.program is None:
        if process.isatty(0) and process.isatty(1):
            process.error(__doc__.partition("\n  -n")[0] + "\n")
            return 2
        options.program = "."
    return run_session(process, options)

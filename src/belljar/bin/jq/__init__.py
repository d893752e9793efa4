"""jq - commandline JSON processor

Usage: jq [OPTIONS] FILTER [FILE...]
       jq [OPTIONS] --args FILTER [STRING...]
       jq [OPTIONS] --jsonargs FILTER [JSON_TEXT...]

Applies FILTER to JSON texts and writes its results as JSON. The simplest filter is ., which copies its input.

  -n, --null-input          use null as the single input value
  -R, --raw-input           read each line as string instead of JSON
  -s, --slurp               read all inputs into an array and use it as the single input value
  -c, --compact-output      compact instead of pretty-printed output
  -r, --raw-output          output strings without escapes and quotes
      --raw-output0         implies -r and output NUL after each output
  -j, --join-output         implies -r and output without newline after each output
  -a, --ascii-output        output strings by only ASCII characters using escape sequences
  -S, --sort-keys           sort keys of each object on output
  -C, --color-output        colorize JSON output
  -M, --monochrome-output   disable colored output
      --tab                 use tabs for indentation
      --indent n            use n spaces for indentation (max 7 spaces)
      --unbuffered          flush output stream after each output
      --stream              parse the input value in streaming fashion
      --stream-errors       implies --stream and report parse error as an array
      --seq                 parse input/output as application/json-seq
  -f, --from-file           load the filter from a file
  -L, --library-path dir    search modules from the directory
      --arg name value      set $name to the string value
      --argjson name value  set $name to the JSON value
      --slurpfile name file set $name to an array of JSON values read from the file
      --rawfile name file   set $name to string contents of file
      --args                consume remaining arguments as positional string values
      --jsonargs            consume remaining arguments as positional JSON values
  -e, --exit-status         set exit status code based on the output
  -V, --version             show the version
  -h, --help                show the help
  --                        terminates argument processing

Named arguments are also available as $ARGS.named[], positional ones as $ARGS.positional[].
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
        process.stdout.write(__doc__.encode())
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

"""yq - read, change and convert YAML and JSON with jq's language

Usage: yq [eval|e] [OPTIONS] [EXPRESSION] [FILE...]
       yq eval-all|ea [OPTIONS] EXPRESSION [FILE...]

Applies EXPRESSION (by default ., which copies) to each document and writes the results as YAML.
With no FILE, or when FILE is -, read standard input.

  -o, --output-format F  yaml (y), json (j), csv (c), tsv (t) or props (p); by default that of the input
  -p, --input-format F   yaml (y) or json (j); by default by the file's name
  -i, --inplace          write the results back to the first file
  -r, --unwrapScalar     print strings without quotes (default for YAML; -r=false keeps them)
  -P, --prettyPrint      idiomatic style: no flow collections, no needless quotes
  -I, --indent N         columns of indentation (2)
  -n, --null-input       don't read input, start from null
  -e, --exit-status      exit 1 if there are no results, or null or false
  -N, --no-doc           no --- between documents
  -j, --tojson           same as -o json
  -C, --colors           colored JSON
  -M, --no-colors        no colors
  -V, --version          show the version
  -h, --help             show the help
"""

from belljar.bin._kit import utility
from belljar.kernel.process import Process

VERSION = "yq (belljar, after https://github.com/mikefarah/yq/) version v4.44.3"


@utility("yq", usage_status=1)
def main(process: Process, args: list[str]) -> int:
    from belljar.bin.yq.options import Usage, read_options
    from belljar.bin.yq.session import run_session

    try:
        options = read_options(process, args)
    except Usage as usage:
        process.error(f"Error: {usage}\n")
        return 1
    if options.asked == "help":
        process.stdout.write(main.help().encode())
        return 0
    if options.asked == "version":
        process.print(VERSION)
        return 0
    return run_session(process, options)

"""locale - get locale-specific information

Usage: locale [-a] [-m] [NAME...]
"""

from belljar.bin._kit import utility
from belljar.kernel.process import Process

_CATEGORIES = (
    "LC_CTYPE LC_NUMERIC LC_TIME LC_COLLATE LC_MONETARY LC_MESSAGES LC_PAPER LC_NAME LC_ADDRESS LC_TELEPHONE "
    "LC_MEASUREMENT LC_IDENTIFICATION"
).split()
_KEYWORDS = {"charmap": "UTF-8", "decimal_point": ".", "thousands_sep": ""}


@utility("locale")
def main(process: Process, args: list[str]) -> int:
    if args[:1] in (["-a"], ["--all-locales"]):
        process.print("C\nC.utf8\nPOSIX")
        return 0
    if args[:1] in (["-m"], ["--charmaps"]):
        process.print("UTF-8")
        return 0
    unknown = [
        arg for arg in args if arg.startswith("-") and arg not in ("-k", "-c", "--keyword-name", "--category-name")
    ]
    if unknown:
        kind = "unrecognized option" if unknown[0].startswith("--") else "invalid option --"
        process.warn(f"{kind} '{unknown[0] if unknown[0].startswith('--') else unknown[0][1:2]}'")
        process.error("Try `locale --help' or `locale --usage' for more information.\n")
        return 64
    names = [arg for arg in args if not arg.startswith("-")]
    if names:
        status = 0
        for name in names:
            if name not in _KEYWORDS:
                process.warn(f'unknown name "{name}"')
                status = 1
                continue
            process.print(_KEYWORDS[name])
        return status
    env = process.env
    everything, language = env.get("LC_ALL", ""), env.get("LANG", "")
    process.print(f"LANG={language}\nLANGUAGE={env.get('LANGUAGE', '')}")
    for name in _CATEGORIES:
        own = env.get(name)
        process.print(f"{name}={own}" if own and not everything else f'{name}="{everything or language or "POSIX"}"')
    process.print(f"LC_ALL={everything}")
    return 0

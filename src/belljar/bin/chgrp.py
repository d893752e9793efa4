"""chgrp - change group ownership

Usage: chgrp [OPTION]... GROUP FILE...
  or:  chgrp [OPTION]... --reference=RFILE FILE...

Change the group of each FILE to GROUP.
"""

from belljar.bin._kit import UsageError, utility
from belljar.bin._kit.quoting import quote
from belljar.bin._kit.users import Accounts
from belljar.bin._owner import OwnerOptions, OwnerRules, change_owners, reference_or_operand
from belljar.kernel.process import Process


@utility("chgrp", OwnerOptions)
def main(process: Process, options: OwnerOptions, operands: list[str]) -> int:
    model = reference_or_operand(process, options, operands)
    if model is not None:
        gid = model.gid
    else:
        name, *operands = operands
        found = Accounts(process).group(name) if name else -1
        if found is None:
            raise UsageError(f"invalid group: {quote(name, process.env)}", hint=False)
        gid = found
    return change_owners(process, options, OwnerRules(gid=gid, group_only=True), operands)

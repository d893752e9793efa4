"""A tool written for a Docker sandbox (execute_command, read_file, write_files, dispose), in a belljar sandbox instead.

It repairs a repository. No key is needed. In a checkout of belljar: pip install '.[python]'
"""

import asyncio

from repository import BEGIN, DIFF, RIGHT, TEST, WRONG, overlay, repository

from belljar.integrations.commands import CommandSandbox, use_sandbox


async def repair(sandbox: CommandSandbox) -> str:
    await sandbox.execute_command(BEGIN)
    print((await sandbox.execute_command(TEST)).stdout, end="")
    code = await sandbox.read_file("/work/stats.py")
    (written,) = await sandbox.write_files([("/work/stats.py", code.replace(WRONG, RIGHT))])
    assert written.ok, written.error
    print((await sandbox.execute_command(TEST)).stdout, end="")
    return (await sandbox.execute_command(DIFF)).stdout


with repository() as directory:
    print(asyncio.run(use_sandbox(repair, mounts=overlay(directory))))

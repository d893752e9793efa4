"""The guest's half of the Python engine: makes a warm interpreter the `python3` of a sandbox.

Runs inside the guest interpreter, never in a process of ours with any right. `start` is what a template runs: it loads
what most programs need, then waits in `park`; the process that comes back from there is a new one, with a program.
"""


def start(kind):
    import zipimport
    from functools import lru_cache

    read = zipimport._get_module_code
    zipimport._get_module_code = lru_cache(1)(read)  # asked for twice by each import: for the file's name and the code
    from _belljar import errors, hostcalls, integers, preload, socket_module

    socket_module.install()
    integers.install()
    preload.load(kind)
    hostcalls.calibrate()
    errors.install()
    from _belljar import loops, main, pools, shims, tools

    shims.install()
    loops.install()
    pools.install()
    tools.install()
    zipimport._get_module_code = read
    main.warm_up_template()
    preload.hand_to_template()
    program, real = hostcalls.park()
    while not real:
        main.warm_up(program)
        program, real = hostcalls.park()
    main.run(program)

"""There are no processes that share a program's memory; says so."""

raise ImportError(
    "multiprocessing can't start processes: WebAssembly has no fork and no shared memory here. concurrent.futures' "
    "ThreadPoolExecutor works (serially), asyncio works, and subprocess runs programs side by side",
    name="_multiprocessing",
)

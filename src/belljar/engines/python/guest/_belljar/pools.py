"""Threads where there are none: pools do at once what is submitted, servers one request after the other.

A thread that is started by itself can't be had, and the error says what works instead.
"""

import queue

NO_THREADS = (
    "can't start new thread: WebAssembly has none here. concurrent.futures and asyncio.to_thread work (serially), "
    "asyncio works, and subprocess runs programs side by side"
)


def install():
    _install_executor()
    _install_servers()
    _explain_threads()


def _install_servers():
    """Have servers with a thread for each request do requests themselves, in turn."""
    import socketserver

    def process_request(self, request, client_address):
        self.process_request_thread(request, client_address)

    socketserver.ThreadingMixIn.process_request = process_request


def _explain_threads():
    import threading

    def start(*_arguments, **_options):
        raise RuntimeError(NO_THREADS)

    threading._start_joinable_thread = start


def _install_executor():
    from asyncio import base_events
    from concurrent.futures import _base, thread

    pool = thread.ThreadPoolExecutor
    enqueue = pool.submit

    def submit(self, fn, /, *args, **kwargs):
        future = enqueue(self, fn, *args, **kwargs)
        work(self)
        return future

    def work(self):
        """Run queued work items, as a pool thread would. Not while `submit` holds the pool's lock."""
        context = self.__dict__.get("_context")
        if context is None:
            context = self._create_worker_context()
            try:
                context.initialize()
            except BaseException:
                _base.LOGGER.critical("Exception in initializer:", exc_info=True)
                return self._initializer_failed()
            self._context = context
        while True:
            try:
                item = self._work_queue.get_nowait()
            except queue.Empty:
                return
            future = item.future
            item.run(context)
            if not future.cancelled() and type(future.exception()) is KeyboardInterrupt:
                raise future.exception()  # which is never a thread's

    submit.__doc__ = enqueue.__doc__
    pool.submit = submit
    pool._adjust_thread_count = lambda self: None
    base_events.BaseEventLoop.shutdown_default_executor = shutdown_default_executor


async def shutdown_default_executor(self, timeout=None):
    """Do nothing: no work is pending in it."""
    self._executor_shutdown_called = True
    if self._default_executor is not None:
        self._default_executor.shutdown()

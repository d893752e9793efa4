"""Pools of threads where there are none: what is submitted is done at once, by whoever submits it."""

import queue


def install():
    from asyncio import base_events
    from concurrent.futures import _base, thread

    pool = thread.ThreadPoolExecutor
    enqueue = pool.submit

    def submit(self, fn, /, *args, **kwargs):
        future = enqueue(self, fn, *args, **kwargs)
        work(self)
        return future

    def work(self):
        """What a thread of the pool does, until there is nothing left. Not while `submit` holds the pool's lock."""
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
    """Nothing is under way in it."""
    self._executor_shutdown_called = True
    if self._default_executor is not None:
        self._default_executor.shutdown()

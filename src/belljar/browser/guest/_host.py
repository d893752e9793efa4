"""The module `_host` of guest Python in a page: its calls are JavaScript's to make."""

import _belljar_host

_call = _belljar_host.call


def call(request):
    return _call(request).to_bytes()

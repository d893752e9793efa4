"""belljar in a page: the kernel, shell and utilities on Pyodide in a worker, and the JavaScript that drives them."""

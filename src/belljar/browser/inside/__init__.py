"""What runs inside the page's worker, on Pyodide. Nothing here is imported on a host."""

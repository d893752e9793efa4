"""One module for each protocol side; its name is the target's. See `tests.fuzz.driver.Target`."""

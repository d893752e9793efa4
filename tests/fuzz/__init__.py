"""Fuzzers for every protocol that an attacker can speak: `python -m tests.fuzz TARGET --seconds N`, or `make fuzz`.

A target is a module of tests/fuzz/targets with a function `target()`; tests/fuzz/corpus/NAME has cases to begin with.
"""

"""Prints the figures that the battery's tests have recorded."""

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    figures = [
        f"{name}: {figure}"
        for report in terminalreporter.getreports("passed") + terminalreporter.getreports("failed")
        if "tests/reliability/" in report.nodeid
        for name, figure in report.user_properties
    ]
    if figures:
        terminalreporter.section("figures")
        for line in figures:
            terminalreporter.line(line)

"""Expansion of values: splitting, operators on parameters, arithmetic on text. No syntax trees here."""

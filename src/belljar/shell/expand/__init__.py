"""What expansions do to values: splitting, operators on parameters, arithmetic on text. No syntax trees here."""

"""Words shared by every layer: errors, limits, flags, signals, records. Imports nothing of ours."""

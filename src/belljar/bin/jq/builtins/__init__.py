"""jq's builtins, one module a kind; each adds its own to the registry when it is imported."""

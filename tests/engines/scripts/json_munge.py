"""Flatten nested JSON, and round-trip it."""
import json

data = json.loads('{"user": {"name": "Zoë", "tags": ["a", "b"], "address": {"city": "Kyiv", "zip": null}}, "n": 1e3}')


def flatten(value, prefix=""):
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from flatten(inner, f"{prefix}{key}.")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from flatten(inner, f"{prefix}{index}.")
    else:
        yield prefix.rstrip("."), value


for key, value in flatten(data):
    print(key, "=", json.dumps(value, ensure_ascii=False))
print(json.dumps(data, indent=2, sort_keys=True))
try:
    json.loads('{"a": [1, 2,]}')
except json.JSONDecodeError as error:
    print(error.lineno, error.colno)

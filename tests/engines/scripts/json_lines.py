import json
from pathlib import Path

log = Path("events.jsonl")
log.write_text("".join(json.dumps({"id": i, "level": ["info", "warn", "error"][i % 3], "ms": i * i}) + "\n" for i in range(12)))
slow = {}
for line in log.read_text().splitlines():
    event = json.loads(line)
    slow.setdefault(event["level"], []).append(event["ms"])
for level, times in sorted(slow.items()):
    print(f"{level:<6}{len(times):>3}{max(times):>6}{sum(times) / len(times):>8.2f}")

import json
from unittest.mock import MagicMock, call, patch

client = MagicMock()
client.get.return_value.json.return_value = {"ok": True}
client.post.side_effect = [1, ValueError("boom")]
print(client.get("/x").json(), client.post("a"))
try:
    client.post("b")
except ValueError as error:
    print(error)
print(client.post.call_args_list == [call("a"), call("b")], client.post.call_count)
with patch("json.dumps", return_value="patched"):
    print(json.dumps({}))
print(json.dumps({}))

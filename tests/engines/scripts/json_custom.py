import json
from dataclasses import asdict, dataclass
from datetime import date
from decimal import Decimal


@dataclass
class Item:
    name: str
    price: Decimal
    day: date


class Encoder(json.JSONEncoder):
    def default(self, o):
        if isinstance(o, (Decimal, date)):
            return str(o)
        return super().default(o)


print(json.dumps([asdict(Item("pen", Decimal("1.20"), date(2024, 2, 29)))], cls=Encoder))
print(json.loads('{"a": 1.10}', parse_float=Decimal))
try:
    json.dumps({1, 2})
except TypeError as error:
    print(error)

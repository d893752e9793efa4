from dataclasses import FrozenInstanceError, dataclass, field, replace


@dataclass(order=True)
class Item:
    sort_key: tuple = field(init=False, repr=False)
    name: str
    price: float
    tags: list[str] = field(default_factory=list)

    def __post_init__(self):
        self.sort_key = (-self.price, self.name)


@dataclass(frozen=True, slots=True)
class Point:
    x: int
    y: int = 0


items = sorted([Item("b", 2.0), Item("a", 3.5, ["x"]), Item("c", 2.0)])
print(items)
p = Point(1)
print(replace(p, y=5), p == Point(1), hash(p) == hash(Point(1)))
try:
    p.x = 3
except FrozenInstanceError as error:
    print(type(error).__name__, error)

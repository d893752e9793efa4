from abc import ABC, abstractmethod
from enum import Enum, Flag, IntEnum, auto
from typing import Protocol, runtime_checkable


class Shape(ABC):
    @property
    @abstractmethod
    def area(self): ...

    def __lt__(self, other):
        return self.area < other.area

    def __repr__(self):
        return f"{type(self).__name__}({self.area:g})"


class Square(Shape):
    def __init__(self, side):
        self.side = side

    @property
    def area(self):
        return self.side**2


class Circle(Shape):
    def __init__(self, r):
        self.r = r

    area = property(lambda self: 3 * self.r**2)


print(sorted([Square(3), Circle(1), Square(1.5)]))
try:
    Shape()
except TypeError as error:
    print(str(error).split(" with ")[0])


class Colour(Enum):
    RED = auto()
    BLUE = auto()


class Perm(Flag):
    R = 1
    W = 2


@runtime_checkable
class Sized(Protocol):
    def __len__(self): ...


print(Colour(2), Colour["RED"].value, Perm.R | Perm.W, Perm.W in (Perm.R | Perm.W), isinstance([], Sized), isinstance(3, Sized))


class Meta(type):
    registry = []

    def __new__(cls, name, bases, space, **kw):
        made = super().__new__(cls, name, bases, space)
        cls.registry.append((name, kw))
        return made


class Plugin(metaclass=Meta, kind="x"):
    __slots__ = ("value",)

    def __getattr__(self, name):
        return f"no {name}"


print(Meta.registry, Plugin().missing)

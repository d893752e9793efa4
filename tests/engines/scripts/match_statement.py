from dataclasses import dataclass


@dataclass
class Move:
    x: int
    y: int


def act(command):
    match command:
        case {"action": "move", "to": [int(x), int(y)]}:
            return Move(x, y)
        case {"action": "say", "text": str(text), **rest} if text:
            return f"say {text} {rest}"
        case Move(x=0, y=y):
            return f"vertical {y}"
        case [first, *_, last] | (first, last):
            return first, last
        case "quit" | "exit":
            return None
        case int() | float() as number:
            return number * 2
        case _:
            return "?"


for command in ({"action": "move", "to": [1, 2]}, {"action": "say", "text": "hi", "loud": True}, {"action": "say", "text": ""}, Move(0, 5), [1, 2, 3], "quit", 2.5, object):
    print(act(command))

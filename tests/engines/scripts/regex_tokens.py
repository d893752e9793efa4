import re

TOKENS = [("NUMBER", r"\d+(\.\d*)?"), ("OP", r"[+\-*/()]"), ("SPACE", r"\s+"), ("NAME", r"[A-Za-z_]\w*"), ("BAD", r".")]
SCANNER = re.compile("|".join(f"(?P<{name}>{pattern})" for name, pattern in TOKENS))


def evaluate(text, names):
    tokens = [(m.lastgroup, m.group()) for m in SCANNER.finditer(text) if m.lastgroup != "SPACE"] + [("END", "")]
    position = 0

    def peek():
        return tokens[position]

    def take():
        nonlocal position
        position += 1
        return tokens[position - 1]

    def factor():
        kind, value = take()
        if value == "(":
            result = expression()
            take()
            return result
        if value == "-":
            return -factor()
        return float(value) if kind == "NUMBER" else names[value]

    def term():
        result = factor()
        while peek()[1] in ("*", "/"):
            result = result * factor() if take()[1] == "*" else result / factor()
        return result

    def expression():
        result = term()
        while peek()[1] in ("+", "-"):
            result = result + term() if take()[1] == "+" else result - term()
        return result

    return expression()


for text in ("1 + 2 * 3", "(1+2)*3 - -x/4", "2*(3+4)*(5-1)"):
    print(text, "=", evaluate(text, {"x": 10}))

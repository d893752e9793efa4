import textwrap
from string import Template

rows = [("widget", 3, 2.5), ("gadget with a long name", 10, 19.99), ("ž", 1, 0.333)]
width = max(len(name) for name, _, _ in rows)
for name, count, price in rows:
    print(f"{name:<{width}} |{count:>4d} |{price:>8,.2f} |{count * price:^12.1f}|{count / 14:6.1%}")
print(textwrap.fill("It is a truth universally acknowledged, that a sandbox in want of a shell must be in want of a kernel.", 40, initial_indent="* ", subsequent_indent="  "))
print(textwrap.dedent("""
    one
      two
"""), end="")
print(Template("$who owes $$${amount}").substitute(who="Ann", amount=5))
print("{0!r:>8} {1:#x} {2:e} {3:+}".format("a", 255, 12345.678, 7), "%-5s|%05.1f" % ("x", 3.14159))

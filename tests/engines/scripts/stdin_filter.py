"""Reads the standard input it is given."""
import sys

first = input("name? ")
print()
print("hello", first)
for number, line in enumerate(sys.stdin, 1):
    print(number, line.rstrip("\n")[::-1])
try:
    input()
except EOFError:
    print("end of input")

import difflib, string, unicodedata

text = "  The quick, brown fox; jumps over the lazy dog.  "
print(text.split(), text.strip().partition(","), text.title().swapcase().count("E"))
print("a-b_c".translate(str.maketrans("-_", "  ")), "abc".center(9, "*"), "x".zfill(3), "1,2,,3".rsplit(",", 2))
print("ěščř".encode("ascii", "xmlcharrefreplace"), unicodedata.normalize("NFKD", "ěščř").encode("ascii", "ignore"))
print("".join(c for c in text if c not in string.punctuation).split()[:3], "Hello".isalpha(), "²".isdigit(), "½".isnumeric())
print("\n".join(difflib.unified_diff(["a", "b", "c"], ["a", "x", "c", "d"], "old", "new", lineterm="")))
print(difflib.get_close_matches("appel", ["ape", "apple", "peach"]), difflib.SequenceMatcher(None, "abcd", "bcde").ratio())
print(f"{'nested ' + f'{1 + 1}'!r}", f"{3.14159:.2f}", f"{1_000_000:_}", f"{text=!s:.10}", rf"\d{1}")

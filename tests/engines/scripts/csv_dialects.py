import csv, io

text = 'name;note\n"Smith; J";"said ""hi"""\nplain;two\\nlines\n'
for row in csv.reader(io.StringIO(text), delimiter=";"):
    print(row)
out = io.StringIO()
csv.writer(out, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n").writerows([["a", 1, 2.5], ['q"x', None, ""]])
print(out.getvalue(), end="")
print(csv.Sniffer().sniff("a\tb\tc\n1\t2\t3\n").delimiter == "\t")

"""Totals per region from a CSV file, written back as another."""
import csv
from collections import defaultdict

rows = [("north", "2024-01", 10.5), ("south", "2024-01", 7.25), ("north", "2024-02", 3.0), ("east", "2024-02", 8.75)]
with open("sales.csv", "w", newline="") as f:
    writer = csv.writer(f)
    writer.writerow(["region", "month", "amount"])
    writer.writerows(rows)
totals = defaultdict(float)
with open("sales.csv", newline="") as f:
    for row in csv.DictReader(f):
        totals[row["region"]] += float(row["amount"])
with open("totals.csv", "w", newline="") as f:
    out = csv.DictWriter(f, fieldnames=["region", "total"])
    out.writeheader()
    for region in sorted(totals):
        out.writerow({"region": region, "total": totals[region]})
print(open("totals.csv", newline="").read().replace("\r\n", "\n"), end="")

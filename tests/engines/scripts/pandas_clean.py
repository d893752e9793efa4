import io
import pandas as pd

raw = """id,name,joined,score
1, Ann ,2024-01-05,9.5
2,Bob,,7
2,Bob,,7
3,,2023-12-31,
"""
df = pd.read_csv(io.StringIO(raw), skipinitialspace=True).drop_duplicates()
df["name"] = df["name"].str.strip().fillna("unknown")
df["score"] = df["score"].fillna(df["score"].mean())
df["joined"] = pd.to_datetime(df["joined"])
print(df["joined"].isna().sum(), df["score"].round(2).tolist(), df["name"].tolist())
other = pd.DataFrame({"id": [1, 3, 4], "team": ["x", "y", "z"]})
merged = df.merge(other, on="id", how="left", indicator=True)
print(merged[["id", "team", "_merge"]].astype(str).values.tolist())
print(pd.concat([other, other.assign(team="w")]).query("id > 1").shape, pd.cut(df["score"], [0, 8, 10], labels=["low", "high"]).tolist())
df.to_csv("out.csv", index=False)
print(open("out.csv").read(), end="")
print(df.describe()["score"].round(3).to_dict(), df.dtypes["id"].kind)
print(pd.json_normalize([{"a": {"b": 1}, "c": [1]}]).columns.tolist(), df.melt("id", ["score"]).shape)

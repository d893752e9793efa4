import pandas as pd

df = pd.DataFrame({"team": ["a", "b", "a", "c", "b", "a"], "day": pd.to_datetime(["2024-01-01", "2024-01-01", "2024-01-02", "2024-01-02", "2024-01-03", "2024-01-03"]), "points": [3, 1, 4, 1, 5, 9]})
summary = df.groupby("team")["points"].agg(["count", "sum", "mean"])
print(summary.to_string())
print(df.groupby("team").points.transform(lambda s: s - s.mean()).round(2).tolist())
print(df.pivot_table(index="team", columns=df.day.dt.day, values="points", aggfunc="sum", fill_value=0).to_string())
top = df.sort_values(["points", "team"], ascending=[False, True]).head(3)
print(top[["team", "points"]].to_dict("records"))
print(df.set_index("day").resample("D").points.sum().to_dict() == {pd.Timestamp("2024-01-01"): 4, pd.Timestamp("2024-01-02"): 5, pd.Timestamp("2024-01-03"): 14})

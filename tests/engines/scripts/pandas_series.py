import pandas as pd

s = pd.Series([5, 3, None, 8], index=list("abcd"), name="n")
print(s.dropna().astype(int).to_dict(), s.interpolate().tolist(), s.rank().tolist(), s.idxmax())
print(s.rolling(2, min_periods=1).mean().round(2).tolist(), s.shift(1).fillna(0).tolist(), s.cumsum().tolist())
words = pd.Series(["Apple pie", "banana split", "cherry tart"])
print(words.str.split().str[0].str.upper().tolist(), words.str.contains("an|tart").tolist(), words.str.extract(r"(\w+) (\w+)")[1].tolist())
print(pd.Series([1, 2, 2, 3]).value_counts().to_dict(), pd.Series(range(10)).quantile([0.25, 0.75]).tolist())
days = pd.date_range("2024-02-27", periods=4, freq="D")
print(days.strftime("%m-%d").tolist(), days.day_name().tolist()[:2], (days[-1] - days[0]).days)
print(pd.crosstab(pd.Series(list("aab")), pd.Series(list("xyx"))).values.tolist())

"""numpy's default integer is 64 bits wide in a sandbox, as on 64-bit machines, and what works on indices still does."""

from __future__ import annotations

import pytest

from belljar import Sandbox
from belljar.engines.compile_host import changed
from belljar.engines.owner.python_integers import DEFAULT_INTEGER

WAYS_IN = (
    "np.dtype(int)",
    "np.dtype('int')",
    "np.dtype(np.int_)",
    "np.array([1, 2])",
    "np.array(-1)",
    "np.asarray((1, 2))",
    "np.array([[True, 2]])",
    "np.array([np.int32(1), 2])",
    "np.arange(3)",
    "np.arange(0, 2**40, 2**39)",
    "np.zeros(2, int)",
    "np.ones(2, dtype='int')",
    "np.full(3, 7)",
    "np.empty(0, int)",
    "np.eye(2, dtype=int)",
    "np.identity(2, dtype=int)",
    "np.linspace(0, 9, 4, dtype=int)",
    "np.fromiter(range(3), int)",
    "np.fromstring('1 2', dtype=int, sep=' ')",
    "np.indices((2, 2))",
    "np.array([1.5]).astype(int)",
    "np.array([True]) + 5",
    "np.array([True]).sum()",
    "np.array([1], np.int8).sum()",
    "np.array([1], np.int32).sum()",
    "np.array([1], np.int32).cumsum()",
    "np.array([1], np.int16).prod()",
    "np.cumprod(np.array([1], np.int32))",
    "np.trace(np.eye(2, dtype=np.int32))",
    "np.add.reduce(np.array([1], np.int32))",
    "np.square(3)",
    "np.negative(3)",
    "np.add(1, 2)",
    "np.random.randint(0, 5, 3)",
    "np.random.default_rng(1).integers(0, 5, 3)",
    "np.ma.array([1, 2]).sum()",
    "np.vectorize(lambda v: v + 1)([1, 2])",
    "np.loadtxt(['1 2'], dtype=int)",
    "np.where([True], 1, 2)",
    "np.concatenate([[1], [2]])",
)


def said(box: Sandbox, code: str) -> list[str]:
    result = box.exec(["python3", "-c", "import numpy as np\n" + code], timeout=300)
    assert (result.exit_code, result.stderr) == (0, ""), result.stderr
    return result.stdout.splitlines()


def test_integers_are_wide(box: Sandbox) -> None:
    code = f"for made in ({', '.join(WAYS_IN)}): print(getattr(made, 'dtype', made))"
    assert dict(zip(WAYS_IN, said(box, code), strict=True)) == dict.fromkeys(WAYS_IN, "int64")


def test_nothing_overflows_in_silence(box: Sandbox) -> None:
    code = """
print(np.arange(100000).sum(), (np.arange(100000) ** 2)[-1], np.array([100000]) * 100000, np.power(np.array([10]), 10))
print(np.prod(np.arange(1, 21)), np.cumprod(np.arange(1, 21))[-1], np.square(100000), np.multiply(100000, 100000))
print(np.array([1, 2**31]).max(), np.add(2**31 - 1, 1), np.array([1]) << 40, np.dot([100000], [100000]))
print(np.array([2**63]).dtype, np.array([2**64]).dtype, np.array([1], np.uint8).sum().dtype, np.dtype(np.uint))
print((np.array([1], np.int32) + 1).dtype, np.can_cast(np.int64, np.int32), np.promote_types('i4', 'i8'))
try:
    np.array([1], np.int32) + 2**40
except OverflowError as error:
    print("OverflowError")
np.random.seed(0)
print(np.random.randint(0, 1000, 4), np.random.randint(0, 2**40) > 0)
"""
    assert said(box, code) == [
        "4999950000 9999800001 [10000000000] [10000000000]",
        "2432902008176640000 2432902008176640000 10000000000 10000000000",
        "2147483648 2147483648 [1099511627776] 10000000000",
        "uint64 object uint64 uint64",
        "int32 False int64",
        "OverflowError",
        "[684 559 629 192] True",
    ]


def test_wide_integers_as_indices(box: Sandbox) -> None:
    code = """
x, y = np.array([3, 1, 2]), np.arange(5)
print(x[np.array([0, 2])], x[np.argsort(x)], x.take(np.array([1])), np.bincount(x), np.repeat(x, x), np.repeat([7], 2))
np.put(y, np.array([0]), 9); np.add.at(y, np.array([1, 1]), 10); y[np.array([4])] = 8
print(y, np.choose(np.array([0, 1, 0]), [x, x * 10]), np.add.reduceat(y, np.array([0, 2])))
print(np.searchsorted(np.array([5, 1, 3]), 3, sorter=np.array([1, 2, 0])), np.digitize(x, np.array([2, 3])))
print(np.ravel_multi_index((np.array([1]), np.array([2])), (3, 4)), *map(int, np.unravel_index(np.array(5), (3, 4))))
print(np.insert(x, np.array([1]), 7), np.delete(x, np.array([0])), [len(p) for p in np.split(y, np.array([1, 3]))])
print(np.zeros(np.array([2, 3])).shape, x.reshape(np.array([3, 1])).shape, np.tile(x, np.array([2])))
print(np.partition(x, np.array([1])), np.take_along_axis(x, np.argsort(x), 0), np.roll(x, np.int64(1)))
print(np.random.binomial(np.array([0, 10**6]), [0.5, 1.0]), np.lexsort((x,)), np.nonzero(x > 1)[0], x[x.argmax()])
import io
file = io.BytesIO(); np.savez(file, x=x); file.seek(0); print(np.load(file)["x"].dtype)
for wrong in (lambda: x[np.array([1.0])], lambda: np.choose([0.5], [[1]]), lambda: x.take(np.array([0.5]))):
    try:
        print(wrong())
    except (TypeError, IndexError) as error:
        print(type(error).__name__)
"""
    assert said(box, code) == [
        "[3 2] [1 2 3] [1] [0 1 1 1] [3 3 3 1 2 2] [7 7]",
        "[ 9 21  2  3  8] [ 3 10  2] [30 13]",
        "1 [2 0 1]",
        "[6] 1 1",
        "[3 7 1 2] [1 2] [1, 2, 2]",
        "(2, 3) (3, 1) [3 1 2 3 1 2]",
        "[1 2 3] [1 2 3] [2 3 1]",
        "[      0 1000000] [1 2 0] [0 2] 3",
        "int64",
        "IndexError",
        "TypeError",
        "TypeError",
    ]


def test_pandas(box: Sandbox) -> None:
    code = """
import io, pandas as pd
read = pd.read_csv(io.StringIO("a\\n1"))
print(pd.Series([1, 2]).dtype, pd.Series(np.arange(3)).dtype, read.a.dtype, pd.Series([100000] * 3).prod())
df = pd.DataFrame({"k": [1, 2, 1], "v": [100000, 2, 3]})
df["new"] = df.v * 100000; df.insert(0, "first", 1); df.insert(2, "middle", np.arange(3)); df["last"] = 0
print(list(df[["last", "first", "new"]].iloc[0]), list(df.drop(columns="k").columns), df.new.sum())
print(df.groupby("k").new.sum().to_dict(), df.merge(df, on="k").shape, pd.crosstab(df.k, df.v).shape)
print(df.sort_values("v").index.tolist(), df.iloc[np.array([0, 2])].v.tolist(), df.pivot_table(index="k").shape)
print(df.v.astype(int).dtype, df.v.rolling(2).sum().tolist()[1:], df.index.repeat(np.array([1, 0, 2])).tolist())
"""
    assert said(box, code) == [
        "int64 int64 int64 1000000000000000",
        "[0, 1, 10000000000] ['first', 'middle', 'v', 'new', 'last'] 10000500000",
        "{1: 10000300000, 2: 200000} (5, 11) (2, 3)",
        "[1, 2, 0] [100000, 3] (2, 5)",
        "int64 [100002.0, 5.0] [0, 2, 2]",
    ]


def test_pandas_that_another_module_imports(box: Sandbox) -> None:
    """Then it is not in the template that the program starts from."""
    box.files.write("/workspace/other.py", "import pandas\nframe = pandas.DataFrame({'a': [1]})\nframe['b'] = 2\n")
    box.files.write("/workspace/main.py", "import other\nprint(other.frame[['b', 'a']].values.tolist())\n")
    result = box.exec("python3 main.py", timeout=300)
    assert (result.stdout, result.stderr) == ("[[2, 1]]\n", "")


def test_other_libraries(box: Sandbox) -> None:
    code = """
from scipy import signal, sparse, stats
print(signal.peak_prominences([0, 2, 0], [1])[0], stats.binom.rvs(10, 1.0, size=2))
print(sparse.eye(3).tocsr()[np.arange(2)].shape)
from sklearn.utils.random import sample_without_replacement as sample
from sklearn.ensemble import RandomForestClassifier
print(sorted(map(int, sample(3, 3))), [len(set(sample(1000, n))) for n in (3, 500, 990)])
print(RandomForestClassifier(3, n_jobs=-1).fit(np.arange(8).reshape(4, 2), np.array([0, 1, 0, 1])).classes_)
"""
    assert said(box, code) == ["[2.] [10 10]", "(2, 3)", "[0, 1, 2] [3, 500, 990]", "[0 1]"]


def test_a_change_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="does not fit"):
        changed(b"\0" * 80_000_000, DEFAULT_INTEGER)

import numpy as np

a = np.arange(12, dtype=np.float64).reshape(3, 4)
print(a.shape, a.T[1].tolist(), a.mean(axis=0).tolist(), a[a % 2 == 0].sum(), (a > 5).any(axis=1).tolist())
print(np.where(a > 5, a, -1).tolist(), np.clip(a, 2, 7)[0].tolist(), np.cumsum(a[0]).tolist())
print(np.concatenate([a[:1], a[2:]]).tolist(), np.stack([a[0], a[1]]).shape, a[::2, 1:3].tolist(), a[[0, 2], [1, 3]].tolist())
rng = np.random.default_rng(7)
print(rng.integers(0, 100, 5).tolist(), np.round(rng.normal(size=3), 6).tolist())
print(np.unique(np.array(["b", "a", "b"]), return_counts=True)[1].tolist(), np.linspace(0, 1, 5).tolist(), np.histogram([1, 2, 2, 5], bins=[0, 2, 4, 6])[0].tolist())
print(np.einsum("ij,kj->ik", a, a).tolist()[0], np.fft.rfft([1.0, 0, 0, 0]).real.tolist(), np.isnan([1.0, np.nan]).tolist())
np.save("a.npy", a)
print((np.load("a.npy") == a).all(), np.loadtxt(["1 2", "3 4"]).tolist(), np.array2string(np.eye(2)))

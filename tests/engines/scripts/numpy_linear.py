import numpy as np

a = np.array([[4.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 2.0]])
b = np.array([1.0, 2.0, 3.0])
x = np.linalg.solve(a, b)
print(np.round(x, 6), np.allclose(a @ x, b), round(float(np.linalg.det(a)), 6))
values, vectors = np.linalg.eigh(a)
print(np.round(values, 5), np.allclose(vectors @ np.diag(values) @ vectors.T, a))
q, r = np.linalg.qr(a)
print(np.allclose(q @ r, a), np.linalg.matrix_rank(a), np.round(np.linalg.norm(a), 5))
u, s, vt = np.linalg.svd(np.arange(6.0).reshape(2, 3))
print(np.round(s, 6), np.round(np.linalg.pinv(np.arange(6.0).reshape(2, 3)), 4).tolist())
print(np.round(np.polyfit([0, 1, 2, 3], [1, 3, 7, 13], 2), 6).tolist())

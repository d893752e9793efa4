import numpy as np
from scipy import optimize, stats, integrate

print(round(integrate.quad(lambda x: x**2, 0, 3)[0], 6), np.round(optimize.brentq(lambda x: x**3 - 2, 0, 2), 8))
found = optimize.minimize(lambda p: (p[0] - 1) ** 2 + (p[1] + 2) ** 2, [0.0, 0.0])
print(np.round(found.x, 3).tolist(), found.success)
a, b = [5.1, 4.9, 5.6, 5.8], [6.1, 6.3, 5.9, 6.6]
print(np.round(stats.ttest_ind(a, b).pvalue, 5), np.round(stats.pearsonr(a, b).statistic, 5), round(float(stats.norm.cdf(1.96)), 5))

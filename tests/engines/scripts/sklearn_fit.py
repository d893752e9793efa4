import numpy as np
from sklearn.cluster import KMeans
from sklearn.linear_model import LinearRegression
from sklearn.metrics import accuracy_score
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier

x = np.arange(20.0).reshape(-1, 1)
model = LinearRegression().fit(x, 3 * x.ravel() + 2)
print(np.round(model.coef_, 4).tolist(), round(float(model.intercept_), 4), round(model.score(x, 3 * x.ravel() + 2), 4))
labels = (x.ravel() > 9).astype(int)
train_x, test_x, train_y, test_y = train_test_split(x, labels, test_size=0.3, random_state=0)
print(accuracy_score(test_y, DecisionTreeClassifier(random_state=0).fit(train_x, train_y).predict(test_x)), len(test_y))
clusters = KMeans(2, n_init=3, random_state=0).fit_predict(np.array([[0.0], [0.1], [9.0], [9.1]]))
print(clusters[0] == clusters[1], clusters[2] == clusters[3], clusters[0] != clusters[2])

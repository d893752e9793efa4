import random

rng = random.Random(42)
print([rng.randint(1, 6) for _ in range(8)], round(rng.random(), 12), rng.choice("abc"))
items = list(range(8))
rng.shuffle(items)
print(items, rng.sample(range(100), 4), round(rng.gauss(0, 1), 10))
random.seed("text")
print(random.randrange(10**6), random.choices("ab", weights=[9, 1], k=6))

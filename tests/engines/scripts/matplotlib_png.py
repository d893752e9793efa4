import struct
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

figure, axes = plt.subplots(1, 2, figsize=(6, 3), dpi=50)
axes[0].plot([1, 2, 3], [1, 4, 9], label="squares")
axes[0].set_title("line")
axes[0].legend()
axes[1].bar(["a", "b"], [3, 5])
figure.tight_layout()
figure.savefig("plot.png")
data = open("plot.png", "rb").read()
print(data[:8] == b"\x89PNG\r\n\x1a\n", struct.unpack(">II", data[16:24]), len(data) > 2000)
figure.savefig("plot.svg")
print("<svg" in open("plot.svg").read())

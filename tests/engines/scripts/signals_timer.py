import os, signal


def handler(number, frame):
    print("got", signal.Signals(number).name)


signal.signal(signal.SIGUSR1, handler)
os.kill(os.getpid(), signal.SIGUSR1)
print(signal.getsignal(signal.SIGUSR1) is handler)
signal.signal(signal.SIGUSR1, signal.SIG_IGN)
os.kill(os.getpid(), signal.SIGUSR1)
try:
    signal.raise_signal(signal.SIGINT)
    print("not here")
except KeyboardInterrupt:
    print("interrupted")

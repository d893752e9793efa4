"""Drive an interactive program through a terminal."""

from belljar import Sandbox

with Sandbox() as sandbox:
    terminal = sandbox.pty(
        "read -rp 'name? ' name; echo \"hello $name, your terminal has $(tput cols) columns\"", cols=60
    )
    shown = b""
    while b"name?" not in shown:
        shown += terminal.read(timeout=5)
    terminal.write("belljar\r")
    while chunk := terminal.read(timeout=5):
        shown += chunk
    print(shown.decode().replace("\r\n", "\n"), end="")

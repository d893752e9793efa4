"""podman - run programs in containers inside this sandbox (container, by the name of the program it resembles)"""

from belljar.bin import container

main = container.main

"""Machines, emulated, beside a bare QEMU with the same kernel, in one run. `--quick` for a look.

Wall-clock times depend on who else uses the processors; those of QEMU's own processor time hardly do, and stand beside.
"""

from __future__ import annotations

import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from belljar import BlockStore, Mount, Rootfs, Sandbox, Store
from belljar.vm.command import Disk, Hardware
from belljar.vm.memory_host import make_memory
from belljar.vm.parts_host import Parts, find_parts
from belljar.vm.process_host import Start, start_qemu
from belljar.vm.talk_host import await_hello

ROUNDS = 2 if "--quick" in sys.argv else 5
EXECS = 10 if "--quick" in sys.argv else 50
HARDWARE = Hardware(2, 512, "tcg")
MIB = 1 << 20


def processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def bare_boot(parts: Parts) -> tuple[float, float]:
    """Seconds until the first program of a machine speaks, without any walls; and QEMU's processor time."""
    root = parts.root
    ours, theirs = socket.socketpair()
    words = [
        f"{root}/usr/lib64/ld-linux-x86-64.so.2", "--library-path", f"{root}/usr/lib/x86_64-linux-gnu", parts.qemu,
        "-L", f"{root}/usr/share/qemu", "-L", f"{root}/usr/share/seabios", "-accel", "tcg,thread=multi,tb-size=128",
        "-machine", "microvm,acpi=on,rtc=on,isa-serial=on,pic=on", "-cpu", "max,-erms", "-smp", "2", "-m", "512",
        "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-kernel", f"{parts.boot}/vmlinux",
        "-initrd", f"{parts.boot}/initrd", "-append", "console=ttyS0 quiet panic=-1 tsc_early_khz=2600000 init=/init",
        "-device", "virtio-serial-device", "-chardev", f"socket,id=control,fd={theirs.fileno()}",
        "-device", "virtserialport,chardev=control,name=control",
    ]  # fmt: skip
    environment = {"QEMU_MODULE_DIR": f"{root}/usr/lib/x86_64-linux-gnu/qemu"}
    began = time.perf_counter()
    with subprocess.Popen(words, env=environment, pass_fds=[theirs.fileno()]) as process:
        ours.recv(1)
        taken = time.perf_counter() - began, processor_seconds(process.pid)
        process.kill()
    ours.close()
    theirs.close()
    return taken


def sealed_boot(parts: Parts) -> tuple[float, float]:
    memory = make_memory(HARDWARE.memory_mib * MIB)
    began = time.perf_counter()
    process = start_qemu(Start(parts, HARDWARE, Disk(), -1, memory))
    await_hello(process)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    taken = time.perf_counter() - began, processor_seconds(int(children[0]))
    process.end()
    process.control.close()
    os.close(memory)
    return taken


def continued() -> tuple[float, float, float]:
    """Seconds from nothing to the end of the first command; QEMU's; its share of memory that is its own."""
    began = time.perf_counter()
    with Sandbox(tier="microvm", accel="tcg") as sandbox:
        sandbox.exec(["true"])
        taken = time.perf_counter() - began
        pid = sandbox._link.worker.pids()[0]
        sizes = Path(f"/proc/{pid}/smaps_rollup").read_text()
        private = sum(int(line.split()[1]) for line in sizes.splitlines() if line.startswith("Private_"))
        return taken, processor_seconds(pid), private * 1024 / (HARDWARE.memory_mib * MIB)


def median(rows: list[tuple[float, ...]]) -> list[float]:
    return [statistics.median(column) for column in zip(*rows, strict=True)]


def show(name: str, figure: str, aim: str) -> None:
    sys.stdout.write(f"{name:<46} {figure:<44} {aim}\n")
    sys.stdout.flush()


def speeds() -> None:
    with tempfile.TemporaryDirectory() as place:
        Path(place, "big").write_bytes(os.urandom(MIB) * 48)
        rootfs = Rootfs.cow(Rootfs.builtin(), BlockStore.directory(Path(place, "blocks")), max_dirty_bytes=64 * MIB)
        mounts = {"/run/m": Mount.host(place)}
        with Sandbox(tier="microvm", accel="tcg", user="root", rootfs=rootfs, mounts=mounts) as sandbox:
            pid = sandbox._link.worker.pids()[0]
            times, before = [], processor_seconds(pid)
            for _ in range(EXECS):
                began = time.perf_counter()
                sandbox.exec(["true"])
                times.append(time.perf_counter() - began)
            used = (processor_seconds(pid) - before) / EXECS
            show("exec true", f"{statistics.median(times) * 1000:.1f} ms ({used * 1000:.0f} ms)", "<= 15 ms")
            once, before = "for i in $(seq {}); do /bin/true; done", processor_seconds(pid)
            sandbox.exec(once.format(1))
            middle = processor_seconds(pid)
            sandbox.exec(once.format(EXECS + 1))
            used = (processor_seconds(pid) - middle - (middle - before)) / EXECS
            show("the same by a shell inside", f"({used * 1000:.0f} ms of processor time)", "")
            for name, command, aim in (
                ("block write", "dd if=/dev/zero of=/var/big bs=1M count=48 conv=fsync", ">= 30 MB/s"),
                ("block read", "echo 3 > /proc/sys/vm/drop_caches; dd if=/var/big of=/dev/null bs=1M", ">= 50 MB/s"),
                ("FUSE read", "dd if=/run/m/big of=/dev/null bs=1M", ">= 30 MB/s"),
            ):
                show(name, sandbox.exec(command).stderr.splitlines()[-1].rpartition(", ")[2], aim)


def state() -> None:
    """What it takes to keep a machine, and to go on with it."""
    store = Store.memory()
    with Sandbox(tier="microvm", accel="tcg", store=store, user="root") as sandbox:
        sandbox.spawn("while :; do sleep 1; done")
        began = time.perf_counter()
        with sandbox.fork() as branch:
            forked = time.perf_counter() - began
            branch.exec(["true"])
            show("fork, to the branch's first command's end", f"{time.perf_counter() - began:.2f} s ({forked:.2f})", "")
        sandbox.exec("cp -r /etc /workspace/etc; head -c 10000000 /dev/urandom > /workspace/big").check()
        began = time.perf_counter()
        snapshot = sandbox.snapshot()
        show("snapshot of 10 MB and /etc", f"{time.perf_counter() - began:.2f} s", "")
    began = time.perf_counter()
    with Sandbox.restore(snapshot, accel="tcg") as again:
        again.exec(["true"])
        show("restored, to the first command's end", f"{time.perf_counter() - began:.2f} s", "")


def main() -> None:
    parts = find_parts()
    continued()
    bare, sealed, started = list[tuple[float, ...]](), list[tuple[float, ...]](), list[tuple[float, ...]]()
    for _ in range(ROUNDS):
        bare.append(bare_boot(parts))
        sealed.append(sealed_boot(parts))
        started.append(continued())
    (b, b_cpu), (s, s_cpu), (c, c_cpu, share) = median(bare), median(sealed), median(started)
    load = os.getloadavg()[0]
    sys.stdout.write(f"medians of {ROUNDS} rounds; load {load:.1f} on {os.cpu_count()} processors\n")
    show("bare boot to the first program", f"{b:.2f} s ({b_cpu:.2f} s of processor time)", "")
    show("sealed boot to the first program", f"{s:.2f} s ({s_cpu:.2f}): {s / b:.2f}x, {s_cpu / b_cpu:.2f}x", "<= 1.5x")
    show("continued, to the first command's end", f"{c:.2f} s ({c_cpu:.2f}): {c / s:.2f}x of a boot", "<= 0.8 s, 0.3x")
    show("memory of its own", f"{share:.0%}", "<= 60 %")
    speeds()
    state()


if __name__ == "__main__":
    main()

"""Virtual environments: `python3 -m venv`, which is a command of the sandbox, from a program."""

import subprocess

__all__ = ["EnvBuilder", "create"]


class EnvBuilder:
    """Makes environments; options as of the module of this name elsewhere."""

    def __init__(
        self,
        system_site_packages=False,
        clear=False,
        symlinks=False,
        upgrade=False,
        with_pip=False,
        prompt=None,
        upgrade_deps=False,
        *,
        scm_ignore_files=frozenset(),
    ):
        self.system_site_packages = system_site_packages
        self.clear = clear
        self.symlinks = symlinks
        self.upgrade = upgrade
        self.with_pip = with_pip
        self.prompt = prompt
        self.upgrade_deps = upgrade_deps
        self.scm_ignore_files = scm_ignore_files

    def create(self, env_dir):
        options = ["--system-site-packages"] * self.system_site_packages + ["--clear"] * self.clear
        options += ["--without-pip"] * (not self.with_pip)
        if self.prompt is not None:
            options += ["--prompt", self.prompt]
        _run([*options, "--", str(env_dir)])


def create(
    env_dir,
    system_site_packages=False,
    clear=False,
    symlinks=False,
    with_pip=False,
    prompt=None,
    upgrade_deps=False,
    *,
    scm_ignore_files=frozenset(),
):
    EnvBuilder(system_site_packages, clear, symlinks, False, with_pip, prompt, upgrade_deps).create(env_dir)


def _run(args):
    subprocess.run(["/usr/bin/python3", "-m", "venv", *args], check=True)  # noqa: S603 - in the guest

"""The host image: a small root of our own beneath which the host's /usr is shown.

It is an allow-list. /etc holds only what loaders, name services, certificates and language run-times need;
nothing of /root, /home, /run, /var, /srv, /opt or /mnt is in it, and no file that others may not read (of
what is laid over it, `veil` covers those).
"""

from __future__ import annotations

import shutil
import stat
from pathlib import Path

from orchard_core.sandbox.local.account import ROOT
from orchard_core.sandbox.local.command import AGENT_INSIDE

_ETC = (
    "alternatives", "bash.bashrc", "bash_completion.d", "ca-certificates", "ca-certificates.conf",
    "crypto-policies", "debian_version", "default/locale", "fonts", "gai.conf", "host.conf", "inputrc",
    "java-*", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "lsb-release", "locale.alias", "locale.conf",
    "localtime", "login.defs", "magic", "magic.mime", "mime.types", "os-release", "pki/ca-trust/extracted",
    "pki/tls/certs", "profile", "protocols", "python3", "python3.*", "redhat-release", "rpc", "services",
    "shells", "skel", "ssl/cert.pem", "ssl/certs", "ssl/openssl.cnf", "terminfo", "timezone", "vim",
)  # fmt: skip
_FILES = {
    "etc/hosts": "127.0.0.1 localhost sandbox\n::1 localhost\n",
    "etc/hostname": "sandbox\n",
    "etc/resolv.conf": "# There is no name service here; a proxy, where there is one, resolves names.\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n"
    "services: files\nprotocols: files\n",
    "etc/passwd": ROOT.passwd,
    "etc/group": ROOT.group,
    AGENT_INSIDE.lstrip("/"): "",
}
_DIRECTORIES = {
    "dev": 0o755, "etc": 0o755, "home": 0o755, "mnt": 0o755, "opt": 0o755, "proc": 0o755, "root": 0o700,
    "run": 0o755, "srv": 0o755, "tmp": 0o1777, "usr": 0o755, "var": 0o755, "var/cache": 0o755,
    "var/lib": 0o755, "var/log": 0o755, "var/tmp": 0o1777, "workspace": 0o755,
}  # fmt: skip
_TOP = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_LARGEST = 4 << 20


def build_base(base: Path, host: Path = Path("/")) -> list[tuple[str, Path]]:
    """Fill `base`, and return (name, source) of the host's directories to lay over it: /usr, and /bin,
    /lib and the like where they are not mere links into /usr."""
    for name, mode in _DIRECTORIES.items():
        (base / name).mkdir(parents=True, exist_ok=True)
        (base / name).chmod(mode)
    layers = [("usr", host / "usr")]
    for name in _TOP:
        source = host / name
        if source.is_symlink():
            (base / name).symlink_to(source.readlink())
        elif source.is_dir():
            (base / name).mkdir(exist_ok=True)
            layers.append((name, source))
    for pattern in _ETC:
        for source in sorted((host / "etc").glob(pattern)):
            if _open_to_all(source.parent, host):
                _copy(source, base / "etc" / source.relative_to(host / "etc"))
    for name, text in _FILES.items():
        _replace(base / name, text)
    return layers


def _open_to_all(directory: Path, host: Path) -> bool:
    """Everybody may enter it, and whatever lies between it and the host's root."""
    steps = [directory, *directory.parents]
    return all(step.stat().st_mode & 0o001 for step in steps[: steps.index(host)])


def _copy(source: Path, target: Path) -> None:
    """Copy what everybody may read; links stay links, and everything but files and directories stays out."""
    try:
        info = source.lstat()
        if stat.S_ISLNK(info.st_mode):
            target.parent.mkdir(parents=True, exist_ok=True)
            target.symlink_to(source.readlink())
        elif stat.S_ISDIR(info.st_mode) and info.st_mode & 0o005 == 0o005:
            target.mkdir(parents=True, exist_ok=True)
            for entry in source.iterdir():
                _copy(entry, target / entry.name)
        elif stat.S_ISREG(info.st_mode) and info.st_mode & 0o004 and info.st_size <= _LARGEST:
            _copy_file(source, target)
    except OSError:
        # One odd file of the host must not keep every sandbox from starting; what is missing shows inside.
        return


def _copy_file(source: Path, target: Path) -> None:
    content = source.read_bytes()
    if b"PRIVATE KEY-----" in content:
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)
    target.chmod(stat.S_IMODE(source.stat().st_mode) & 0o755)


def _replace(path: Path, text: str) -> None:
    path.unlink(missing_ok=True)
    path.write_text(text)
    path.chmod(0o644)


def copy_base(base: Path, target: Path) -> None:
    """A whole copy, for file systems that cannot carry an overlay."""
    shutil.copytree(base, target, symlinks=True, dirs_exist_ok=True)

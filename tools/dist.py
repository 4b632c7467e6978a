#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a tarball, a wheel and a .deb of what `make ZIG=1` has built, and a tarball of the sources that the LGPL asks for.

The same input gives the same bytes: files are sorted, belong to root, and have the time of --epoch.
"""

import argparse
import base64
import gzip
import hashlib
import io
import lzma
import os
import subprocess
import tarfile
import time
import zipfile

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PROGRAMS = ["probing-top", "probing"]
SUMMARY = "htop for training jobs: what every thread of a running Python or PyTorch process is doing"
TAG = "py3-none-manylinux2014_x86_64"
# In share and in each of its folders: pip removes a folder only if a file of ours lies in it, not if only folders do.
COMPLETION = """\
What Tab completes of probing-top and probing in bash, zsh and fish is in this
"share". If your shell does not find it by itself, put its lines into the file that
it reads when it starts. PREFIX is the folder that has this "share".

bash    source PREFIX/share/bash-completion/completions/probing
        source PREFIX/share/bash-completion/completions/probing-top
zsh     fpath=(PREFIX/share/zsh/site-functions $fpath)      # before compinit
fish    source PREFIX/share/fish/vendor_completions.d/probing.fish
        source PREFIX/share/fish/vendor_completions.d/probing-top.fish
"""


def read(*path):
    with open(os.path.join(*path), "rb") as file:
        return file.read()


def names(*folder):
    return sorted(os.listdir(os.path.join(*folder)))


class Contents:
    """Files of a package: its path -> (bytes, mode)."""

    def __init__(self):
        self.files = {}

    def add(self, path, data, mode=0o644):
        self.files[path] = (data, mode)

    def total(self):
        return sum(len(data) for data, _ in self.files.values())


def tar_bytes(contents, epoch, prefix=""):
    """A tar with the folders of its files, in the GNU form."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as tar:
        folders = set()

        def put(path, data, mode):
            info = tarfile.TarInfo(prefix + path)
            info.mtime, info.uname, info.gname, info.mode = epoch, "root", "root", mode
            if data is None:
                info.type = tarfile.DIRTYPE
                tar.addfile(info)
            else:
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))

        for path in sorted(contents.files):
            parts = path.split("/")[:-1]
            for n in range(1, len(parts) + 1):
                folder = "/".join(parts[:n])
                if folder not in folders:
                    folders.add(folder)
                    put(folder, None, 0o755)
            put(path, *contents.files[path])
    return out.getvalue()


def gzipped(data, epoch):
    out = io.BytesIO()
    with gzip.GzipFile(filename="", fileobj=out, mode="wb", compresslevel=9, mtime=epoch) as file:
        file.write(data)
    return out.getvalue()


def xz(data):
    return lzma.compress(data, preset=9)


def common(build, contents, bindir, libdir, themes, share=None, compress=None):
    for name in PROGRAMS:
        contents.add(f"{bindir}{name}", read(build, name), 0o755)
    for name in ("libprobing.so", "probing-relay"):
        contents.add(f"{libdir}{name}", read(build, name), 0o755)
    for name in names(build, "themes"):
        contents.add(f"{themes}{name}", read(build, "themes", name))
    for name in PROGRAMS if share else ():
        page = read(build, "share", "man", f"{name}.1")
        contents.add(f"{share}man/man1/{name}.1{'.gz' if compress else ''}", compress(page) if compress else page)


def completions(build, contents, share, zsh="zsh/site-functions"):
    for name in PROGRAMS:
        contents.add(f"{share}bash-completion/completions/{name}", read(build, "share", "bash", name))
        contents.add(f"{share}{zsh}/_{name}", read(build, "share", "zsh", name))
        contents.add(f"{share}fish/vendor_completions.d/{name}.fish", read(build, "share", "fish", name))


def make_tarball(o):
    c = Contents()
    folder = f"probing-top-{o.version}-x86_64-linux/"
    common(o.build, c, folder, folder, f"{folder}themes/", f"{folder}share/")
    completions(o.build, c, f"{folder}share/")
    c.add(f"{folder}LICENSE", read(HERE, "LICENSE"))
    c.add(f"{folder}README.md", read(HERE, "README.md"))
    c.add(f"{folder}THIRD_PARTY.md", read(o.build, "THIRD_PARTY.md"))
    return f"probing-top-{o.version}-x86_64-linux.tar.gz", gzipped(tar_bytes(c, o.epoch), o.epoch), c


def metadata(o):
    readme = read(HERE, "README.md").decode()
    return (f"Metadata-Version: 2.1\nName: probing-top\nVersion: {o.version}\nSummary: {SUMMARY}\nLicense: Apache-2.0\n"
            "License-File: LICENSE\nLicense-File: THIRD_PARTY.md\n"
            "Classifier: Operating System :: POSIX :: Linux\nClassifier: Environment :: Console :: Curses\n"
            "Classifier: Topic :: Software Development :: Debuggers\nRequires-Python: >=3.4\n"
            f"Description-Content-Type: text/markdown\n\n{readme}").encode()


def make_wheel(o):
    """Programs in the scheme's bin, the agent and themes in its lib/probing, what shells complete in its share, the .pth and what it loads in
    site-packages, whose way to the agent is the same in each environment: ../../../lib/probing."""
    c = Contents()
    info, data = f"probing_top-{o.version}.dist-info", f"probing_top-{o.version}.data"
    common(o.build, c, f"{data}/scripts/", f"{data}/data/lib/probing/", f"{data}/data/lib/probing/themes/")
    completions(o.build, c, f"{data}/data/share/")
    for folder in ("", "bash-completion/", "zsh/", "fish/"):
        c.add(f"{data}/data/share/{folder}probing-top.txt", COMPLETION.encode())
    start = read(HERE, "python", "_probing_start.py").replace(b"@AGENT@", b"../../../lib/probing/libprobing.so")
    c.add("_probing_start.py", start)
    c.add("probing.pth", read(HERE, "python", "probing.pth"))
    c.add(f"{info}/METADATA", metadata(o))
    c.add(f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: probing-top {o.version}\nRoot-Is-Purelib: false\nTag: {TAG}\n".encode())
    c.add(f"{info}/LICENSE", read(HERE, "LICENSE"))
    c.add(f"{info}/THIRD_PARTY.md", read(o.build, "THIRD_PARTY.md"))
    record = "".join(f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(body).digest()).rstrip(b'=').decode()},{len(body)}\n"
                     for path, (body, _) in sorted(c.files.items()))
    c.add(f"{info}/RECORD", (record + f"{info}/RECORD,,\n").encode())
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        order = sorted(c.files, key=lambda path: (".dist-info/" in path, path.endswith("RECORD"), path))
        for path in order:
            body, mode = c.files[path]
            item = zipfile.ZipInfo(path, time.gmtime(o.epoch)[:6])
            item.compress_type, item.create_system, item.external_attr = zipfile.ZIP_DEFLATED, 3, (0o100000 | mode) << 16
            archive.writestr(item, body)
    return f"probing_top-{o.version}-{TAG}.whl", out.getvalue(), c


def ar(members, epoch):
    out = b"!<arch>\n"
    for name, body in members:
        out += f"{name:<16}{epoch:<12}{0:<6}{0:<6}{'100644':<8}{len(body):<10}`\n".encode() + body + b"\n" * (len(body) % 2)
    return out


def make_deb(o):
    c = Contents()
    common(o.build, c, "usr/bin/", "usr/lib/probing/", "usr/lib/probing/themes/", "usr/share/", lambda page: gzipped(page, 0))
    completions(o.build, c, "usr/share/", "zsh/vendor-completions")
    c.add("usr/share/doc/probing-top/copyright",
          b"probing-top: Apache-2.0; on Debian the text of that licence is /usr/share/common-licenses/Apache-2.0.\n"
          b"What is linked into it has licences of its own; they follow.\n\n" + read(o.build, "THIRD_PARTY.md"))
    control = Contents()
    control.add("control", (f"Package: probing-top\nVersion: {o.version}\nArchitecture: amd64\nMaintainer: the authors of probing-top\n"
                            f"Installed-Size: {(c.total() + 1023) // 1024}\nDepends: libc6 (>= 2.17)\nSection: utils\nPriority: optional\n"
                            f"Description: {SUMMARY}\n Attaches to a running process, which need not be prepared.\n").encode())
    control.add("md5sums", "".join(f"{hashlib.md5(body).hexdigest()}  {path}\n" for path, (body, _) in sorted(c.files.items())).encode())
    members = [("debian-binary", b"2.0\n"), ("control.tar.xz", xz(tar_bytes(control, o.epoch, "./"))),
               ("data.tar.xz", xz(tar_bytes(c, o.epoch, "./")))]
    return f"probing-top_{o.version}_amd64.deb", ar(members, o.epoch), c


def source_files():
    """Of a clone what git knows, of an unpacked source tarball all but what was built."""
    if os.path.exists(os.path.join(HERE, ".git")):
        listed = subprocess.run(["git", "-C", HERE, "ls-files", "-z"], check=True, stdout=subprocess.PIPE).stdout.decode()
        return [path for path in listed.split("\0") if path and os.path.isfile(os.path.join(HERE, path))]
    found = []
    for folder, folders, files in os.walk(HERE):
        folders[:] = [f for f in folders if f not in ("build", "__pycache__")]
        found += [os.path.relpath(os.path.join(folder, file), HERE) for file in files]
    return [path for path in found if path != "COMMIT"]


def make_sources(o):
    c = Contents()
    folder = f"probing-top-{o.version}-sources/"
    for path in source_files():
        full = os.path.join(HERE, path)
        c.add(folder + path, read(full), 0o755 if os.access(full, os.X_OK) else 0o644)
    c.add(f"{folder}COMMIT", f"{o.commit}\n".encode())
    for name in names(o.deps, "src"):
        if name.startswith(("elfutils-", "libiberty-")) and name.endswith(".tar"):
            c.add(f"{folder}build/zig/deps/src/{name}", read(o.deps, "src", name))
    return f"probing-top-{o.version}-sources.tar", tar_bytes(c, o.epoch), c


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("build", "deps", "version", "commit", "out"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--epoch", type=int, required=True)
    options = parser.parse_args()
    os.makedirs(options.out, exist_ok=True)
    for make in (make_tarball, make_wheel, make_deb, make_sources):
        name, body, contents = make(options)
        path = os.path.join(options.out, name)
        with open(path + ".new", "wb") as file:
            file.write(body)
        os.replace(path + ".new", path)
        print(f"dist: {len(body) / 1e6:5.1f} MB ({contents.total() / 1e6:.1f} MB unpacked, {len(contents.files)} files)  {path}")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes THIRD_PARTY.md: name, version, licence and source of all that is linked into the programs and the agent of `make ZIG=1`, and the
texts of the licences.

What is linked is read from the build: every library on the linker's command lines (BUILD/link-flags and the archives of DEPS/lib). One that
LICENCES does not know ends it, and so does one whose licence's text is not there.
"""

import argparse
import os
import re
import sys

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# Of each source package: its archives, its licence (SPDX), the files of its source that have the text, and what is to be said.
LICENCES = {
    "libwebsockets": (["libwebsockets.a"], "MIT", ["LICENSE"], "Some of its files have the licences BSD-3-Clause, Zlib or CC0; see its text. "
                      "Changed: `mend_libwebsockets` of tools/deps.sh, which is in the sources, has each place and why."),
    "libunwind": (["libunwind.a", "libunwind-ptrace.a", "libunwind-x86_64.a"], "MIT", ["COPYING"], ""),
    "zlib": (["libz.a"], "Zlib", ["LICENSE"], ""),
    "xz-utils": (["liblzma.a"], "0BSD", ["COPYING", "COPYING.0BSD"], "liblzma alone, which is 0BSD; only its decoders."),
    "elfutils": (["libdw.a", "libelf.a", "libeu.a"], "LGPL-3.0-or-later", ["COPYING-LGPLV3", "COPYING"],
                 "libelf, libdw and libeu may be had under LGPL-3.0-or-later or GPL-2.0-or-later; they are used here under the LGPL. "
                 "Unchanged. In the programs alone, not in the agent."),
    "libiberty": (["libiberty.a"], "LGPL-2.0-or-later", ["libiberty/COPYING.LIB"],
                  "Only cp-demangle.c (GPL-2.0-or-later) and rust-demangle.c (LGPL-2.0-or-later), both with the permission \"to link the "
                  "compiled version of this file into combinations with other programs, and to distribute those combinations without any "
                  "restriction coming from the use of this file\", and safe-ctype.c (LGPL-2.0-or-later). In the programs alone, not in "
                  "the agent."),
    "sqlite3": (["libsqlite3.a"], "blessing", ["LICENSE.md"], "Public domain."),
    "msgpack-c": (["libmsgpackc.a"], "BSL-1.0", ["COPYING", "LICENSE_1_0.txt"], ""),
    "ncurses": (["libncursesw.a"], "X11-distribute-modifications-variant", ["COPYING"], ""),
    "libedit": (["libedit.a"], "BSD-3-Clause", ["COPYING"], ""),
}

INTRODUCTION = """\
# Third-party software

`probing-top` itself is under the Apache License 2.0 (`LICENSE`). The programs `probing-top`, `probing` and `probing-relay` and the agent
`libprobing.so` of version {version} (commit {commit}) contain the libraries below, built from the sources named, unchanged unless noted.

| name | version | licence | SHA-256 of the source | from |
|---|---|---|---|---|
{rows}

{notes}

## The LGPL

libelf and libdw (elfutils) and one file of libiberty are linked statically. The LGPL asks that you can replace them. Nothing keeps you from
it: `probing-top-{version}-sources.tar`, which goes with the packages, has the source of all of this program, with what builds it, and the
sources of elfutils and libiberty. Put another version into `deps-static.lock` and run `make ZIG=1`. You may change those libraries for your
own use, and take the programs apart to find errors in such changes.
"""


def pins():
    for name in ("deps.lock", "deps-static.lock"):
        with open(os.path.join(HERE, name), encoding="utf-8") as file:
            for line in file:
                fields = line.split("#")[0].split()
                if fields:
                    yield fields


def changed():
    """Packages that the build changes before it compiles them."""
    found = set()
    for script in ("deps.sh", "deps_static.sh"):
        with open(os.path.join(HERE, "tools", script), encoding="utf-8") as file:
            found |= set(re.findall(r"^mend_(\w+)\(\)", file.read(), re.M))
    return found


def linked(build, deps):
    with open(os.path.join(build, "link-flags"), encoding="utf-8") as file:
        flags = file.read()
    archives = set(re.findall(r"(lib[\w.+-]+\.a)\b", flags)) | {name for name in os.listdir(os.path.join(deps, "lib"))
                                                              if re.match(r"lib(websockets|unwind).*\.a$", name)}
    wanted = ("libwebsockets.a", "libunwind.a", "libunwind-ptrace.a", "libunwind-x86_64.a")
    return {a for a in archives if not re.match(r"lib(websockets|unwind)", a) or a in wanted}


def licence_text(deps, package, name):
    path = os.path.join(deps, "licences", package, name)
    if not os.path.exists(path):
        sys.exit(f"third-party: {path} is missing: the licence of {package}")
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read().strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("--build", "--deps", "--zig", "-o", "--version", "--commit"):
        parser.add_argument(name, required=True, dest=name.strip("-"))
    options = parser.parse_args()
    known = {archive: name for name, (archives, *_) in LICENCES.items() for archive in archives}
    archives = linked(options.build, options.deps)
    for name in sorted(changed() - {name for name, (*_, note) in LICENCES.items() if "Changed:" in note}):
        sys.exit(f"third-party: {name} is changed (tools/deps.sh), and its entry does not say so (tools/third_party.py)")
    for archive in sorted(archives - known.keys()):
        sys.exit(f"third-party: {archive} is linked, and nothing is known of its licence (tools/third_party.py)")
    used = {known[archive] for archive in archives}
    rows, notes, texts = [], [], []
    for name, version, sha, url in pins():
        if name not in used:
            sys.exit(f"third-party: {name} is built, and not linked")
        _, licence, files, note = LICENCES[name]
        rows.append(f"| {name} | {version} | {licence} | `{sha}` | {url if url != '-' else 'the Debian source package'} |")
        if note:
            notes.append(f"* **{name}**: {note}")
        for file in files:
            texts.append(f"## {name}: {file}\n\n```\n{licence_text(options.deps, name, file)}\n```\n")
    with open(os.path.join(HERE, "mk", "zig.txt"), encoding="utf-8") as file:
        zig = re.search(r"^ziglang==(\S+) --hash=sha256:(\w+)", file.read(), re.M)
    rows.append(f"| Zig's runtime | {zig.group(1)} | MIT | `{zig.group(2)}` | the wheel `ziglang` of PyPI |")
    notes.append("* **Zig's runtime**: the start files and the few functions of glibc that belong in every program (LGPL-2.1-or-later, with the "
                 "permission to link them into any program), and Zig's compiler-rt (MIT). glibc itself is your system's.")
    rows.append(f"| musl | as in Zig {zig.group(1)} | MIT | `{zig.group(2)}` | the wheel `ziglang` of PyPI |")
    notes.append("* **musl**: the C library of `probing-relay`, in that file alone, with libwebsockets, libunwind, sqlite3 and msgpack-c of "
                 "the above, and the agent.")
    with open(os.path.join(options.zig, "ziglang", "lib", "libc", "musl", "COPYRIGHT"), encoding="utf-8") as file:
        texts.append(f"## musl: COPYRIGHT\n\n```\n{file.read().strip()}\n```\n")
    text = INTRODUCTION.format(version=options.version, commit=options.commit, rows="\n".join(rows), notes="\n".join(notes))
    with open(options.o, "w", encoding="utf-8") as out:
        out.write(text + "\n" + "\n".join(texts))
    print(f"third-party: {len(rows)} parts, {options.o}")


if __name__ == "__main__":
    main()

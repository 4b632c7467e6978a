# SPDX-License-Identifier: Apache-2.0
"""A file system (FUSE) in memory that answers for as long as it is told to.

    python3 answering_files.py FOLDER       as root; prints "ready" when it is mounted there, until its standard input ends
Lines of its standard input: "hang N" (answer N more requests, then none), "go" (answer whoever waits with an error, and all others again); each
is answered by "so". Nothing is kept by the kernel: each use of a name or of an inode's rights asks again. Exit status 77: it cannot be done here.
"""

import errno
import os
import stat
import struct
import sys
import threading

from fuse_mount import mount, unmount

LOOKUP, FORGET, GETATTR, SETATTR, MKNOD, MKDIR, UNLINK, RMDIR, RENAME, OPEN, READ, WRITE, STATFS, RELEASE = 1, 2, 3, 4, 8, 9, 10, 11, 12, 14, 15, 16, 17, 18
FLUSH, INIT, OPENDIR, READDIR, RELEASEDIR, INTERRUPT, BATCH_FORGET, RENAME2 = 25, 26, 27, 28, 29, 36, 42, 45


class Files:
    def __init__(self):
        self.nodes = {1: {"mode": stat.S_IFDIR | 0o1777, "uid": 0, "gid": 0, "data": b"", "names": {}}}

    def attributes(self, number):
        n = self.nodes[number]
        return struct.pack("<6Q10I", number, len(n["data"]), 0, 0, 0, 0, 0, 0, 0, n["mode"], 1, n["uid"], n["gid"], 0, 4096, 0)

    def entry(self, number):
        return struct.pack("<4Q2I", number, 0, 0, 0, 0, 0) + self.attributes(number)

    def make(self, folder, name, mode, uid, gid):
        number = max(self.nodes) + 1
        self.nodes[number] = {"mode": mode, "uid": uid, "gid": gid, "data": b"", "names": {}}
        folder["names"][name] = number
        return self.entry(number)

    def set(self, number, body):
        n = self.nodes[number]
        valid, _, _, size, *_, mode, _, uid, gid, _ = struct.unpack_from("<2I6Q8I", body)
        if valid & 1:
            n["mode"] = stat.S_IFMT(n["mode"]) | mode & 0o7777
        n["uid"], n["gid"] = uid if valid & 2 else n["uid"], gid if valid & 4 else n["gid"]
        if valid & 8:
            n["data"] = n["data"][:size].ljust(size, b"\0")
        return struct.pack("<Q2I", 0, 0, 0) + self.attributes(number)

    def answer(self, opcode, number, uid, gid, body):
        """Bytes, or the number of an error."""
        n = self.nodes.get(number)
        if n is None:
            return errno.ENOENT
        if opcode == LOOKUP:
            found = n["names"].get(body[:-1])
            return self.entry(found) if found else errno.ENOENT
        if opcode == GETATTR:
            return struct.pack("<Q2I", 0, 0, 0) + self.attributes(number)
        if opcode == SETATTR:
            return self.set(number, body)
        if opcode == MKNOD:
            return self.make(n, body[16:-1], struct.unpack_from("<I", body)[0], uid, gid)
        if opcode == MKDIR:
            return self.make(n, body[8:-1], stat.S_IFDIR | struct.unpack_from("<I", body)[0], uid, gid)
        if opcode in (UNLINK, RMDIR):
            return b"" if n["names"].pop(body[:-1], None) else errno.ENOENT
        if opcode in (RENAME, RENAME2):
            old, new = body[8 if opcode == RENAME else 16:-1].split(b"\0")
            self.nodes[struct.unpack_from("<Q", body)[0]]["names"][new] = n["names"].pop(old)
            return b""
        if opcode in (OPEN, OPENDIR):
            return struct.pack("<Q2I", 1, 1, 0)
        if opcode in (READ, READDIR):
            _, offset, size = struct.unpack_from("<2QI", body)
            return n["data"][offset:offset + size]
        if opcode == WRITE:
            _, offset, size = struct.unpack_from("<2QI", body)
            n["data"] = n["data"][:offset].ljust(offset, b"\0") + body[40:40 + size] + n["data"][offset + size:]
            return struct.pack("<2I", size, 0)
        if opcode == STATFS:
            return struct.pack("<5Q4I6I", 1000, 1000, 1000, 1000, 1000, 4096, 255, 4096, 0, *([0] * 6))
        return b"" if opcode in (FLUSH, RELEASE, RELEASEDIR) else errno.ENOSYS


class Server:
    def __init__(self, device):
        self.device, self.files, self.left, self.waiting, self.lock = device, Files(), None, [], threading.Lock()

    def reply(self, unique, answer):
        error, body = (-answer, b"") if isinstance(answer, int) else (0, answer)
        try:
            os.write(self.device, struct.pack("<IiQ", 16 + len(body), error, unique) + body)
        except OSError:
            pass  # nobody waits any more

    def serve(self):
        while True:
            try:
                data = os.read(self.device, 1 << 18)
            except OSError:
                return
            _, opcode, unique, node, uid, gid = struct.unpack_from("<IIQQII", data)
            if opcode == INIT:
                self.reply(unique, struct.pack("<4I2H2I2H8I", 7, 31, 0, 0, 16, 12, 4096, 1, 0, 0, *([0] * 8)))
            elif opcode not in (FORGET, BATCH_FORGET, INTERRUPT):
                with self.lock:
                    if self.left == 0:
                        self.waiting.append(unique)
                        continue
                    if self.left is not None:
                        self.left -= 1
                self.reply(unique, self.files.answer(opcode, node, uid, gid, data[40:]))

    def obey(self, line):
        with self.lock:
            waiting = []
            if line[0] == "hang":
                self.left = int(line[1])
            else:
                self.left, waiting, self.waiting = None, self.waiting, []
        for unique in waiting:
            self.reply(unique, errno.EIO)


def main():
    folder = sys.argv[1]
    device = mount(folder, "answering", "rootmode=41777,default_permissions")
    server = Server(device)
    threading.Thread(target=server.serve, daemon=True).start()
    print("ready", flush=True)
    for line in sys.stdin:
        server.obey(line.split())
        print("so", flush=True)
    server.obey(["go"])
    unmount(folder)
    os._exit(0)  # the device is closed, and whoever waits gets an error


main()

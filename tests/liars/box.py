# SPDX-License-Identifier: Apache-2.0
"""A box for liars: the machine as it is, but whatever is changed is changed in a layer above it, which is looked at.

Namespaces of mounts, processes, network and System V objects of our own; the root is an overlay whose upper folder is in memory, /dev has
a few devices only. So a target, an agent or a client that writes, makes, removes or only opens for writing what it should not is seen
(the file is then in the upper folder), and the machine is not harmed.

    box.enter(sys.argv)                    # runs this program again, inside; returns there, as process 1. SystemExit(77) where it cannot be
    box = Box()                            # the root is the overlay from here on
    box.plant(); box.begin()               # victims; what there is now is as it has to be
    ...
    box.changes()                          # what changed that may not: a list of words, [] is well
"""

import ctypes
import errno
import hashlib
import os
import shutil
import stat
import struct
import subprocess
import sys

OTHER = 65534   # the user that the hostile processes are of
THIRD = 54321   # somebody else
SECRET = "VICTIM-SECRET-b7f2"
VICTIMS = "/victims"
SCRATCH = "/scratch"  # where clients may write
LIBC = ctypes.CDLL(None, use_errno=True)
MS_RDONLY, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE, MNT_DETACH = 1, 32, 4096, 16384, 1 << 18, 2
# Where clients, agents and hostile processes may leave something; relative to the root.
ALLOWED = ("scratch/", "tmp/probing-", "var/tmp/probing-", "run/probing-", "root/.local/", "root/.cache/", "root/.config/", "victims/")
IN_UNMOUNT, IN_IGNORED = 0x2000, 0x8000
IN_OPEN, IN_MODIFY, IN_ATTRIB, IN_MOVE_SELF, IN_DELETE_SELF, IN_CLOSE_WRITE = 0x20, 0x2, 0x4, 0x800, 0x400, 0x8


def skip(why):
    print(f"needs namespaces: {why}")
    raise SystemExit(77)


def check(result, what):
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def mount(source, target, kind, flags=0, data=None):
    encode = lambda text: None if text is None else os.fsencode(text)
    check(LIBC.mount(encode(source), encode(target), encode(kind), ctypes.c_ulong(flags), encode(data)), f"mount {target}")


def enter(argv, marker="--inside"):
    """Does nothing inside; outside it runs this program inside, and ends as that does."""
    if marker in argv:
        argv.remove(marker)
        return
    if os.geteuid() != 0 or not shutil.which("unshare"):
        skip("this is not root, or unshare is not installed")
    flags = ["--mount", "--pid", "--fork", "--kill-child", "--net", "--ipc"]
    if subprocess.run(["unshare", *flags, "true"], capture_output=True, check=False).returncode != 0:
        skip("unshare may not make one")
    done = subprocess.run(["unshare", *flags, sys.executable, *argv, marker], check=False,
                          env=dict(os.environ, PYTHONDONTWRITEBYTECODE="1"))
    raise SystemExit(done.returncode if done.returncode >= 0 else 1)


def submounts():
    """Folders on other file systems, but for those that the box has of its own."""
    found = []
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        for line in file:
            at = line.split()[4].replace("\\040", " ")
            if at != "/" and not any(at == own or at.startswith(own + "/") for own in ("/proc", "/sys", "/dev")) and os.path.isdir(at):
                found.append(at)
    return sorted(set(found))


class Box:
    def __init__(self):
        mount(None, "/", None, MS_REC | MS_PRIVATE)
        mounts = submounts()
        self.lower = os.open("/", os.O_PATH | os.O_DIRECTORY)
        place = "/mnt"
        mount("liars", place, "tmpfs", 0, "mode=0700")
        for name in ("upper", "work", "root"):
            os.mkdir(f"{place}/{name}")
        os.chmod(f"{place}/upper", 0o755)
        root = f"{place}/root"
        try:
            mount("overlay", root, "overlay", 0, f"lowerdir=/,upperdir={place}/upper,workdir={place}/work")
        except OSError as error:
            skip(f"no overlay over the root: {error.strerror}")
        self.upper = os.open(f"{place}/upper", os.O_RDONLY | os.O_DIRECTORY)
        for at in mounts:  # what is on another file system can be read, and no more
            if at != place and not at.startswith(place + "/"):
                mount(at, root + at, None, MS_BIND)
                mount(None, root + at, None, MS_BIND | MS_REMOUNT | MS_RDONLY)
        mount("proc", f"{root}/proc", "proc")
        mount("sysfs", f"{root}/sys", "sysfs", MS_RDONLY)
        self.make_dev(f"{root}/dev")
        os.mkdir(f"{root}{SCRATCH}")
        os.mkdir(f"{root}{SCRATCH}/old")
        check(LIBC.syscall(155, os.fsencode(root), os.fsencode(f"{root}{SCRATCH}/old")), "pivot_root")
        os.chdir("/")
        check(LIBC.umount2(os.fsencode(f"{SCRATCH}/old"), MNT_DETACH), "umount of the old root")
        os.rmdir(f"{SCRATCH}/old")
        os.chmod(SCRATCH, 0o755)
        subprocess.run(["ip", "link", "set", "lo", "up"], check=False, capture_output=True)
        self.dev = os.open("/dev", os.O_RDONLY | os.O_DIRECTORY)
        self.watch = LIBC.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        self.watched, self.folders, self.before = {}, set(), {}

    @staticmethod
    def make_dev(dev):
        mount("dev", dev, "tmpfs", 0, "mode=0755")
        for name, minor in (("null", 3), ("zero", 5), ("full", 7), ("random", 8), ("urandom", 9)):
            os.mknod(f"{dev}/{name}", stat.S_IFCHR | 0o666, os.makedev(1, minor))
            os.chmod(f"{dev}/{name}", 0o666)
        os.mknod(f"{dev}/tty", stat.S_IFCHR | 0o666, os.makedev(5, 0))
        os.chmod(f"{dev}/tty", 0o666)
        for name, kind, mode in (("pts", "devpts", "newinstance,ptmxmode=0666,mode=0620"), ("shm", "tmpfs", "mode=1777")):
            os.mkdir(f"{dev}/{name}")
            mount(name, f"{dev}/{name}", kind, 0, mode)
        os.symlink("pts/ptmx", f"{dev}/ptmx")
        for number, name in enumerate(("stdin", "stdout", "stderr")):
            os.symlink(f"/proc/self/fd/{number}", f"{dev}/{name}")
        os.symlink("/proc/self/fd", f"{dev}/fd")

    # --- victims ----------------------------------------------------------------------------------------------

    def plant(self, folder=VICTIMS):
        """Files that nobody may change, devices and FIFOs that nobody may even open, in a folder that all may search. Their paths."""
        self.folders.add(folder)
        os.makedirs(f"{folder}/private", exist_ok=True)
        os.chmod(folder, 0o755)
        os.makedirs(f"{folder}/other", exist_ok=True)

        def put(path, mode, uid=0):
            with open(path, "w", encoding="utf-8") as file:
                file.write(f"{SECRET if mode == 0o600 else 'no secret'} of {path}\n" * 40)
            os.chmod(path, mode)
            os.chown(path, uid, uid)

        put(f"{folder}/private/secret.conf", 0o600)
        put(f"{folder}/secret", 0o600)
        put(f"{folder}/open.conf", 0o644)
        put(f"{folder}/other/data", 0o600, THIRD)
        put(f"{folder}/program", 0o4755)
        os.symlink(f"{folder}/private/secret.conf", f"{folder}/link")
        os.symlink(f"{folder}/private", f"{folder}/way")
        os.symlink(f"{folder}/loop", f"{folder}/loop")
        os.mkfifo(f"{folder}/fifo", 0o666)
        os.mknod(f"{folder}/device", stat.S_IFCHR | 0o600, os.makedev(1, 3))
        os.chmod(f"{folder}/private", 0o700)
        os.chown(f"{folder}/other", THIRD, THIRD)
        os.chmod(f"{folder}/other", 0o700)
        changes = IN_MODIFY | IN_ATTRIB | IN_MOVE_SELF | IN_DELETE_SELF | IN_CLOSE_WRITE
        for name in ("fifo", "device"):  # to open one is a change
            self.look_at(f"{folder}/{name}", changes | IN_OPEN)
        for name in ("private/secret.conf", "secret", "open.conf", "other/data", "program"):
            self.look_at(f"{folder}/{name}", changes)
        return [f"{folder}/{name}" for name in ("private/secret.conf", "secret", "open.conf", "other/data", "program", "link",
                                                "way/secret.conf", "loop", "fifo", "device", "private", "nothing")]

    def forget(self, folder):
        """These are not victims any more."""
        for number, path in list(self.watched.items()):
            if path.startswith(folder + "/"):
                LIBC.inotify_rm_watch(self.watch, number)
                del self.watched[number]
        self.folders.discard(folder)
        subprocess.run(["rm", "-rf", folder], check=False)

    def restore(self):
        """Victims as they were; the rest of what changed is as it has to be from here on."""
        for folder in list(self.folders):
            self.forget(folder)
            self.plant(folder)
        self.begin()

    def look_at(self, path, what):
        number = LIBC.inotify_add_watch(self.watch, os.fsencode(path), ctypes.c_uint32(what))
        if number < 0:
            raise OSError(ctypes.get_errno(), f"inotify: {path}")
        self.watched[number] = path

    # --- what has changed -------------------------------------------------------------------------------------

    def begin(self):
        """What there is now is as it has to be."""
        self.before = self.state()
        self.events()

    def changes(self):
        now, found = self.state(), self.events()
        for path in sorted(set(now) | set(self.before)):
            if now.get(path) != self.before.get(path):
                found.append(f"/{path} was {'changed' if path in self.before and path in now else 'removed' if path in self.before else 'made, changed or removed'}")
        self.before = now
        return found

    def events(self):
        found = []
        try:
            data = os.read(self.watch, 1 << 16)
        except OSError as error:
            if error.errno != errno.EAGAIN:
                raise
            return found
        at = 0
        while at < len(data):
            number, mask, _, length = struct.unpack_from("iIII", data, at)
            at += 16 + length
            if mask & (IN_IGNORED | IN_UNMOUNT):
                continue
            words = [word for bit, word in ((IN_OPEN, "opened"), (IN_MODIFY, "written"), (IN_ATTRIB, "given other attributes"),
                                            (IN_MOVE_SELF, "moved"), (IN_DELETE_SELF, "removed"), (IN_CLOSE_WRITE, "opened for writing")) if mask & bit]
            found.append(f"{self.watched.get(number, '?')} was {' and '.join(words)}")
        return sorted(set(found))

    def state(self):
        """All in the upper folder that may not be there, victims as they are, and /dev."""
        found = {}
        self.look("", self.upper, found, lambda path: path.startswith(ALLOWED) and not path.startswith("victims/"))
        for folder in self.folders:
            if folder != VICTIMS:
                inner = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
                self.look(folder[1:] + "/", inner, found, lambda path: False)
                os.close(inner)
        self.look("dev/", self.dev, found, lambda path: path.startswith(("dev/pts/", "dev/shm/", "dev/fd/")))
        return found

    def below(self, path):
        """Mode and owners of what is there in the machine; None: nothing is."""
        try:
            st = os.stat(path, dir_fd=self.lower, follow_symlinks=False)
        except OSError:
            return None
        return [st.st_mode, st.st_uid, st.st_gid]

    def look(self, prefix, folder, found, is_allowed):
        for name in os.listdir(folder):
            path = prefix + name
            if is_allowed(path + "/") or is_allowed(path):
                continue
            st = os.stat(name, dir_fd=folder, follow_symlinks=False)
            row = [st.st_ino, st.st_mode, st.st_uid, st.st_gid, st.st_nlink, st.st_rdev]
            if stat.S_ISDIR(st.st_mode):
                row = row[1:4]
                inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
                self.look(path + "/", inner, found, is_allowed)
                os.close(inner)
                if row == self.below(path):
                    continue  # a folder is above when something in it is
            elif stat.S_ISREG(st.st_mode):
                row += [st.st_size, st.st_mtime_ns]
                if "victims/" in path:
                    with open(os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=folder), "rb") as file:
                        row.append(hashlib.sha256(file.read()).hexdigest())
            found[path] = row
        return found


def prove():
    """Each kind of change is seen, and what may be is not: (what, done, part of the report; None nothing)."""
    box = Box()
    box.plant()
    box.begin()
    deeds = [
        ("a file in its own folder", lambda: open(f"{SCRATCH}/mine", "w", encoding="utf-8").close(), None),
        ("a FIFO that is only named", lambda: os.close(os.open(f"{VICTIMS}/fifo", os.O_PATH)), None),
        ("a victim that is read", lambda: open(f"{VICTIMS}/secret", encoding="utf-8").close(), None),
        ("a FIFO that is opened", lambda: os.close(os.open(f"{VICTIMS}/fifo", os.O_RDONLY | os.O_NONBLOCK)), "fifo was opened"),
        ("a device that is opened", lambda: os.close(os.open(f"{VICTIMS}/device", os.O_RDONLY)), "device was opened"),
        ("a victim that is opened for writing", lambda: open(f"{VICTIMS}/secret", "a", encoding="utf-8").close(), "secret was opened for writing"),
        ("a victim that is removed", lambda: os.unlink(f"{VICTIMS}/private/secret.conf"), "secret.conf was removed"),
        ("a file that is opened for writing", lambda: open("/etc/hostname", "r+", encoding="utf-8").close(), "/etc/hostname was"),
        ("a file that is removed", lambda: os.unlink("/etc/passwd"), "/etc/passwd was"),
        ("a file that is made", lambda: open("/usr/bin/liar", "w", encoding="utf-8").close(), "/usr/bin/liar was"),
        ("another mode", lambda: os.chmod("/etc/shadow", 0o666), "/etc/shadow was"),
        ("a folder's other mode", lambda: os.chmod("/etc", 0o777), "/etc was"),
        ("a device that is made", lambda: os.mkfifo("/dev/liar"), "/dev/liar was"),
    ]
    bad = 0
    for what, deed, told in deeds:
        deed()
        changes = box.changes()
        if (told is None and changes) or (told is not None and not any(told in change for change in changes)):
            print(f"{what}: {changes}")
            bad += 1
    print(f"{len(deeds)} deeds, {bad} were not told as they have to be")
    return 1 if bad else 0


if __name__ == "__main__":
    enter(sys.argv)
    sys.exit(prove())

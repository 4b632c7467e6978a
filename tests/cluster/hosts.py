#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hosts that are namespaces of this machine: each with its own network, host name, processes, /tmp, users and sshd, joined by a bridge
in a namespace where the client runs. Nothing of the machine's own network, sshd or home is used or changed, and all of it goes with
this process, however it ends.

    with Hosts(folder, 2) as hosts:
        hosts.client("ssh", "node1", "uname", "-n")      the words of a command that the client runs
        hosts.on("node0", "python3", "rank.py")          of one that runs on a host
        hosts.cut("node1"); hosts.mend("node1")          its link
"""

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import time

FOLDER = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(FOLDER))
NETWORK = "10.77.0."
PORT = 2022
HOME = "/home/user"
USERS = {"root": 0, "me": 4711, "other": 4712}
PROGRAMS = {"ip": "iproute2", "unshare": "util-linux", "nsenter": "util-linux", "ssh": "openssh-client", "ssh-keygen": "openssh-client",
            "sshd": "openssh-server"}
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def find(program):
    return shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def missing():
    """Why there can be no hosts here, as a reason to skip; None."""
    for program, package in PROGRAMS.items():
        if not find(program):
            return f"needs {program}: package {package} is not installed"
    if os.geteuid() != 0:
        return "needs root: to make namespaces with networks"
    done = subprocess.run(["unshare", "--net", "--pid", "--mount", "--uts", "--ipc", "--fork", find("ip"), "link", "add", "va", "type", "veth", "peer", "name", "vb"],
                          capture_output=True, text=True, check=False)
    return f"needs namespaces: {done.stderr.strip()}" if done.returncode else None


def run(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, words))}: {done.stderr.strip()}")
    return done.stdout


def end_with_parent():
    import ctypes
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class Host:
    def __init__(self, hosts, number, name, ip):
        self.hosts, self.number, self.name, self.ip = hosts, number, name, ip
        self.folder = os.path.join(hosts.folder, name)
        self.home = os.path.join(self.folder, "home")
        self.process = self.init = None

    def start(self, facts):
        """Its first process, which makes the rest."""
        os.makedirs(self.folder, exist_ok=True)
        with open(os.path.join(self.folder, "facts.json"), "w", encoding="ascii") as file:
            json.dump(dict(facts, name=self.name, ip=self.ip, folder=self.folder, home=self.home), file)
        self.process = subprocess.Popen(
            ["unshare", "--net", "--uts", "--pid", "--mount", "--ipc", "--fork", "--kill-child", "--mount-proc", sys.executable, __file__, "--be", self.folder],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, preexec_fn=end_with_parent, start_new_session=True)
        self.expect("up")
        [self.init] = self.children(self.process.pid)

    def expect(self, word):
        line = self.process.stdout.readline().strip()
        if line != word:
            raise RuntimeError(f"host {self.name}: {line or 'it has ended'}")

    def go_on(self, word):
        """Its network is there."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        self.expect(word)

    @staticmethod
    def children(pid):
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            return [int(child) for child in file.read().split()]

    def enter(self, *words):
        return ["nsenter", "--target", str(self.init), "--all", f"--wd={self.home}", "--", "env", f"HOME={self.home}", *map(str, words)]

    def processes(self, *words):
        """Pids, as this machine counts them, of its processes whose command line has all these words."""
        mine, found = os.readlink(f"/proc/{self.init}/ns/pid"), []
        for number in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{number}/cmdline", "rb") as file:
                    line = [os.path.basename(os.fsdecode(word)) for word in file.read().split(b"\0")]
                if os.readlink(f"/proc/{number}/ns/pid") == mine and all(word in line for word in words):
                    found.append(int(number))
            except OSError:
                continue
        return found

    def end(self):
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process.stdin.close()
            self.process.stdout.close()


class Hosts:
    """`n` hosts node0, node1, ... with the programs of `programs` on their PATH, except those in `bare`. `rc`: host -> text of its .bashrc."""

    def __init__(self, folder, n, programs=None, bare=(), rc=None, closed=()):
        self.folder = str(folder)
        facts = {"programs": programs or os.path.join(ROOT, "build"), "kept": [ROOT, self.folder, programs or ""]}
        self.hub = Host(self, 0, "login", NETWORK + "1")
        self.nodes = [Host(self, i, f"node{i}", f"{NETWORK}{i + 10}") for i in range(n)]
        facts["hosts"] = {host.name: host.ip for host in [self.hub, *self.nodes]}
        os.chmod(self.folder, 0o755)  # other users have their homes in it
        try:
            self.make_keys()
            self.hub.start(dict(facts, is_hub=True))
            self.hub.go_on("ready")
            for node in self.nodes:
                node.start(dict(facts, is_bare=node.name in bare, is_closed=node.name in closed, rc=(rc or {}).get(node.name, "")))
                run(find("ip"), "link", "add", f"v{node.number}", "netns", self.hub.init, "type", "veth", "peer", "name", "eth0", "netns", node.init)
                run(*self.hub.enter(find("ip"), "link", "set", f"v{node.number}", "master", "br0", "up"))
                node.go_on("ready")
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        for host in [*self.nodes, self.hub]:
            host.end()

    def make_keys(self):
        for name in "host", "user":
            path = os.path.join(self.folder, f"{name}_key")
            run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", path)
            os.chmod(path, stat.S_IRUSR)

    def node(self, name):
        return next(node for node in self.nodes if node.name == name)

    def client(self, *words):
        return self.hub.enter(*words)

    def on(self, name, *words):
        return self.node(name).enter(*words)

    def cut(self, name):
        run(*self.hub.enter(find("ip"), "link", "set", f"v{self.node(name).number}", "down"))

    def mend(self, name):
        run(*self.hub.enter(find("ip"), "link", "set", f"v{self.node(name).number}", "up"))

    @staticmethod
    def below(pid):
        """Children of a process, and theirs."""
        found = []
        for child in Host.children(pid):
            found += [child, *Hosts.below(child)]
        return found

    def names(self):
        return ",".join(node.name for node in self.nodes)


# ---- in the namespaces: the first process of a host

def write(path, text, mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
    os.chmod(path, mode)


def cover(path, text, facts):
    """A file of the system, with other contents."""
    mine = os.path.join(facts["folder"], os.path.basename(path))
    write(mine, text)
    run("mount", "--bind", mine, path)


def cover_folders(facts):
    """/tmp, /run and /dev/shm of its own; what is below /tmp and needed stays there."""
    kept = sorted({path for path in facts["kept"] if path.startswith("/tmp/")}, key=len)
    run("mount", "--make-rprivate", "/")
    run("mount", "-t", "tmpfs", "tmpfs", "/run")
    for i, path in enumerate(kept):
        os.mkdir(f"/run/{i}")
        run("mount", "--bind", path, f"/run/{i}")
    run("mount", "-t", "tmpfs", "-o", "mode=1777", "tmpfs", "/tmp")
    for i, path in enumerate(kept):
        if not os.path.exists(path):
            os.makedirs(path)
            run("mount", "--bind", f"/run/{i}", path)
    run("mount", "-t", "tmpfs", "-o", "mode=1777", "tmpfs", "/dev/shm")


def make_home(facts):
    folder, home = os.path.dirname(facts["folder"]), facts["home"]
    with open(os.path.join(folder, "user_key.pub"), encoding="ascii") as file:
        key = file.read()
    with open(os.path.join(folder, "host_key.pub"), encoding="ascii") as file:
        host_key = " ".join(file.read().split()[:2])
    for user, uid in USERS.items():
        where = home if user == "root" else f"{home}-{user}"
        write(f"{where}/.ssh/authorized_keys", key)
        write(f"{where}/.bashrc", facts.get("rc", ""))
        write(f"{where}/.ssh/known_hosts", "".join(f"[{ip}]:{PORT},[{name}]:{PORT} {host_key}\n" for name, ip in facts["hosts"].items()))
        write(f"{where}/.ssh/config", f"Host *\nPort {PORT}\nIdentityFile {folder}/user_key\nLogLevel ERROR\n", 0o600)
        os.chmod(where, 0o755)
        os.chown(where, uid, uid)


def start_sshd(facts):
    folder = facts["folder"]
    path = PATH if facts["is_bare"] else f"{facts['programs']}:{PATH}"
    write(f"{folder}/sshd_config", f"""Port {PORT}
ListenAddress {facts['ip']}
HostKey {os.path.dirname(folder)}/host_key
PidFile none
UsePAM no
StrictModes no
PermitRootLogin yes
AuthorizedKeysFile {'none' if facts['is_closed'] else '.ssh/authorized_keys'}
PasswordAuthentication yes
PrintMotd no
MaxStartups 100
SetEnv PATH={path}
""")
    os.makedirs("/run/sshd", 0o755)
    with open(f"{folder}/sshd.log", "wb") as log:
        subprocess.Popen([find("sshd"), "-D", "-e", "-f", f"{folder}/sshd_config"], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    until = time.monotonic() + 20
    while "Server listening" not in open(f"{folder}/sshd.log", encoding="utf-8", errors="replace").read():
        if time.monotonic() > until:
            raise RuntimeError("sshd does not listen: " + open(f"{folder}/sshd.log", encoding="utf-8", errors="replace").read()[-500:])
        time.sleep(0.02)


def be_host(folder):
    with open(os.path.join(folder, "facts.json"), encoding="ascii") as file:
        facts = json.load(file)
    ip = find("ip")
    try:
        run("hostname", facts["name"])
        cover_folders(facts)
        cover("/etc/passwd", "".join(f"{user}:*:{uid}:{uid}::{facts['home'] if user == 'root' else facts['home'] + '-' + user}:/bin/bash\n" for user, uid in USERS.items()) +
              "sshd:*:100:65534::/run/sshd:/usr/sbin/nologin\n", facts)
        cover("/etc/hosts", "127.0.0.1 localhost\n" + "".join(f"{ip} {name}\n" for name, ip in facts["hosts"].items()), facts)
        make_home(facts)
        run(ip, "link", "set", "lo", "up")
        print("up", flush=True)
        sys.stdin.readline()
        device = "br0" if facts.get("is_hub") else "eth0"
        if facts.get("is_hub"):
            run(ip, "link", "add", "br0", "type", "bridge")
        run(ip, "addr", "add", f"{facts['ip']}/24", "dev", device)
        run(ip, "link", "set", device, "up")
        if not facts.get("is_hub"):
            start_sshd(facts)
    except (OSError, RuntimeError) as e:
        print(str(e).replace("\n", " "), flush=True)
        return
    print("ready", flush=True)
    while True:  # until it is killed; processes without a parent are its children
        try:
            os.wait()
        except ChildProcessError:
            time.sleep(0.2)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--be"]:
        be_host(sys.argv[2])

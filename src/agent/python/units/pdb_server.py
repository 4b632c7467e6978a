# SPDX-License-Identifier: Apache-2.0
#
# Python's own pdb at a TCP address, for `nc`: it reads the job's frames from a thread of its own,
# and runs the typed commands there. A client gets no answer before its first line, which is the
# token and nothing else: a browser, or another program that can be made to send bytes here, starts
# with something else, and is closed at the first byte that no token has. Functions of C check the
# client's user (agent/debug/pause.h): the job's user and root have places of their own among the
# waiting clients. Two threads: one owns the address and the time limit and undoes everything, the
# other runs the debugger while a client is connected. All imports are done before a thread is
# paused, because a paused thread may have the import lock.


pdb_server_functions = {}
# connections that have not sent the token yet: of the job's user and root; and as many of others
TALK_PLACES = 8
TALK_FIRST_S = 10  # to send it
pdb_server_digits = b'0123456789abcdef'
pdb_server_refused = ('step s next n until unt return r jump j break b tbreak clear cl disable enable ignore condition commands debug '
    'interact run restart').split()


def pdb_server_take(possible, held, trace, threads, interrupt, token, judge, tell, fatal):
    debug_noted[0] = held
    pdb_server_functions.update(possible=possible, trace=trace, threads=threads, interrupt=interrupt, token=token, judge=judge, tell=tell,
        fatal=fatal)


class pdb_server_Session:
    def __init__(self, limit, banner, steps):
        import time
        self.clock, self.process = time.monotonic, types_named('posix', 'getpid')()
        self.began, self.limit = self.clock(), limit
        self.banner, self.steps = banner, steps
        self.why = self.client = self.session = self.kept = self.frame = None
        self.pending, self.known = {}, None
        self.gate, self.done = pdb_server_locked(), pdb_server_locked()
        self.server = self.address = self.token = None

    def left(self):
        return self.began + self.limit - self.clock()

    def end(self, why):
        if self.why is None:
            self.why = why


class pdb_server_File:
    encoding, errors = 'utf-8', 'backslashreplace'

    def __init__(self, connection, rest):
        self.connection, self.rest, self.over = connection, rest, False

    def readline(self, limit=65536):
        while b'\n' not in self.rest and len(self.rest) < limit:
            data = b'' if self.over else self.connection.recv(4096)
            if not data:
                self.over = True
                break
            self.rest += data
        n = min(self.rest.find(b'\n') + 1 or len(self.rest), limit)
        line, self.rest = self.rest[:n], self.rest[n:]
        return line.replace(b'\r\n', b'\n').decode('utf-8', 'replace')

    def write(self, text):
        self.connection.sendall(text.encode('utf-8', 'backslashreplace'))
        return len(text)

    def flush(self):
        pass

    def isatty(self):
        return False


def pdb_server_locked():
    lock = types_named('_thread', 'allocate_lock')()
    lock.acquire()
    return lock


def pdb_server_without_readline(do, **how):
    missing = modules.get('readline', pdb_server_functions)
    modules['readline'] = None
    try:
        return do(**how)
    finally:
        if missing is pdb_server_functions:
            modules.pop('readline', None)
        else:
            modules['readline'] = missing


def pdb_server_import():
    import _socket
    import linecache
    import pdb
    import select


def pdb_server_listen(host, port):
    if 'pdb' in modules:
        pdb_server_import()
    else:
        pdb_server_without_readline(pdb_server_import)
    s = modules['_socket']
    server = s.socket(s.AF_INET6 if ':' in host else s.AF_INET, s.SOCK_STREAM | getattr(s, 'SOCK_CLOEXEC', 0))
    try:
        server.setsockopt(s.SOL_SOCKET, s.SO_REUSEADDR, 1)
        server.bind((host, port))
        server.listen(8)
        server.setblocking(False)
    except BaseException:
        server.close()
        raise
    return server


def pdb_server_say(connection, text):
    try:
        connection.settimeout(0)
        connection.send(text.encode('utf-8', 'backslashreplace'))
    except OSError:
        pass


def pdb_server_put_out(connection, text):
    pdb_server_say(connection, text)
    connection.close()


def pdb_server_enter(t, c, rest):
    if t.client is not None:
        pdb_server_put_out(c, 'somebody else is connected already\n')
        return
    t.client = c
    t.show(t)
    c.settimeout(None)
    types_named('_thread', 'start_new_thread')(pdb_server_session, (t, c, rest))


def pdb_server_accept(t):
    try:
        c = modules['_socket'].socket(fileno=t.server._accept()[0])
        types_named('posix', 'set_inheritable')(c.fileno(), False)
    except OSError:
        return
    known = pdb_server_functions['judge'](c.fileno(), t.token, '')
    if known < 0:
        pdb_server_put_out(c, 'too many tries: wait\n')
    elif sum(1 for one in t.pending.values() if one[2] == known) >= TALK_PLACES:
        pdb_server_put_out(c, 'too many have come at once\n')
    else:
        c.settimeout(0)
        t.pending[c] = [b'', t.clock() + TALK_FIRST_S, known]
        pdb_server_say(c, 'token: ')


# True if the text so far may become the token. Some spaces around it are allowed, because copying
# may add them. The result does not depend on the pieces in which it arrives.
def pdb_server_may_be_token(said):
    if len(said) > 128:
        return False
    said = said.strip(b' \t\r')
    return len(said) <= 64 and not said.strip(pdb_server_digits)


def pdb_server_hear(t, c):
    try:
        data = c.recv(256)
    except (BlockingIOError, InterruptedError):
        return
    except OSError:
        data = b''
    t.pending[c][0] += data
    line, end, rest = t.pending[c][0].partition(b'\n')
    if data and not end and pdb_server_may_be_token(line):
        return
    t.pending.pop(c)
    if pdb_server_may_be_token(line) and end and pdb_server_functions['judge'](c.fileno(), t.token, line.strip().decode('latin-1') or '-') > 0:
        pdb_server_enter(t, c, rest)
    elif end and b'HTTP/' not in line and b'!' <= line[:1] <= b'~':
        pdb_server_put_out(c, 'that is not the token, which is the first line here\n')
    else:
        c.close()  # a program gets no answer


def pdb_server_turn(t):
    poll = modules['select'].poll()
    places = {c.fileno(): c for c in [t.server] + list(t.pending)}
    for fd in places:
        poll.register(fd, 1)
    for fd, event in poll.poll(50):
        if places[fd] is t.server:
            pdb_server_accept(t)
        else:
            pdb_server_hear(t, places[fd])
    for c in [c for c in t.pending if t.clock() > t.pending[c][1]]:
        t.pending.pop(c)
        pdb_server_put_out(c, 'no token was said\n')
    if t.left() <= 0:
        t.end('its time is over')


def pdb_server_keep(t, begin, turn, end):
    try:
        begin(t)
        while t.why is None:
            pdb_server_turn(t)
            turn(t)
    except BaseException as e:
        t.end('its debugger has failed: %s' % type(e).__name__)
    try:
        end(t)
        if t.client is not None:
            pdb_server_say(t.client, '\n%s: %s\n' % (t.over, t.why))
    finally:
        t.gate.release()
        pdb_server_close(t)
        t.done.release()


def pdb_server_close(t):
    t.server.close()
    for c in list(t.pending):
        c.close()
    if t.client is not None:
        try:
            t.client.shutdown(2)
        except OSError:
            pass
    for i in range(100):
        session = t.session
        if session is None:
            break
        if i % 10 == 1:
            pdb_server_functions['interrupt'](session)
        modules['time'].sleep(0.01)
    if t.client is not None:
        t.client.close()


def pdb_server_begin(t, host, port, begin, turn, end):
    import time
    t.token = pdb_server_functions['token']()
    if not t.token:
        raise OSError(11, 'no token can be made: the kernel gives no random numbers')
    t.server = pdb_server_listen(host, port)
    t.address = t.server.getsockname()[:2]
    try:
        types_named('_thread', 'start_new_thread')(pdb_server_keep, (t, begin, turn, end))
    except RuntimeError as e:
        t.server.close()
        raise OSError(11, str(e))


def pdb_server_wait(t, seconds):
    if t.done.acquire(True, seconds):
        t.done.release()
        return True
    return False


def pdb_server_place(t):
    return debug_place(t.address)


def pdb_server_tell(t):
    return dict(address=pdb_server_place(t), token=t.token, left_s=max(t.left(), 0), client=t.client is not None)


def pdb_server_inner(frame):
    while frame is not None and frame.f_code.co_filename == '<probing>':
        frame = frame.f_back
    return frame


def pdb_server_is_ours(frame):
    while frame.f_back is not None:
        frame = frame.f_back
    return frame.f_code.co_filename == '<probing>'


def pdb_server_comm(tid):
    try:
        with open('/proc/self/task/%d/comm' % tid, 'rb') as f:
            return f.read()
    except OSError:
        return b''


def pdb_server_threads(t):
    active, found = types_named('threading', '_active') or {}, []
    for ident, frame in sys._current_frames().items():
        thread = active.get(ident)
        tid = t.held.get(ident) or getattr(thread, 'native_id', None) or 0
        inner = pdb_server_inner(frame) if ident != t.kept else t.frame
        if inner is None or ident != t.kept and pdb_server_is_ours(frame) or pdb_server_comm(tid).startswith(b'probing-'):
            continue
        main = tid == t.process or getattr(thread, '__class__', None).__name__ == '_MainThread'
        name = getattr(thread, '_name', None) or ('MainThread' if main else 'thread')
        found.append((not main, tid, ident, str(name), inner))
    return sorted(found, key=lambda one: one[:3])


def pdb_server_where(t, one):
    out, tid, ident, name, frame = one
    code = frame.f_code
    how = 'has raised at' if ident == t.kept else 'held at' if ident in t.held else 'in C, called at' if t.holds else 'at'
    return '%s %s:%s %s' % (how, code.co_filename, frame.f_lineno, code.co_name)


def pdb_server_do_threads(self, arg):
    """threads
    All threads of the job, and where they are; thread N is about another.
    """
    for i, one in enumerate(pdb_server_threads(self.serve)):
        self.message('%s %d  %s  %s  %s' % ('>' if one[2] == self.session_thread else ' ', i, one[3], one[1] or '?',
            pdb_server_where(self.serve, one)))


def pdb_server_do_thread(self, arg):
    """thread N
    From now on the frames are those of thread N of threads.
    """
    found = pdb_server_threads(self.serve)
    if not arg.isdigit() or int(arg) >= len(found):
        self.error('thread takes a number of threads: 0 to %d' % (len(found) - 1))
        return
    self.session_thread = found[int(arg)][2]
    self.setup(found[int(arg)][4], None)
    self.print_stack_entry(self.stack[self.curindex])


def pdb_server_do_stacks(self, arg):
    """stacks
    The stacks of all threads, innermost frame last.
    """
    for one in pdb_server_threads(self.serve):
        self.message('%s %s: %s' % (one[3], one[1] or '?', pdb_server_where(self.serve, one)))
        for entry in self.get_stack(one[4], None)[0]:
            self.message('  ' + self.format_stack_entry(entry, '\n    -> '))


def pdb_server_do_refuse(self, arg):
    """Not here."""
    self.error(self.serve.steps)


def pdb_server_do_continue(self, arg):
    """c(ont(inue))
    The job goes on, and the connection ends.
    """
    self.serve.end('continue')
    return True


def pdb_server_do_quit(self, arg):
    """q(uit), exit
    The same as continue: the job goes on.
    """
    self.serve.end('quit')
    return True


def pdb_server_do_eof(self, arg):
    """The same as quit."""
    self.serve.end('its client has gone')
    return True


def pdb_server_entry(self, frame_lineno, lprefix='\n-> '):
    frame, line = frame_lineno
    code = frame.f_code
    source = modules['linecache'].getline(code.co_filename, line, frame.f_globals).strip()
    return '%s(%s)%s()%s' % (code.co_filename, line, code.co_name, lprefix + source if source else '')


def pdb_server_note(self):
    if self.curframe is not None and self.curframe not in self.pdb_server_seen:
        self.pdb_server_seen.append(self.curframe)


def pdb_server_after(self, stop, line):
    pdb_server_note(self)
    return stop


def pdb_server_class():
    import pdb
    base = pdb.Pdb
    own = dict(do_threads=pdb_server_do_threads, do_thread=pdb_server_do_thread, do_stacks=pdb_server_do_stacks, do_EOF=pdb_server_do_eof,
        format_stack_entry=pdb_server_entry, preloop=pdb_server_note, postcmd=pdb_server_after,
        set_convenience_variable=lambda self, *arguments: None,
        get_names=lambda self: [n for n in dir(type(self)) if n[3:] not in pdb_server_refused])
    own.update(dict.fromkeys(('do_c', 'do_cont', 'do_continue'), pdb_server_do_continue))
    own.update(dict.fromkeys(('do_q', 'do_quit', 'do_exit'), pdb_server_do_quit))
    own.update(dict.fromkeys(['do_' + n for n in pdb_server_refused], pdb_server_do_refuse))
    return type('Pdb', (base,), own)


def pdb_server_debugger(t, f):
    p = pdb_server_without_readline(pdb_server_class(), stdin=f, stdout=f, nosigint=True, readrc=False)
    p.use_rawinput, p.prompt = False, '(Pdb) '
    p.serve, p.session_thread, p.pdb_server_seen = t, None, []
    p.reset()
    return p


def pdb_server_forget(p):
    seen, p.pdb_server_seen[:] = list(p.pdb_server_seen), []
    p.forget()
    p.curframe_locals = None
    while seen and sys.version_info < (3, 13):
        frame = seen.pop()
        if frame.f_code.co_flags & 1:
            names = frame.f_locals
            if type(names) is dict and sys.getrefcount(names) <= 3:
                names.clear()


def pdb_server_session(t, c, rest):
    t.session, p = eval_ident(), None
    try:
        f = pdb_server_File(c, rest)
        p = pdb_server_debugger(t, f)
        f.write(t.banner(t) + '\n')
        t.serve(t, p)
    except BaseException:
        pass
    finally:
        t.end('its client has gone')
        try:
            if p is not None:
                pdb_server_forget(p)
        finally:
            dummies = types_named('threading', '_active') or {}
            if type(dummies.get(t.session)) is types_named('threading', '_DummyThread'):
                dummies.pop(t.session, None)
            t.session = None

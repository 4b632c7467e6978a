# SPDX-License-Identifier: Apache-2.0
#
# Code that a client runs in the job: the names it sees, its output, its exception. eval_run.c runs
# the code itself, so that nothing of ours is in its stack. While it runs, sys.stdin, stdout and
# stderr are objects that separate its thread's input and output. For every other thread they behave
# like the previous objects, also later, if a thread still has them.


eval_ident = types_named('_thread', 'get_ident')
# io itself is not imported by every job (3.14)
eval_Raw = types_named('io', 'RawIOBase') or types_named('_io', '_RawIOBase')
eval_Text = types_named('_io', 'TextIOWrapper')
eval_Bytes = types_named('_io', 'BytesIO')
eval_Cell = type((lambda x: lambda: x)(1).__closure__[0])
eval_process = [types_named('posix', name) for name in ('getpid', '_exit')]
eval_content = types_dict(eval_Cell)['cell_contents'].__get__


class eval_Names(dict):
    def __missing__(self, name):
        return object.__getattribute__(self, 'eval_behind')[name]


class eval_Caught(eval_Raw):
    def __init__(self, limit):
        self.eval_rest, self.eval_pieces, self.eval_cut = limit, [], False

    def writable(self):
        return True

    def write(self, data):
        view = memoryview(data).cast('B')
        size = len(view)
        if self.eval_rest:
            self.eval_pieces.append(bytes(view[:self.eval_rest]))
        self.eval_cut = self.eval_cut or size > self.eval_rest
        self.eval_rest = max(self.eval_rest - size, 0)
        return size


eval_box = {'__builtins__': __builtins__, '__name__': 'probing', 'ident': eval_ident}
exec('''
class Stream:
    def __init__(self, under):
        object.__setattr__(self, 'probing_parts', [under, None, None])

    def __getattribute__(self, name):
        under, owner, own = object.__getattribute__(self, 'probing_parts')
        return getattr(own if owner is not None and owner == ident() else under, name)

    def __setattr__(self, name, value):
        under, owner, own = object.__getattribute__(self, 'probing_parts')
        setattr(own if owner is not None and owner == ident() else under, name, value)

    def __delattr__(self, name):
        delattr(object.__getattribute__(self, 'probing_parts')[0], name)

    def __dir__(self):
        return dir(object.__getattribute__(self, 'probing_parts')[0])

    def __repr__(self):
        return repr(object.__getattribute__(self, 'probing_parts')[0])

    def __iter__(self):
        return self

    def __next__(self):
        return Stream.__getattribute__(self, '__next__')()

    def __enter__(self):
        return Stream.__getattribute__(self, '__enter__')()

    def __exit__(self, *why):
        return Stream.__getattribute__(self, '__exit__')(*why)
''', eval_box)
eval_Stream = eval_box['Stream']
eval_parts = object.__getattribute__
eval_kept = []


def eval_builtins():
    return modules['builtins'].__dict__


def eval_frame(ident, code):
    frame = sys._current_frames().get(ident)
    while frame is not None and id(frame.f_code) != code:
        frame = frame.f_back
    if frame is None:
        return None
    if not frame.f_code.co_flags & 1:
        return frame.f_globals, frame.f_locals, None
    names = eval_Names()
    object.__setattr__(names, 'eval_behind', frame.f_globals)
    dict.__setitem__(names, '__builtins__', frame.f_globals.get('__builtins__', eval_builtins()))
    return names, names, {}


def eval_uncell(names, cells):
    for name, cell in cells.items():
        try:
            dict.__setitem__(names, name, eval_content(cell) if type(cell) is eval_Cell else cell)
        except ValueError:
            pass


class eval_Typed(dict):
    def __getitem__(self, name):
        names, values = object.__getattribute__(self, 'eval_parts')
        return values[0] if values and name == '_' else names[name]

    def __setitem__(self, name, value):
        names, values = object.__getattribute__(self, 'eval_parts')
        if name == '_':
            values[:] = [value]
        else:
            names[name] = value

    def __delitem__(self, name):
        names, values = object.__getattribute__(self, 'eval_parts')
        if name == '_' and values:
            values[:] = []
        else:
            del names[name]

    def __contains__(self, name):
        names, values = object.__getattribute__(self, 'eval_parts')
        return name in names or (name == '_' and bool(values))

    def get(self, name, other=None):
        return self[name] if name in self else other

    def keys(self):
        return list(object.__getattribute__(self, 'eval_parts')[0])

    def __iter__(self):
        return iter(self.keys())

    def __len__(self):
        return len(self.keys())

    def values(self):
        return [self[name] for name in self.keys()]

    def items(self):
        return [(name, self[name]) for name in self.keys()]

    def __repr__(self):
        return repr(object.__getattribute__(self, 'eval_parts')[0])


eval_lasts = {}
eval_leaving = []


def eval_forget(keeper):
    eval_lasts.pop(keeper, None)
    for leave in eval_leaving:
        leave(keeper)


def eval_off():
    eval_lasts.clear()


def eval_keep(names, last):
    if names[0] is not names[1]:
        return names
    if names[2] is not None:
        if last:
            dict.__setitem__(names[0], '_', last[0])
        return names
    typed = eval_Typed()
    object.__setattr__(typed, 'eval_parts', (names[0], last))
    return names[0], typed, None


# Without source a function of ours is called instead: it sees our names.
def eval_open(source, name, limit, names, main, keeper):
    if names is None:
        names = (globals() if source is None else modules['__main__'].__dict__,) * 2 + (None,)
    elif names[2] is not None:
        eval_uncell(names[0], names[2])
    last = eval_lasts.setdefault(keeper, []) if keeper else None
    if keeper:
        names = eval_keep(names, last)
    return {'source': source or b'', 'name': name, 'limit': limit, 'names': names, 'caught': eval_Caught(limit), 'streams': [],
        'bare': '__builtins__' not in names[0], 'known': None, 'last': last,
        'main': main, 'pid': None}


def eval_active():
    active = types_named('threading', '_active')
    return active if type(active) is dict else {}


def eval_begin(state):
    state['known'], state['pid'] = eval_ident() in eval_active(), eval_process[0]()
    if state['bare']:
        state['names'][0]['__builtins__'] = eval_builtins()


def eval_find(under):
    if type(under) is eval_Stream:
        return under
    for stream in eval_kept:
        if eval_parts(stream, 'probing_parts')[0] is under:
            return stream
    eval_kept.append(eval_Stream(under))
    return eval_kept[-1]


def eval_stream(state, under, which):
    if which == 'stdin':
        own = eval_Text(eval_Bytes(), 'utf-8')
    else:
        own = eval_Text(state['caught'], 'utf-8', 'backslashreplace', '\n', False, True)
    stream = eval_find(under)
    eval_parts(stream, 'probing_parts')[1:] = eval_ident(), own
    state['streams'].append(stream)
    return stream


def eval_compile(state):
    source, name = state['source'], state['name']
    tree, last = compile(source, name, 'exec', 0x400, True), None
    if tree.body and type(tree.body[-1]).__name__ == 'Expr':
        last = compile('0', name, 'eval', 0x400, True)
        last.body = tree.body.pop().value
    code = compile(tree, name, 'exec', 0, True) if tree.body else None
    return (code, compile(last, name, 'eval', 0, True) if last is not None else None) + state['names'][:2]


def eval_cut(text, limit):
    raw = str.encode(text, 'utf-8', 'backslashreplace')
    if len(raw) <= limit:
        return raw, False
    return raw[:limit].decode('utf-8', 'ignore').encode('utf-8'), True


def eval_show(state, value):
    shown = eval_cut(repr(value), state['limit'])
    if state['last'] is not None:
        state['last'][:] = [value]
    return shown


def eval_plain(kind, message, tb):
    lines = ['Traceback (most recent call last):\n'] if tb is not None else []
    while tb is not None and len(lines) < 200:
        code = tb.tb_frame.f_code
        lines.append('  File "%s", line %d, in %s\n' % (code.co_filename, tb.tb_lineno, code.co_name))
        tb = tb.tb_next
    return lines + ['%s: %s\n' % (types_name(kind), message) if message else types_name(kind) + '\n']


def eval_lines(state, kind, value, message, tb):
    form, cache = types_named('traceback', 'format_exception'), types_named('linecache', 'cache')
    if form is None or type(cache) is not dict:
        return eval_plain(kind, message, tb)
    name, source = state['name'], state['source'].decode('utf-8', 'replace')
    before = cache.get(name)
    cache[name] = (len(source), None, source.splitlines(True), name)
    try:
        return form(kind, value, tb)
    finally:
        if before is None:
            cache.pop(name, None)
        else:
            cache[name] = before


def eval_explain(state, kind, value, tb):
    while tb is not None and tb.tb_frame.f_globals is globals():
        tb = tb.tb_next
    try:
        message = str(value)
    except Exception:
        message = '<its text could not be made>'
    try:
        lines = eval_lines(state, kind, value, message, tb)
    except Exception:
        lines = eval_plain(kind, message, tb)
    limit = state['limit']
    name = types_name(kind)
    name = name[9:] if name.startswith('__main__.') else name
    name, message, text = [eval_cut(t, limit) for t in (name, message, ''.join(lines))]
    return name[0], message[0], text[0], name[1] or message[1] or text[1]


def eval_drain(state):
    try:
        for i in range(100000):
            pass
    except KeyboardInterrupt:
        pass


def eval_close(state):
    if not state['main'] and eval_process[0]() != state['pid']:
        eval_process[1](0)
    for stream in state['streams']:
        eval_parts(stream, 'probing_parts')[1:] = None, None
    if state['bare'] and state['names'][0].get('__builtins__') is eval_builtins():
        state['names'][0].pop('__builtins__', None)
    active, ident = eval_active(), eval_ident()
    if not state['known'] and type(active.get(ident)) is types_named('threading', '_DummyThread'):
        active.pop(ident, None)
    caught = state['caught']
    caught.eval_rest = 0
    text = b''.join(caught.eval_pieces).decode('utf-8', 'replace')
    caught.eval_pieces = []
    raw, cut = eval_cut(text, state['limit'])
    return raw, cut or caught.eval_cut


def eval_is_word(c):
    return c == '_' or c.isalnum()


def eval_chain(text):
    at = len(text)
    while at and (eval_is_word(text[at - 1]) or text[at - 1] == '.'):
        at -= 1
    parts = text[at:].split('.')
    if len(parts) > 1 and (not all(parts[:-1]) or parts[0][0].isdigit()):
        return None
    return parts


def eval_is(o, kind):
    return any(t is kind for t in types_mro(type(o)))


def eval_modules(o):
    module, own = types_named('torch.nn.modules.module', 'Module'), types_attributes(o)
    if module is None or not eval_is(o, module):
        return []
    return [d for d in [dict.get(own, k) for k in ('_parameters', '_buffers', '_modules')] if eval_is(d, dict)]


def eval_places(o):
    found = [types_attributes(o)]
    if eval_is(o, type):
        found += [types_dict(t) for t in types_mro(o)]
    return found


def eval_static(o, name):
    for d in [types_dict(t) for t in types_mro(type(o))]:
        if name in d and type(d[name]) is types_Member:
            return d[name].__get__(o)
    for d in eval_places(o):
        if name in d:
            value = d[name]
            return value.__func__ if type(value) is staticmethod or type(value) is classmethod else value
    for d in eval_modules(o):
        if dict.__contains__(d, name):
            return dict.__getitem__(d, name)
    for d in [types_dict(t) for t in types_mro(type(o))]:
        value = d.get(name)
        if type(value) is types_Function:
            return value
        if type(value) is staticmethod or type(value) is classmethod:
            return value.__func__
    raise AttributeError(name)


def eval_keys(dicts, beginning):
    found = set()
    for d in dicts:
        for name in dict.copy(d) if eval_is(d, dict) else list(d):
            if type(name) is str and name.startswith(beginning) and name.isidentifier():
                found.add(name)
    if not beginning.startswith('_'):
        found = [name for name in found if not name.startswith('_')]
    return sorted(found)


def eval_scope(state):
    names = state['names']
    behind = eval_parts(names[1], 'eval_parts')[:1] if type(names[1]) is eval_Typed else list(names[:2])
    if type(names[0]) is eval_Names:
        behind.append(eval_parts(names[0], 'eval_behind'))
    return list(behind) + [modules['builtins'].__dict__]


def eval_names(state):
    parts = eval_chain(state['source'].decode('utf-8', 'replace'))
    if parts is None:
        return b'', False
    scope = eval_scope(state)
    if len(parts) == 1:
        words = types_named('keyword', 'kwlist') or []
        found = eval_keys(scope + [dict.fromkeys(words)], parts[0])
    else:
        last = state['last']
        if parts[0] == '_' and last:
            o = last[0]
        else:
            o = [d for d in scope if parts[0] in d][0][parts[0]]
        for name in parts[1:-1]:
            o = eval_static(o, name)
        found = eval_keys(eval_places(o) + eval_modules(o) + [types_dict(t) for t in types_mro(type(o))], parts[-1])
    return '\n'.join(found[:500]).encode('utf-8', 'backslashreplace'), len(found) > 500


def eval_try(text, how):
    try:
        compile(text, '<typed>', how, 0x200, True)
    except SyntaxError as error:
        return str(error.msg), error.lineno, error.offset
    except (ValueError, OverflowError):
        return '', 0, 0
    return None


def eval_is_open(text):
    if text.endswith('\\'):
        return True
    first, second = eval_try(text + '\n', 'single'), eval_try(text + '\n\n', 'single')
    for error in (eval_try(text, 'single'), first):
        if error and [w for w in ('EOF', 'never closed', 'triple-quoted', 'expected an indented block', 'incomplete input') if w in error[0]]:
            return True
    return bool(first) and first != second


def eval_whole(state):
    text = state['source'].decode('utf-8', 'replace').rstrip('\n')
    said = 'done'
    if eval_try(text + '\n', 'exec') is None:
        if eval_try(text, 'single') is not None and eval_try(text + '\n', 'single') is None:
            said = 'block'
    elif eval_is_open(text):
        said = 'more'
    return said.encode('ascii'), False

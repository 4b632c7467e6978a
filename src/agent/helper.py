# SPDX-License-Identifier: Apache-2.0
#
# What the python worker runs in the job, with the GIL: texts of values, tasks of asyncio. Built into libprobing.so.
#
# Pieces are separated by two empty lines and compiled one at a time, so that the GIL is never held for long. `modules` is
# sys.modules. Nothing is imported, printed or kept; nothing of the job is called whose code may be its own, but by own_text:
# what has to be asked of an object is asked of the types of CPython and its library, past what a class may have made of it.
# Python 3.6 to 3.15.


sys = modules['sys']
Module = type(sys)
Type_dict = type.__dict__['__dict__'].__get__
Type_mro = type.__dict__['__mro__'].__get__
Type_module = type.__dict__['__module__'].__get__
Type_qualname = type.__dict__['__qualname__'].__get__
Function = type(lambda: 0)
Getset = type(Function.__dict__['__code__'])
Member = type(Function.__dict__['__globals__'])
Method = type((lambda: 0).__get__(1))
Builtin = type(len)
kinds = {}
keep = []
ITEMS, DEPTH, CHARS = 5, 2, 100


def named(module, name):
    m = modules.get(module)
    return m.__dict__.get(name) if type(m) is Module else None


def type_name(t):
    m, q = Type_module(t), Type_qualname(t)
    return m + '.' + q if type(m) is str and m != 'builtins' else q


def default(o, depth=0):
    return '<%s object at 0x%x>' % (type_name(type(o)), id(o))


def attributes(o):
    for t in Type_mro(type(o)):
        d = Type_dict(t).get('__dict__')
        if type(d) is Getset or type(d) is Member:
            return d.__get__(o)
    return {}


def attribute(o, name):
    d = attributes(o)
    if type(d) is dict and name in d:
        return text(d[name], 1)
    for t in Type_mro(type(o)):
        m = Type_dict(t).get(name)
        if type(m) is Member:
            return text(m.__get__(o), 1)
    return '?'


def plain(o, depth=0):
    return repr(o)


def small(o, depth=0):
    return repr(o) if type(o).__sizeof__(o) <= 512 else default(o)


def integer(o, depth=0):
    n = int.bit_length(o)
    return int.__repr__(o) if n <= 600 else '<%sint of %d bits>' % ('negative ' if o < 0 else '', n)


def string(o, depth=0):
    n = CHARS if depth == 0 else 30
    return repr(o[:n]) + ('...' if len(o) > n else '')


def listed(o, depth, count):
    if depth >= DEPTH:
        return '%d item%s' % (count, '' if count == 1 else 's')
    shown, parts = ITEMS if depth == 0 else 3, []
    for i in o:
        if len(parts) == shown:
            parts.append('... %d more' % (count - shown))
            break
        parts.append(text(i, depth + 1))
    return ', '.join(parts)


def in_list(o, depth=0):
    return '[' + listed(o, depth, len(o)) + ']'


def in_tuple(o, depth=0):
    return '(' + listed(o, depth, len(o)) + (',)' if len(o) == 1 and depth < DEPTH else ')')


def in_set(o, depth=0):
    return '{' + listed(o, depth, len(o)) + '}' if o else 'set()'


def in_view(o, depth=0):
    return type(o).__name__ + '([' + listed(o, depth, len(o)) + '])'


def in_dict(o, depth=0):
    if depth >= DEPTH:
        return '{%d items}' % len(o)
    shown, parts = ITEMS if depth == 0 else 3, []
    for k, v in dict.items(o):
        if len(parts) == shown:
            parts.append('... %d more' % (len(o) - shown))
            break
        parts.append(text(k, depth + 1) + ': ' + text(v, depth + 1))
    return '{' + ', '.join(parts) + '}'


def in_deque(o, depth=0):
    end = ')' if o.maxlen is None else ', maxlen=%d)' % o.maxlen
    return 'deque([' + listed(o, depth, len(o)) + ']' + end


def in_slice(o, depth=0):
    return 'slice(%s)' % ', '.join(text(i, 1) for i in (o.start, o.stop, o.step))


def in_partial(o, depth=0):
    return 'functools.partial(%s)' % ', '.join([text(o.func, 1)] + [text(i, 1) for i in o.args[:3]])


def in_bytearray(o, depth=0):
    return 'bytearray(%r%s)' % (bytes(o[:60]), '...' if len(o) > 60 else '')


def in_memoryview(o, depth=0):
    return '<memory of %d bytes>' % o.nbytes


def in_time(o, depth=0):
    zone = getattr(o, 'tzinfo', None)
    known = (type(None), named('datetime', 'timezone'), named('zoneinfo', 'ZoneInfo'))
    return repr(o) if type(zone) in known else default(o)


def in_fraction(o, depth=0):
    return 'Fraction(%s, %s)' % (integer(o._numerator), integer(o._denominator))


def in_file(o, depth=0):
    raw = o
    for name in ('buffer', 'raw'):
        if type(raw).__name__ in ('TextIOWrapper', 'BufferedReader', 'BufferedWriter', 'BufferedRandom'):
            raw = getattr(raw, name, None) or getattr(raw, 'raw', None)
    return repr(o) if type(raw) is named('_io', 'FileIO') else default(o)


def function(o, depth=0):
    return '<function %s>' % o.__qualname__


def method(o, depth=0):
    return '<bound method %s>' % o.__func__.__qualname__ if type(o.__func__) is Function else '<bound method>'


def builtin(o, depth=0):
    return '<built-in function %s>' % o.__name__


def namespace(o, depth=0):
    d = attributes(o)
    return 'namespace(%s)' % ', '.join('%s=%s' % (k, text(d[k], 1)) for k in list(d)[:ITEMS] if type(k) is str)


def dataclass(o, fields, depth):
    names = [k for k in fields if type(k) is str]
    more = ', ... %d more' % (len(names) - ITEMS) if len(names) > ITEMS else ''
    shown = ', '.join('%s=%s' % (k, attribute(o, k)) for k in names[:ITEMS])
    return '%s(%s%s)' % (Type_qualname(type(o)), shown, more)


def tensor(o, depth=0):
    t = type(o)
    name = Type_qualname(t)
    if name not in ('Tensor', 'Parameter') or not Type_module(t).startswith('torch'):
        return '<%s ?>' % name
    return '%s[%s] %s %s' % (name, ', '.join([str(int(n)) for n in o.shape]), str(o.dtype)[6:], o.device)


builtin_kinds = ((type(None), plain), (bool, plain), (int, integer), (float, plain), (complex, plain),
    (str, string), (bytes, string), (list, in_list), (tuple, in_tuple), (set, in_set), (frozenset, in_set),
    (dict, in_dict), (range, small), (slice, in_slice), (bytearray, in_bytearray), (memoryview, in_memoryview),
    (type({}.keys()), in_view), (type({}.values()), in_view), (type({}.items()), in_view), (type(...), plain),
    (type(NotImplemented), plain), (type(i for i in ()), plain), (type(named.__code__), plain),
    (Function, function), (Method, method), (Builtin, builtin), (Module, lambda o, d=0: "<module '%s'>" % o.__name__))
library_kinds = (('collections', 'deque', in_deque), ('functools', 'partial', in_partial),
    ('datetime', 'datetime', in_time), ('datetime', 'date', plain), ('datetime', 'time', in_time),
    ('datetime', 'timedelta', plain), ('datetime', 'timezone', plain), ('decimal', 'Decimal', small),
    ('fractions', 'Fraction', in_fraction), ('uuid', 'UUID', plain), ('pathlib', 'PosixPath', plain),
    ('pathlib', 'PurePosixPath', plain), ('pathlib._local', 'PosixPath', plain), ('re', 'Pattern', plain),
    ('re', 'Match', plain), ('re', '_pattern_type', plain), ('_thread', 'LockType', plain), ('_thread', 'lock', plain), ('_thread', 'RLock', plain),
    ('types', 'SimpleNamespace', namespace), ('types', 'CoroutineType', plain), ('types', 'GeneratorType', plain),
    ('types', 'AsyncGeneratorType', plain), ('types', 'TracebackType', plain), ('types', 'FrameType', plain),
    ('_io', 'TextIOWrapper', in_file), ('_io', 'BufferedReader', in_file), ('_io', 'BufferedWriter', in_file),
    ('_io', 'FileIO', plain), ('torch', 'dtype', plain), ('torch', 'device', plain), ('torch', 'Size', in_tuple))


def refresh():
    for t, f in builtin_kinds:
        kinds[id(t)] = f
    for module, name, f in library_kinds:
        t = named(module, name)
        if isinstance(t, type) and id(t) not in kinds:
            kinds[id(t)] = f
            keep.append(t)
    globals()['Tensor'] = named('torch', 'Tensor')
    globals()['Number'] = named('numpy', 'generic')
    globals()['EnumMeta'] = named('enum', 'EnumMeta')


def text(o, depth=0):
    t = type(o)
    f = kinds.get(id(t))
    if f:
        return f(o, depth)
    if type(t) is EnumMeta:
        return '<%s.%s: %s>' % (Type_qualname(t), attributes(o)['_name_'], text(attributes(o)['_value_'], 1))
    for base in Type_mro(t):
        if base is Tensor:
            return tensor(o)
        if base is Number and Type_module(t) == 'numpy':
            return small(o)
        if base is type:
            return "<class '%s'>" % type_name(o)
        fields = Type_dict(base).get('__dataclass_fields__')
        if type(fields) is dict and depth < DEPTH:
            return dataclass(o, fields, depth)
    return default(o)


def own_text(o):
    try:
        s = type(o).__repr__(o)
        return str.__str__(s) if isinstance(s, str) else default(o)
    except BaseException as e:
        return '<repr() of %s: %s>' % (type_name(type(o)), type_name(type(e)))


def describe(o, own):
    try:
        return own_text(o) if own else text(o)
    except BaseException:
        return default(o)


awaitables = ((named('types', 'CoroutineType'), 'cr_frame', 'cr_await'),
    (type(i for i in ()), 'gi_frame', 'gi_yieldfrom'),
    (named('types', 'AsyncGeneratorType'), 'ag_frame', 'ag_await'))


def task_loops():
    loops = []
    for frame in sys._current_frames().values():
        while frame is not None:
            code = frame.f_code
            if code.co_name == 'run_forever' and code.co_filename.endswith('asyncio/base_events.py'):
                loops.append(frame.f_locals['self'])
            frame = frame.f_back
    return loops


def task_sets():
    tasks, ref, found = modules.get('asyncio.tasks'), named('_weakref', 'ref'), []
    if type(tasks) is not Module:
        return found
    for name in ('_all_tasks', '_scheduled_tasks'):
        found.extend(getattr(tasks.__dict__.get(name, getattr(tasks.Task, name, None)), 'data', ()))
    found.extend([ref(t) for t in list(tasks.__dict__.get('_eager_tasks', ()))])
    if hasattr(tasks.Task, 'all_tasks') and not found:
        found = [ref(t) for loop in task_loops() for t in tasks.Task.all_tasks(loop)]
    return found


def task_current():
    tasks = modules.get('asyncio.tasks')
    if type(tasks) is not Module:
        return {}
    known = tasks.__dict__.get('_current_tasks', getattr(tasks.Task, '_current_tasks', None))
    if type(known) is dict:
        return {id(t) for t in list(known.values()) if t is not None}
    return {id(tasks.Task.current_task(loop)) for loop in task_loops()}


def task_awaits(task, edges):
    waiter = task._fut_waiter
    pairs = [(f, task) for f in [waiter] + list(getattr(waiter, '_children', ()))] + [(task, task_parent(task))]
    for awaited, by in pairs:
        if awaited is not None and by is not None and id(by) not in edges.setdefault(id(awaited), []):
            edges[id(awaited)].append(id(by))


def task_parent(task):
    kind = named('asyncio.taskgroups', 'TaskGroup')
    for entry in task._callbacks or () if kind is not None else ():
        callback = entry[0]
        group = callback.__self__ if type(callback) is Method else None
        if kind in Type_mro(type(group)) and callback.__func__ is Type_dict(kind).get('_on_task_done'):
            return attributes(group).get('_parent_task')
    return None


def task_next(c):
    t = type(c)
    for kind, frame, inner in awaitables:
        if t is kind:
            return getattr(c, frame), getattr(c, inner)
    if t.__name__ in ('coroutine_wrapper', 'async_generator_asend', 'async_generator_athrow', 'anext_awaitable'):
        referents = named('gc', 'get_referents') or (lambda o: ())
        for o in referents(c):
            if type(o) in (awaitables[0][0], awaitables[2][0]):
                return None, o
    return None, None


def task_frames(c):
    rows = []
    while c is not None and len(rows) < 3 * 64:
        frame, inner = task_next(c)
        if frame is not None:
            code = frame.f_code
            rows[:0] = [str(c.__qualname__), str(code.co_filename), frame.f_lineno or 0]
        c = inner
    return rows


def task_row(task, running, edges):
    thread, name, coro = getattr(task._loop, '_thread_id', None), None, task._coro
    if hasattr(task, 'get_name'):
        name = task.get_name()
    awaiters = edges.get(id(task), [])[:16]
    what = coro.__qualname__ if hasattr(coro, '__qualname__') else type_name(type(coro))
    return (thread or 0, id(task), int(id(task) in running), len(awaiters)) + tuple(awaiters) + (
        str(name) if name is not None else None, str(what)) + tuple(task_frames(coro))


def each_task(limit):
    refs, edges, running, rows = task_sets(), {}, task_current(), 0
    for ref in refs:
        task = ref()
        if task is not None:
            try:
                task_awaits(task, edges)
            except Exception:
                pass
        task = None
        yield None
    for ref in refs:
        task, row = ref(), None
        if task is not None:
            try:
                row = None if task.done() else task_row(task, running, edges)
            except Exception:
                pass
        task = None
        if row is not None and rows == limit:
            yield ()
            return
        rows += row is not None
        yield row

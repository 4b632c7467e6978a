# SPDX-License-Identifier: Apache-2.0
#
# Texts of values. Nothing of the job is called whose code may be its own, except by
# values_own_text. See types.py.


values_kinds = {}
values_keep = []
values_ITEMS, values_DEPTH, values_CHARS, values_NAME = 5, 2, 100, 4096


def values_default(o, depth=0):
    return '<%s object at 0x%x>' % (types_name(type(o)), id(o))


def values_attribute(o, name):
    d = types_attributes(o)
    if type(d) is dict and name in d:
        return values_text(d[name], 1)
    for t in types_mro(type(o)):
        m = types_dict(t).get(name)
        if type(m) is types_Member:
            return values_text(m.__get__(o), 1)
    return '?'


def values_plain(o, depth=0):
    return repr(o)


def values_small(o, depth=0):
    return repr(o) if type(o).__sizeof__(o) <= 512 else values_default(o)


def values_integer(o, depth=0):
    n = int.bit_length(o)
    return int.__repr__(o) if n <= 600 else '<%sint of %d bits>' % ('negative ' if o < 0 else '', n)


def values_string(o, depth=0):
    n = values_CHARS if depth == 0 else 30
    return repr(o[:n]) + ('...' if len(o) > n else '')


def values_listed(o, depth, count):
    if depth >= values_DEPTH:
        return '%d item%s' % (count, '' if count == 1 else 's')
    shown, parts = values_ITEMS if depth == 0 else 3, []
    for i in o:
        if len(parts) == shown:
            parts.append('... %d more' % (count - shown))
            break
        parts.append(values_text(i, depth + 1))
    return ', '.join(parts)


def values_in_list(o, depth=0):
    return '[' + values_listed(o, depth, len(o)) + ']'


def values_in_tuple(o, depth=0):
    return '(' + values_listed(o, depth, len(o)) + (',)' if len(o) == 1 and depth < values_DEPTH else ')')


def values_in_set(o, depth=0):
    return '{' + values_listed(o, depth, len(o)) + '}' if o else 'set()'


def values_in_view(o, depth=0):
    return type(o).__name__ + '([' + values_listed(o, depth, len(o)) + '])'


def values_in_dict(o, depth=0):
    if depth >= values_DEPTH:
        return '{%d items}' % len(o)
    shown, parts = values_ITEMS if depth == 0 else 3, []
    for k, v in dict.items(o):
        if len(parts) == shown:
            parts.append('... %d more' % (len(o) - shown))
            break
        parts.append(values_text(k, depth + 1) + ': ' + values_text(v, depth + 1))
    return '{' + ', '.join(parts) + '}'


def values_in_deque(o, depth=0):
    end = ')' if o.maxlen is None else ', maxlen=%d)' % o.maxlen
    return 'deque([' + values_listed(o, depth, len(o)) + ']' + end


def values_in_slice(o, depth=0):
    return 'slice(%s)' % ', '.join(values_text(i, 1) for i in (o.start, o.stop, o.step))


def values_in_partial(o, depth=0):
    return 'functools.partial(%s)' % ', '.join([values_text(o.func, 1)] + [values_text(i, 1) for i in o.args[:3]])


def values_in_bytearray(o, depth=0):
    return 'bytearray(%r%s)' % (bytes(o[:60]), '...' if len(o) > 60 else '')


def values_in_memoryview(o, depth=0):
    return '<memory of %d bytes>' % o.nbytes


def values_in_time(o, depth=0):
    zone = getattr(o, 'tzinfo', None)
    return repr(o) if zone is None or values_is_zone(zone) else values_default(o)


def values_is_zone(zone):
    # Their names may be of a class of the job.
    if type(zone) is types_named('datetime', 'timezone'):
        return values_is_name(zone.tzname(None))
    return type(zone) is types_named('zoneinfo', 'ZoneInfo') and values_is_name(zone.key)


def values_is_name(o):
    if type(o) is str or type(o) is bytes:
        return len(o) <= values_NAME
    return o is None or type(o) is int and int.bit_length(o) <= 64


def values_in_zone(o, depth=0):
    return repr(o) if values_is_zone(o) else values_default(o)


def values_in_range(o, depth=0):
    parts = (o.start, o.stop) if o.step == 1 else (o.start, o.stop, o.step)
    return 'range(%s)' % ', '.join([values_integer(i) for i in parts])


def values_in_pattern(o, depth=0):
    return repr(o) if type(o.pattern) is not int and values_is_name(o.pattern) else values_default(o)


def values_in_match(o, depth=0):
    # Its own text has a copy of all that matched.
    text, (begin, end) = o.string, o.span()
    if type(text) is not str and type(text) is not bytes:
        return values_default(o)
    return '<re.Match object; span=(%d, %d), match=%s>' % (begin, end, values_string(text[begin:min(end, begin + values_CHARS + 1)]))


def values_in_fraction(o, depth=0):
    return 'Fraction(%s, %s)' % (values_integer(o._numerator), values_integer(o._denominator))


def values_in_file(o, depth=0):
    raw = o
    if type(raw) is types_named('_io', 'TextIOWrapper'):
        raw = getattr(raw, 'buffer', None)
    if any([type(raw) is types_named('_io', name) for name in ('BufferedReader', 'BufferedWriter', 'BufferedRandom')]):
        raw = getattr(raw, 'raw', None)
    known = type(raw) is types_named('_io', 'FileIO')
    # The texts of these two are asked for: they are what open() was given, or what the job has put there.
    known = known and all([values_is_name(getattr(o, name, None)) for name in ('name', 'mode')])
    return repr(o) if known else values_default(o)


def values_function(o, depth=0):
    return '<function %s>' % str.__str__(o.__qualname__)


def values_method(o, depth=0):
    return '<bound method %s>' % str.__str__(o.__func__.__qualname__) if type(o.__func__) is types_Function else '<bound method>'


def values_builtin_function(o, depth=0):
    return '<built-in function %s>' % o.__name__


def values_module(o, depth=0):
    name = types_module_dict(o).get('__name__')
    return "<module '%s'>" % name[:values_CHARS] if type(name) is str else values_default(o)


def values_namespace(o, depth=0):
    d = types_attributes(o)
    names = [k for k in list(d)[:values_ITEMS] if type(k) is str]
    return 'namespace(%s)' % ', '.join('%s=%s' % (k, values_text(d[k], 1)) for k in names)


def values_dataclass(o, fields, depth):
    names = [k for k in fields if type(k) is str]
    more = ', ... %d more' % (len(names) - values_ITEMS) if len(names) > values_ITEMS else ''
    shown = ', '.join('%s=%s' % (k, values_attribute(o, k)) for k in names[:values_ITEMS])
    return '%s(%s%s)' % (types_qualname(type(o)), shown, more)


def values_tensor(o, depth=0):
    t = type(o)
    name = types_qualname(t)
    if t is not values_Tensor and t is not values_Parameter:
        return '<%s ?>' % name
    return '%s[%s] %s %s' % (name, ', '.join([str(int(n)) for n in o.shape]), str(o.dtype)[6:], o.device)


values_builtin = ((type(None), values_plain), (bool, values_plain), (int, values_integer), (float, values_plain),
    (complex, values_plain), (str, values_string), (bytes, values_string), (list, values_in_list),
    (tuple, values_in_tuple), (set, values_in_set), (frozenset, values_in_set), (dict, values_in_dict),
    (range, values_in_range), (slice, values_in_slice), (bytearray, values_in_bytearray),
    (memoryview, values_in_memoryview), (type({}.keys()), values_in_view), (type({}.values()), values_in_view),
    (type({}.items()), values_in_view), (type(...), values_plain), (type(NotImplemented), values_plain),
    (type(i for i in ()), values_plain), (type(types_named.__code__), values_plain), (types_Function, values_function),
    (types_Method, values_method), (types_Builtin, values_builtin_function),
    (types_Module, values_module))
values_library = (('collections', 'deque', values_in_deque), ('functools', 'partial', values_in_partial),
    ('datetime', 'datetime', values_in_time), ('datetime', 'date', values_plain), ('datetime', 'time', values_in_time),
    ('datetime', 'timedelta', values_plain), ('datetime', 'timezone', values_in_zone),
    ('decimal', 'Decimal', values_small), ('fractions', 'Fraction', values_in_fraction),
    ('uuid', 'UUID', values_plain), ('pathlib', 'PosixPath', values_plain), ('pathlib', 'PurePosixPath', values_plain),
    ('pathlib._local', 'PosixPath', values_plain), ('re', 'Pattern', values_in_pattern), ('re', 'Match', values_in_match),
    ('re', '_pattern_type', values_in_pattern), ('_thread', 'LockType', values_plain), ('_thread', 'lock', values_plain),
    ('_thread', 'RLock', values_plain), ('types', 'SimpleNamespace', values_namespace),
    ('types', 'CoroutineType', values_plain), ('types', 'GeneratorType', values_plain),
    ('types', 'AsyncGeneratorType', values_plain), ('types', 'TracebackType', values_plain),
    ('types', 'FrameType', values_plain), ('_io', 'TextIOWrapper', values_in_file),
    ('_io', 'BufferedReader', values_in_file), ('_io', 'BufferedWriter', values_in_file),
    ('_io', 'FileIO', values_in_file), ('torch', 'dtype', values_plain), ('torch', 'device', values_plain),
    ('torch', 'Size', values_in_tuple))


def values_refresh():
    for t, f in values_builtin:
        values_kinds[id(t)] = f
    for module, name, f in values_library:
        t = types_named(module, name)
        if isinstance(t, type) and id(t) not in values_kinds:
            values_kinds[id(t)] = f
            values_keep.append(t)
    globals()['values_Tensor'] = types_named('torch', 'Tensor')
    globals()['values_Parameter'] = types_named('torch.nn.parameter', 'Parameter')
    globals()['values_Number'] = types_named('numpy', 'generic')
    globals()['values_Void'] = types_named('numpy', 'void')
    globals()['values_EnumMeta'] = types_named('enum', 'EnumMeta')


def values_text(o, depth=0):
    t = type(o)
    f = values_kinds.get(id(t))
    if f:
        return f(o, depth)
    if type(t) is values_EnumMeta:
        return '<%s.%s: %s>' % (types_qualname(t), types_attributes(o)['_name_'], values_text(types_attributes(o)['_value_'], 1))
    for base in types_mro(t):
        if base is values_Tensor:
            return values_tensor(o)
        if base is values_Number and types_module(t) == 'numpy':
            # A void may have fields that are objects, and asks them for their texts.
            return values_default(o) if types_inherits(t, values_Void) else values_small(o)
        if base is type:
            return "<class '%s'>" % types_name(o)
        fields = types_dict(base).get('__dataclass_fields__')
        if type(fields) is dict and depth < values_DEPTH:
            return values_dataclass(o, fields, depth)
    return values_default(o)


def values_own_text(o):
    try:
        s = type(o).__repr__(o)
        return str.__str__(s) if isinstance(s, str) else values_default(o)
    except BaseException as e:
        return '<repr() of %s: %s>' % (types_name(type(o)), types_name(type(e)))


def values_describe(o, own):
    try:
        return values_own_text(o) if own else values_text(o)
    except BaseException:
        return values_default(o)

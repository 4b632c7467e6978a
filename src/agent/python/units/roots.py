# SPDX-License-Identifier: Apache-2.0
#
# The job's objects, found by walking: variables of running frames, globals of '__main__' and of
# modules of the job's own; from there containers, instances, modules of torch, optimizers. See
# types.py.
#
# A walk is a generator: it yields None after a piece, and an int for a variable that it requests
# (worker_rows.h). Between two pieces it has only weak references to the job's objects: an object
# without weak references is found again by its path, and given up if another object is there by
# then. Each finding is passed to the visitors of the walk, which may not keep it either.


roots_NS = 120000
roots_CHUNK = 24
roots_MEMBERS = (('_parameters', 'parameter'), ('_buffers', 'buffer'), ('_modules', None))
roots_DEPTH = 12
roots_FANOUT = 65536
roots_SURE, roots_EVERY, roots_SMALL = 512, 64, 8
roots_LOOK = 3000000
roots_HEAP = 1 << 9
roots_NAMES = ('int', 'str', 'float', 'bool', 'NoneType', 'function', 'type', 'module', 'bytes')
roots_LEAF, roots_LIST, roots_DICT, roots_SET, roots_INSTANCE, roots_FUNCTION, roots_METHOD = 0, 1, 2, 3, 4, 5, 6
roots_TENSOR, roots_MODULE, roots_OPTIMIZER, roots_PARTIAL, roots_CACHE = 7, 8, 9, 10, 11
roots_flags = type.__dict__['__flags__'].__get__
roots_islice = types_named('itertools', 'islice') or (lambda i, a, b: list(i)[a:b])
roots_clock = types_named('time', 'perf_counter_ns') or (lambda: 0)
roots_ref = types_named('_weakref', 'ref')
roots_deque = types_named('_collections', 'deque') or list
roots_partial = types_named('_functools', 'partial') or roots_deque
roots_closure = types_dict(types_Function)['__closure__'].__get__
roots_cell = types_dict(type((lambda x: lambda: x)(1).__closure__[0]))['cell_contents'].__get__
roots_bound = types_dict(types_Method)['__self__'].__get__


def roots_refresh():
    g = globals()
    g['roots_Module'] = types_named('torch.nn.modules.module', 'Module')
    g['roots_Optimizer'] = types_named('torch.optim.optimizer', 'Optimizer')
    g['roots_Tensor'] = types_named('torch', 'Tensor')
    g['roots_Parameter'] = types_named('torch.nn.parameter', 'Parameter')
    g['roots_Base'] = types_named('torch._C', 'TensorBase') or types_named('torch._C', '_TensorBase')
    g['roots_Cache'] = types_named('functools', '_lru_cache_wrapper')
    g['roots_refer'] = types_named('gc', 'get_referents')
    return roots_Tensor is not None and roots_Base is not None


def roots_new(args, on_module, on_tensor, on_own):
    leaves = {id(t): 0 for t in (int, float, str, bool, bytes, type(None))}
    return {'args': args, 'kinds': leaves, 'seen': [set() for _ in range(32)], 'stack': [], 'held': [], 'optimizers': [],
        'names': {}, 'looked': 0, 'met': 0, 'part': False, 'over': False, 'cut': 0, 'failed': 0, 'until': 0,
        'suffix': '', 'root': '', 'tree': 0, 'container': None, 'most': roots_LOOK, 'modules': on_module, 'tensors': on_tensor, 'own': on_own,
        'again': None, 'of': None}


def roots_is_own(t):
    module = types_module(t)
    top = module.split('.')[0]
    if top == '__main__':
        return True
    if top in ('builtins', 'numpy', 'threading', 'logging', 'multiprocessing', 'asyncio', 'importlib', '_frozen_importlib',
            'concurrent', 'unittest', 'typing', 'ctypes', 'sympy', 'triton', 'pandas', 're', 'abc', 'enum'):
        return False
    if module.startswith(('torch._dynamo', 'torch._inductor', 'torch.fx', 'torch._functorch', 'torch._subclasses')):
        return False
    return top not in getattr(sys, 'stdlib_module_names', ())


def roots_classify(t):
    mro = types_mro(t)
    for base in mro:
        if base is roots_Base:
            return roots_TENSOR
        if base is roots_Module and base is not None:
            return roots_MODULE
        if base is roots_Optimizer and base is not None:
            return roots_OPTIMIZER
        if base is list or base is tuple or base is roots_deque:
            return roots_LIST
        if base is dict:
            return roots_DICT
        if base is set or base is frozenset:
            return roots_SET
        if base is BaseException or base is type or base is int or base is str:
            return roots_LEAF
    if t is types_Function:
        return roots_FUNCTION
    if t is types_Method:
        return roots_METHOD
    if t is roots_partial:
        return roots_PARTIAL
    if t is roots_Cache and t is not None:
        return roots_CACHE
    return roots_INSTANCE if roots_flags(t) & roots_HEAP and (roots_is_own(t) or t is types_Namespace) else roots_LEAF


def roots_kind(walk, t):
    kinds = walk['kinds']
    k = kinds.get(id(t))
    if k is None:
        k = kinds[id(t)] = roots_classify(t)
    return k


def roots_is_new(walk, o):
    i = id(o)
    seen = walk['seen'][(i >> 5) & 31]
    if i in seen:
        return False
    seen.add(i)
    return True


def roots_slots(o):
    found = []
    for t in types_mro(type(o)):
        if roots_flags(t) & roots_HEAP:
            for name, d in list(types_dict(t).items()):
                if type(d) is types_Member and name not in ('__dict__', '__weakref__'):
                    try:
                        found.append((name, d.__get__(o)))
                    except AttributeError:
                        pass
    return found


def roots_attributes(o):
    d = types_attributes(o)
    return d if types_inherits(type(d), dict) else {}


def roots_cache_info(o):
    try:
        hits, misses, most, now = types_dict(roots_Cache)['cache_info'](o)
        return hits, misses, most, now
    except Exception:
        return None, None, 0, 0


def roots_cached(o):
    # Only of a cache without a bound: another has its results in a chain of its own.
    if roots_refer is not None and roots_cache_info(o)[2] is None:
        for d in roots_refer(o):
            if type(d) is dict:
                return d
    return {}


def roots_of_list(o, at, n):
    t = type(o)
    if types_inherits(t, list):
        part = list.__getitem__(o, slice(at, at + n))
    elif types_inherits(t, tuple):
        part = tuple.__getitem__(o, slice(at, at + n))
    else:
        part = list(roots_islice(roots_deque.__iter__(o), at, at + n))
    return part


def roots_items(o, kind, at, n):
    if kind == roots_CACHE:
        o, kind = roots_cached(o), roots_DICT
    if kind == roots_DICT:
        return list(roots_islice(dict.items(o), at, at + n))
    if kind == roots_SET:
        base = set if types_inherits(type(o), set) else frozenset
        return [(None, c) for c in roots_islice(base.__iter__(o), at, at + n)]
    if kind == roots_FUNCTION:
        cells = roots_closure(o) or ()
        return [(name, roots_contents(c)) for name, c in zip(o.__code__.co_freevars, cells)][at:at + n]
    if kind == roots_METHOD:
        return [('__self__', roots_bound(o))][at:at + n]
    if kind == roots_PARTIAL:
        return ([(None, o.func)] + [(None, a) for a in o.args] + list((o.keywords or {}).items()))[at:at + n]
    d = roots_attributes(o)
    part = list(roots_islice(dict.items(d), at, at + n))
    if len(part) < n and kind == roots_INSTANCE:
        more = roots_slots(o)
        skip = max(0, at - dict.__len__(d))
        part.extend(more[skip:skip + n - len(part)])
    return part


def roots_contents(cell):
    try:
        return roots_cell(cell)
    except ValueError:
        return None


def roots_label(walk, entry, key, at):
    kind, label = entry['kind'], entry['label']
    if kind == roots_CACHE:
        return label + '[...]'
    if kind == roots_LIST:
        return '%s[%d]' % (label, at)
    if kind == roots_DICT and not entry['globals']:
        if type(key) is str:
            return "%s['%s']" % (label, key[:60])
        if type(key) is int:
            return '%s[%d]' % (label, key)
        return '%s[%s]' % (label, walk['names'].get(id(key), '...'))
    if type(key) is not str:
        return label + '[...]'
    return label + '.' + key if label else key


def roots_push(walk, o, kind, label, base, steps, where, depth):
    if o is not None:
        try:
            base, steps = roots_ref(o), ()
        except TypeError:
            pass
    entry = {'object': o, 'id': id(o), 'kind': kind, 'label': label, 'base': base, 'steps': steps, 'at': 0, 'where': where,
        'depth': depth, 'met': walk['met'], 'globals': False, 'done': False, 'enter': None, 'members': None, 'of': walk['of']}
    walk['stack'].append(entry)
    walk['held'].append(entry)
    return entry


def roots_is_bare(walk, o, kind, depth=0):
    t = type(o)
    if t is list or t is tuple or t is set:
        values = o
    elif t is dict:
        values = o.values()
    elif kind == roots_INSTANCE:
        values = types_attributes(o)
        if type(values) is not dict or '__slots__' in types_dict(t):
            return False
        values = values.values()
    else:
        return False
    if len(values) > roots_SMALL:
        return False
    kinds = walk['kinds']
    for c in values:
        k = kinds.get(id(type(c)), 1)
        if k and (depth == 2 or not roots_is_bare(walk, c, k, depth + 1)):
            return False
    walk['looked'] += 1
    return True


def roots_visit(walk, o, kind, label, base, steps, where, depth, later):
    if kind == roots_TENSOR:
        walk['met'] += 1
        if walk['tensors'] is not None:
            walk['tensors'](o, label + walk['suffix'], where)
    elif kind == roots_MODULE:
        walk['met'] += 1
        later.append((o, label))
    elif roots_is_bare(walk, o, kind) or not roots_is_new(walk, o):
        return
    elif kind == roots_OPTIMIZER:
        walk['optimizers'].append((roots_ref(o), label, walk['suffix']))
    elif depth > roots_DEPTH:
        walk['cut'] += 1
    else:
        if walk['container'] is not None:
            walk['container'](o, kind, label + walk['suffix'])
        roots_push(walk, o, kind, label, base, steps, where, depth)


def roots_chunk(walk, entry):
    o, kind, at, n = entry['object'], entry['kind'], entry['at'], roots_CHUNK
    if at >= roots_SURE and walk['met'] == entry['met'] and kind in (roots_LIST, roots_DICT, roots_CACHE):
        at = entry['at'] = at + (roots_EVERY - 1) * n
        walk['part'] = True
    if kind == roots_LIST and at >= roots_FANOUT and types_inherits(type(o), roots_deque):
        # Unlike a list it is counted through from its beginning for each part.
        walk['cut'] += 1
        entry['done'] = True
        return
    if kind == roots_LIST:
        part = roots_of_list(o, at, 8 * n)
        if not any([roots_kind(walk, t) for t in {id(t): t for t in map(type, part)}.values()]):
            entry['at'] += len(part)
            walk['looked'] += len(part)
            entry['done'] = len(part) < 8 * n
            return
        items = [(None, c) for c in part[:n]]
    else:
        items = roots_items(o, kind, at, n)
    entry['at'] += len(items)
    walk['looked'] += len(items)
    entry['done'] = len(items) < n
    if kind != roots_LIST and at >= roots_FANOUT:
        walk['cut'] += 1
        entry['done'] = True
    where, later, start = entry['where'], [], len(walk['stack'])
    if kind in (roots_INSTANCE, roots_MODULE):
        where = 'attribute'
    for key, c in items:
        k = roots_kind(walk, type(c))
        # An optimizer's state has parameters as keys: the objects below it belong to its key.
        walk['of'] = id(key) if where == 'optimizer' and kind == roots_DICT and id(key) in walk['names'] else entry['of']
        if k and not (kind == roots_MODULE and type(key) is str and key in ('_parameters', '_buffers', '_modules')):
            roots_visit(walk, c, k, roots_label(walk, entry, key, at), entry['base'], entry['steps'] + ((kind, at),), where,
                entry['depth'] + 1, later)
        at += 1
    walk['of'] = None
    walk['stack'][start:] = walk['stack'][start:][::-1]
    for m, label in reversed(later):
        roots_push(walk, m, roots_MODULE, label, None, (), 'global', 0)['enter'] = (None,)


def roots_enter(walk, module, entry):
    d = roots_attributes(module)
    parent = entry['enter'] if len(entry['enter']) == 2 else None
    token = walk['modules'](module, d, entry['label'], parent)
    if walk['tensors'] is not None:
        # Visited after the whole tree: a hook may refer to another part of it, which has its name
        # from its own place.
        roots_push(walk, module, roots_MODULE, entry['label'], None, (), 'attribute', 0)
        stack = walk['stack']
        walk['tree'] = len(stack) - 1 if parent is None else walk['tree']
        stack.insert(walk['tree'], stack.pop())
    roots_push(walk, module, roots_MODULE, entry['label'], None, (), 'attribute', 0)['members'] = (token, 0)


def roots_members(walk, entry, module):
    token, place = entry['members']
    key, kind = roots_MEMBERS[place]
    held, at, part = roots_attributes(module).get(key), entry['at'], []
    if types_inherits(type(held), dict):
        part = list(roots_islice(dict.items(held), at, at + roots_CHUNK))
    entry['at'] = at + len(part)
    if len(part) < roots_CHUNK or at >= roots_FANOUT:
        entry['at'], entry['members'], entry['done'] = 0, (token, place + 1), kind is None
    walk['looked'] += len(part)
    for name, o in part if kind is not None else reversed(part):
        name = name if type(name) is str else '?'
        if kind is not None:
            if types_inherits(type(o), roots_Base):
                walk['own'](token, kind, name, o)
        elif o is not None and roots_kind(walk, type(o)) == roots_MODULE:
            label = '%s.%s' % (entry['label'], name)
            roots_push(walk, o, roots_MODULE, label, None, (), 'attribute', 0)['enter'] = (token, name)


def roots_let_go(walk):
    for e in walk['held']:
        e['object'] = None
    walk['held'].clear()


def roots_step(walk, e, o):
    if o is None or id(o) != e['id']:
        e['done'] = True
        return
    if e['object'] is None:
        e['object'] = o
        walk['held'].append(e)
    walk['of'] = None
    try:
        if e['members'] is not None:
            roots_members(walk, e, o)
        elif e['enter'] is None:
            roots_chunk(walk, e)
        elif roots_is_new(walk, o):
            e['done'] = True
            roots_enter(walk, o, e)
        else:
            e['done'] = True
            if len(e['enter']) == 2 and walk['again'] is not None:
                walk['again'](o, e['enter'][0])
    except BaseException:
        e['done'] = True
        walk['failed'] += 1


def roots_again(walk, e, o):
    for kind, at in e['steps']:
        if o is None or roots_kind(walk, type(o)) != kind:
            return None
        part = roots_of_list(o, at, 1) if kind == roots_LIST else [c for _, c in roots_items(o, kind, at, 1)]
        o = part[0] if part else None
    return o


def roots_go(walk):
    args, stack = walk['args'], walk['stack']
    while stack:
        e = stack[-1]
        if e['done']:
            stack.pop()
            continue
        if roots_clock() > walk['until'] or walk['over']:
            e = None
            roots_let_go(walk)
            yield None
            walk['until'] = roots_clock() + roots_NS
            if 'stop' in args or walk['over'] or walk['looked'] > walk['most']:
                walk['cut'] += 1
                stack.clear()
                return
            continue
        o, base = e['object'], e['base']
        if o is None:
            if type(base) is int:
                yield base
                o = args.pop('root', None)
            else:
                o = roots_global(base) if type(base) is str else base()
            o = roots_again(walk, e, o)
        roots_step(walk, e, o)
        e = o = None
    roots_let_go(walk)


def roots_global(name):
    m = modules.get(name)
    d = types_module_dict(m) if types_inherits(type(m), types_Module) else None
    return d if type(d) is dict else None


def roots_own_modules():
    names, place = ['__main__'], []
    for p in (getattr(sys, 'base_prefix', None), getattr(sys, 'prefix', None)):
        place.append(str(p) + '/lib')
    for at, name in enumerate(list(modules)):
        if at % 50 == 49:
            d = None
            yield None
        d = roots_global(name) if type(name) is str and name != '__main__' else None
        f = d.get('__file__') if d else None
        if type(f) is str and not ('site-packages' in f or 'dist-packages' in f or f.startswith(tuple(place))) and len(names) < 200:
            names.append(name)
    return names


def roots_walk(walk):
    args = walk['args']
    walk['until'] = roots_clock() + roots_NS
    names = yield from roots_own_modules()
    walk['until'] = roots_clock() + roots_NS
    for name in names:
        d = roots_global(name)
        if d is not None and roots_is_new(walk, d):
            walk['root'], walk['suffix'] = name, ''
            entry = roots_push(walk, None, roots_DICT, '' if name == '__main__' else name, name, (), 'global', 0)
            entry['id'], entry['globals'] = id(d), True
        d = None
        yield from roots_go(walk)
    for i, (name, func, file, line, tid, thread, depth, kind) in enumerate(args['roots']):
        if name is None or func == '<module>' or kind in roots_NAMES:
            continue
        if 'stop' in args or walk['over']:
            return
        walk['suffix'] = '@' + str(func)
        walk['root'] = '%s (%s)' % (func, str(file).rpartition('/')[2])
        yield i
        o = args.pop('root', None)
        roots_local(walk, o, name, i)
        o = None
        yield from roots_go(walk)
    optimizers, walk['optimizers'] = walk['optimizers'], []
    for ref, label, walk['suffix'] in optimizers:
        o = ref()
        if o is not None and walk['tensors'] is not None:
            roots_push(walk, o, roots_OPTIMIZER, label, None, (), 'optimizer', 0)
        o = None
        yield from roots_go(walk)


def roots_local(walk, o, name, i):
    later, kind = [], roots_kind(walk, type(o))
    if kind:
        roots_visit(walk, o, kind, name, i, (), 'local', 0, later)
    for m, label in later:
        roots_push(walk, m, roots_MODULE, label, None, (), 'local', 0)['enter'] = (None,)


def roots_end(walk):
    yield from roots_shed(walk['seen'])
    if walk['part']:
        yield 'of large containers without tensors at their beginning every %dth part was read' % roots_EVERY
    if walk['looked'] > walk['most']:
        yield 'the walk ended after %d objects: there may be more' % walk['looked']


def roots_shed(sets):
    for s in sets:
        while s:
            for _ in range(min(len(s), 1000)):
                s.pop()
            yield None

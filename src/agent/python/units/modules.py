# SPDX-License-Identifier: Apache-2.0
#
# python.modules: the modules of models, as trees. A wrapper of a model (DDP, FSDP, torch.compile)
# has a row, and its name is left out of the paths below it. A module has one row, where it was
# found first; its sizes are added up in all modules that contain it. See roots.py.


modules_COLUMNS = ('path', 'parent', 'depth', 'name', 'class', 'parameters', 'own_parameters', 'bytes', 'dtype', 'device',
    'training', 'compiled', 'hooks', 'forward_ms', 'backward_ms', 'calls', 'activation_bytes', 'traced_step', 'grad_norm', 'nan',
    'root')
modules_HOOKS = ('_forward_hooks', '_forward_pre_hooks', '_backward_hooks', '_backward_pre_hooks')
modules_WRAPPERS = {'OptimizedModule': '_orig_mod', 'DistributedDataParallel': 'module', 'DataParallel': 'module',
    'FullyShardedDataParallel': '_fsdp_wrapped_module', 'CheckpointWrapper': '_checkpoint_wrapped_module',
    'AveragedModel': 'module'}


def modules_wrapped(t):
    for base in types_mro(t):
        module = types_module(base)
        if module.startswith('torch.'):
            return modules_WRAPPERS.get(types_qualname(base))
    return None


def modules_count(d, key):
    held = d.get(key)
    return dict.__len__(held) if types_inherits(type(held), dict) else 0


def modules_place(names, path, parent, name):
    if parent is None:
        path = path if path not in names else '%s#%d' % (path, len(names))
        names.add(path)
        return path, path
    path = '%s.%s' % (parent['prefix'], name)
    if name == parent['wrapped']:
        return '%s.%s' % (parent['path'], name), parent['prefix']
    return path, path


def modules_record(module, d, path, prefix, parent, name):
    t = type(module)
    compiled = d.get('_compiled_call_impl') is not None or types_qualname(t) == 'OptimizedModule'
    training = d.get('training')
    return {'path': path, 'prefix': prefix, 'parent': parent, 'name': name, 'class': facts_class(t), 'id': id(module), 'ref': roots_ref(module), 'own': [], 'kinds': set(),
        'places': set(), 'compiled': compiled, 'training': training if type(training) is bool else None,
        'hooks': sum([modules_count(d, k) for k in modules_HOOKS]), 'wrapped': modules_wrapped(t),
        'known': types_inherits(type(d.get('_parameters')), dict), 'depth': 0 if parent is None else parent['depth'] + 1,
        'traced': modules_traced(module)}


def modules_traced(module):
    sums = globals().get('trace_sums', {}).get(id(module))
    if sums is None or sums[0]() is not module:
        return (None,) * 5
    calls, forward, backward, size, step = sums[1:]
    return (forward / 1e6 if calls else None, backward / 1e6 if backward >= 0 else None, calls, size if size >= 0 else None,
        step if step >= 0 else None)


def modules_traced_norms(wanted):
    norms, traced = {}, globals().get('trace_norms', {})
    for at, i in enumerate(list(traced)):
        kept, place = traced.get(i), wanted.get(i)
        if kept is not None and place is not None and types_member(kept, i) is not None and types_member(place, i) is not None:
            norms[i] = kept[3:]
        if at % 64 == 63:
            yield None
    return norms


def modules_own(r, kind, name, p, wanted):
    try:
        dtype, _, numel, size, device, _ = facts_read(p)
        trains = kind == 'parameter' and gradients_note(wanted, p, (r['ref'], '_parameters', name))
    except Exception:
        r['known'] = False
        return
    r['own'].append((id(p), numel, size, kind == 'parameter', trains))
    if kind == 'parameter':
        r['kinds'].add(dtype)
        r['places'].add(device)


def modules_total(own, norms):
    counted, total, squares, bad, trained = (set(), set()), [0, 0], 0.0, 0, False
    for at, (key, numel, size, is_parameter, trains) in enumerate(own):
        if trains and key not in counted[0]:
            found = norms.get(key)
            squares = None if found is None or squares is None else squares + found[0]
            bad += found[1] if found is not None else 0
            trained = True
        for what, n in ((0, numel), (1, size)):
            if key not in counted[what] and (is_parameter or what == 1):
                counted[what].add(key)
                total[what] = None if n is None or total[what] is None else total[what] + n
        if at % 32 == 31:
            yield None
    return total + [None if squares is None or bad or not trained else squares ** 0.5, bad]


def modules_one(values):
    return None if not values else list(values)[0] if len(values) == 1 else 'mixed'


def modules_row(r, norms):
    held = (None, None, None, 0)
    own = yield from modules_total(r['own'], norms)
    if r['all_known']:
        held = yield from modules_total(r['all'], norms)
    yield (r['path'], r['parent']['path'] if r['parent'] else None, r['depth'], r['name'], r['class'], held[0],
        own[0] if r['known'] else None, held[1], modules_one(r['kinds']), modules_one(r['places']), r['training'], r['compiled'],
        r['hooks']) + r['traced'] + (held[2], 'gradient' if own[3] else 'gradient below' if held[3] else None, r['root'])


def modules_add_up(records):
    for r in reversed(records):
        r['all'] = r['own'] + r.get('below', [])
        r['all_known'] = r['known'] and r.get('below_known', True)
        p = r['parent']
        if p is not None:
            p.setdefault('below', [])[:0] = r['all']
            p['below_known'] = p.get('below_known', True) and r['all_known']
            p['kinds'] |= r['kinds']
            p['places'] |= r['places']
        yield None


def modules_share(records):
    found = {}
    for at, r in enumerate(records):
        found[r['id']] = r
        if at % 100 == 99:
            yield None
    for at, r in enumerate(records):
        if at % 100 == 99:
            yield None
        for i in r.get('shared', ()):
            other, up = found.get(i), r
            while up is not None and other is not None and other['all']:
                if up is not other:
                    up['all'] = up['all'] + other['all']
                    up['all_known'] = up['all_known'] and other['all_known']
                    up['kinds'] |= other['kinds']
                    up['places'] |= other['places']
                up = up['parent']
                yield None


def modules_each(args):
    yield modules_COLUMNS
    if not roots_refresh() or roots_Module is None:
        yield 'torch is not imported in this process'
        return
    facts_refresh()
    records, names, wanted, numel = [], set(), {}, 0

    def found(module, d, label, parent):
        up, name = parent if parent is not None else (None, label)
        path, prefix = modules_place(names, label, up, name)
        r = modules_record(module, d, path, prefix, up, name)
        r['root'] = walk['root'] if up is None else up['root']
        records.append(r)
        return r

    def own(r, kind, name, p):
        modules_own(r, kind, name, p, wanted)

    def again(module, parent):
        parent.setdefault('shared', []).append(id(module))

    walk = roots_new(args, found, None, own)
    walk['again'] = again
    yield from roots_walk(walk)
    yield from modules_add_up(records)
    yield from modules_share(records)
    for at, r in enumerate(records):
        numel += sum([n[1] or 0 for n in r['own'] if n[4]])
        if at % 100 == 99:
            yield None
    norms = yield from gradients_each(args, wanted, numel)
    if len(norms) < len(wanted):
        traced = yield from modules_traced_norms(wanted)
        norms = max(norms, traced, key=len)
    for r in records:
        yield from modules_row(r, norms)
    yield from roots_end(walk)
    while records:
        for r in records[-16:]:
            r.clear()
        del records[-16:]
        yield None

# SPDX-License-Identifier: Apache-2.0
#
# Facts about a tensor that need no computation: shape, dtype, device, bytes, storage. Attributes
# are read by torch's own descriptors, without __torch_function__ of a subclass; for a class with
# __torch_dispatch__ only those that do not call it: the others are unknown. A gradient is False if
# it cannot be read now: src/agent/python/grads.h. See types.py.


facts_dtypes = {}
facts_items = {}
facts_KINDS = {'float16': 'f', 'float32': 'f', 'float64': 'f', 'bfloat16': 'b', 'int8': 'i', 'int16': 'i', 'int32': 'i',
    'int64': 'i', 'uint8': 'u', 'uint16': 'u', 'uint32': 'u', 'uint64': 'u', 'bool': 'u'}


def facts_refresh():
    g, d = globals(), types_dict(roots_Base)
    for name in ('shape', 'dtype', 'device', 'layout', 'requires_grad', 'is_leaf', 'grad', 'is_nested', '_version'):
        g['facts_get_' + name] = d[name].__get__ if name in d else None
    for name in ('untyped_storage', 'element_size', '_storage'):
        g['facts_call_' + name] = d.get(name)
    g['facts_keys'] = types_named('torch._C', '_dispatch_keys')
    keys = types_named('torch._C', 'DispatchKey')
    g['facts_python'] = getattr(keys, 'Python', None)
    g['facts_strided'] = types_named('torch', 'strided')
    g['facts_guard'] = types_named('torch._C', 'DisableTorchFunctionSubclass') or types_named('torch._C', 'DisableTorchFunction')
    g['facts_Lazy'] = types_named('torch.nn.parameter', 'UninitializedTensorMixin')
    g['facts_Buffer'] = types_named('torch.nn.parameter', 'Buffer')
    g['facts_DTensor'] = (types_named('torch.distributed.tensor', 'DTensor') or
        types_named('torch.distributed._tensor.api', 'DTensor'))
    g['facts_Fake'] = types_named('torch._subclasses.fake_tensor', 'FakeTensor')


def facts_dtype(t):
    dtype = facts_get_dtype(t)
    name = facts_dtypes.get(id(dtype))
    if name is None:
        name = facts_dtypes[id(dtype)] = str(dtype)[6:]
    return name


def facts_count(shape):
    numel = 1
    for n in shape:
        if type(n) is not int:
            return None
        numel *= n
    return numel


def facts_plain(t):
    dtype, shape, numel = facts_dtype(t), None, None
    size = facts_items.get(dtype)
    if size is None:
        size = facts_items[dtype] = facts_call_element_size(t)
    try:
        shape = tuple(facts_get_shape(t))
        numel = facts_count(shape)
    except Exception:
        shape = numel = None
    try:
        device = str(facts_get_device(t))
    except Exception:
        device = None
    strided = facts_get_layout(t) is facts_strided
    bytes_ = numel * size if numel is not None and strided else None
    return dtype, shape, numel, bytes_, device, strided


def facts_dispatched(t):
    dtype, kind = facts_dtype(t), type(t)
    if types_inherits(kind, facts_Fake):
        d, shape = types_attributes(t), tuple(facts_get_shape(t))
        device = d.get('_fake_device', d.get('fake_device'))
        return dtype, shape, facts_count(shape), None, None if device is None else 'fake ' + str(device), False
    if types_inherits(kind, facts_DTensor):
        local = facts_slot(t, '_local_tensor')
        if type(local) is roots_Tensor:
            known = facts_plain(local)
            return known[:1] + facts_global(t) + known[3:5] + (False,)
    return dtype, None, None, None, None, False


def facts_slot(o, name):
    for t in types_mro(type(o)):
        m = types_dict(t).get(name)
        if type(m) is types_Member:
            return m.__get__(o)
    return types_attributes(o).get(name)


def facts_global(t):
    spec = facts_slot(t, '_spec')
    meta = types_attributes(spec).get('tensor_meta') if spec is not None else None
    if meta is None or not types_inherits(type(meta), tuple):
        return None, None
    shape = tuple(tuple.__getitem__(meta, 0))
    return shape, facts_count(shape)


def facts_read(t):
    kind = type(t)
    if kind is roots_Tensor or kind is roots_Parameter or kind is facts_Buffer:
        return facts_plain(t)
    with facts_guard():
        if facts_keys is None or facts_python is None or facts_keys(t).has(facts_python):
            return facts_dispatched(t)
        known = facts_plain(t)
    if types_inherits(kind, facts_Lazy):
        return known[:1] + (None, None, None) + known[4:]
    return known


def facts_storage(t, device, strided):
    if not strided or device is None or device == 'meta':
        return None, None
    try:
        with facts_guard():
            s = (facts_call_untyped_storage or facts_call__storage)(t)
        return s._cdata, int(s.nbytes())
    except Exception:
        return None, None


def facts_gradient(t):
    try:
        with facts_guard():
            return grads_read(facts_get_grad, t) if facts_get_is_leaf(t) and facts_get_requires_grad(t) else None
    except Exception:
        return None


def facts_shape(shape):
    return None if shape is None else '[' + ', '.join([str(n) if type(n) is int else '?' for n in shape]) + ']'


def facts_class(t):
    name, module = types_qualname(t), types_module(t)
    if module.startswith('torch.') or module in ('__main__', 'builtins', 'torch', ''):
        return name
    return '%s.%s' % (module, name)


def facts_view(t, known):
    d, address = types_dict(roots_Base), types_named('torch._C', '_data_address')
    with facts_guard():
        for name in ('is_neg', 'is_conj'):
            if name in d and d[name](t):
                return None
        width = facts_items[known[0]]
        at = address(t) + d['storage_offset'](t) * width if address is not None else d['data_ptr'](t)
        return [at, ord(facts_KINDS[known[0]]), width] + list(known[1]) + list(d['stride'](t))

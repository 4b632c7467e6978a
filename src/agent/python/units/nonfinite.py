# SPDX-License-Identifier: Apache-2.0
#
# The parts of torch that are needed to check the values of tensors (tensor_read.h, in its order),
# and the names of modules and parameters with a finding that is not finite. The hooks themselves
# are C functions (module_hooks.c, nonfinite.c).


nonfinite_waited = set()


def nonfinite_optimizers():
    registry = types_named('torch.optim.optimizer', '_global_optimizer_pre_hooks')
    optimizer = types_named('torch.optim.optimizer', 'Optimizer')
    maker = types_dict(optimizer).get('profile_hook_step') if optimizer is not None else None
    maker = maker.__func__ if type(maker) is staticmethod else maker
    codes = [c for c in maker.__code__.co_consts if type(c) is type(maker.__code__)] if type(maker) is types_Function else []
    return (registry, codes[0]) if type(registry) is trace_Ordered and len(codes) == 1 else (None, None)


def nonfinite_getters(d):
    found = []
    for name in ('dtype', 'layout', 'is_cpu', 'is_cuda', 'is_nested', 'is_neg', 'shape', 'stride', 'storage_offset'):
        o = d.get(name)
        found.append(o.__get__ if type(o) is types_Getset else o)
    return found


def nonfinite_open(compiled):
    opened = trace_open(compiled)
    base = types_named('torch._C', 'TensorBase') or types_named('torch._C', '_TensorBase')
    functions = types_named('torch._C', '_VariableFunctions')
    if type(opened) is str:
        return opened
    if base is None or functions is None:
        return 'this torch is not known'
    d = types_dict(base)
    nonfinite_waited.clear()
    guard = types_named('torch._C', 'DisableTorchFunction')
    floats = tuple([types_named('torch', name) for name in ('float16', 'bfloat16', 'float32', 'float64')])
    things = [opened[2], opened[3], guard, types_named('torch._C', '_DisableTorchDispatch'),
        types_named('torch', 'strided'), floats] + nonfinite_getters(d)
    things += [types_named('torch._C', '_data_address'), d.get('data_ptr'), d['_version'].__get__, d['grad'].__get__, d.get('detach')]
    things += [getattr(functions, name, None) for name in ('aminmax', 'isnan', 'isinf', 'sum')]
    return opened + nonfinite_optimizers() + tuple(things + [types_named('torch._C', '_cuda_isCurrentStreamCapturing')])


def nonfinite_or_trace(compiled):
    opened = nonfinite_open(compiled)
    return trace_open(compiled) if type(opened) is str else opened


def nonfinite_wait(later):
    device = later[1].device
    if device.type == 'cuda' and device not in nonfinite_waited:
        nonfinite_waited.add(device)
        types_named('torch.cuda', 'synchronize')(device)


def nonfinite_parameters(m):
    d = types_attributes(m).get('_parameters')
    known = type(d) is dict or type(d) is trace_Ordered
    return [(k, id(v)) for k, v in d.items() if type(k) is str and v is not None] if known else []


def nonfinite_names(text):
    wanted = set([int(word) for word in text.split()])
    refs, seen = list(trace_roots), set()
    del trace_roots[:]
    yield None
    for ref in refs:
        rest = [('', ref)]
        while rest:
            path, ref = rest.pop()
            m = ref()
            if m is None or id(m) in seen:
                continue
            seen.add(id(m))
            rest.extend([(path + '.' + k if path else k, v) for k, v in reversed(trace_children(m))])
            kind, me = types_qualname(type(m)), id(m)
            rows = [(p, path, kind, k, me) for k, p in nonfinite_parameters(m) if p in wanted]
            if me in wanted:
                rows.append((me, path, kind, '', me))
            m = None
            yield None
            for row in rows:
                yield row

# SPDX-License-Identifier: Apache-2.0
#
# Installs and removes hooks of Python that report events (py_callbacks.h): gc.callbacks, and
# returns of watched functions (sys.monitoring, from 3.12 on). Hooks of an earlier agent that could
# not remove its own are removed first.


hooks_tool = None
hooks_codes = []
hooks_gc = None
hooks_FRAMES = 4000
HOOKS_NAMES = ('probing_gc', 'probing_return')


def hooks_is_ours(o):
    return type(o) is types_Builtin and o.__name__ in HOOKS_NAMES


def hooks_gc_off():
    callbacks = types_named('gc', 'callbacks')
    if type(callbacks) is list:
        for i in range(len(callbacks) - 1, -1, -1):
            if hooks_is_ours(callbacks[i]):
                del callbacks[i]
    return True


def hooks_gc_on(tell):
    callbacks = types_named('gc', 'callbacks')
    if type(callbacks) is not list:
        return False
    hooks_gc_off()
    callbacks.append(tell)
    return True


def hooks_gc_is_on(tell):
    callbacks = types_named('gc', 'callbacks')
    return type(callbacks) is list and any(c is tell for c in callbacks)


def hooks_returns_off():
    monitoring = sys.__dict__.get('monitoring')
    global hooks_tool
    if hooks_tool is not None and monitoring is not None and monitoring.get_tool(hooks_tool) == 'probing':
        for code in hooks_codes:
            monitoring.set_local_events(hooks_tool, code, 0)
        monitoring.register_callback(hooks_tool, monitoring.events.PY_RETURN, None)
        monitoring.free_tool_id(hooks_tool)
    hooks_tool = None
    del hooks_codes[:]
    return True


def hooks_returns_on(tell):
    monitoring = sys.__dict__.get('monitoring')
    global hooks_tool
    if monitoring is None:
        return False
    for tool in (3, 4):
        if hooks_tool is None and monitoring.get_tool(tool) == 'probing':
            monitoring.free_tool_id(tool)
    for tool in (3, 4):
        if hooks_tool is None and monitoring.get_tool(tool) is None:
            monitoring.use_tool_id(tool, 'probing')
            monitoring.register_callback(tool, monitoring.events.PY_RETURN, tell)
            hooks_tool = tool
    return hooks_tool is not None


def hooks_matches(code, names):
    for name in names:
        qualname = code.co_qualname
        if name == code.co_name or name == qualname or name.endswith('.' + qualname):
            return True
    return False


def hooks_watch(code, names):
    monitoring = sys.__dict__.get('monitoring')
    if hooks_tool is None or not hooks_matches(code, names) or any(c is code for c in hooks_codes):
        return
    if len(hooks_codes) < 64:
        monitoring.set_local_events(hooks_tool, code, monitoring.events.PY_RETURN)
        hooks_codes.append(code)


def hooks_functions(namespace, depth):
    for o in list(namespace.values()):
        t = type(o)
        if t is staticmethod or t is classmethod:
            o = o.__func__
            t = type(o)
        if t is types_Function:
            yield o.__code__
        elif t is type and depth < 3:
            yield from hooks_functions(types_dict(o), depth + 1)


def hooks_running():
    # In one piece: a frame that is kept while the GIL is given up would keep what is in it.
    codes, left = {}, hooks_FRAMES
    for frame in sys._current_frames().values():
        while frame is not None and left > 0:
            codes[id(frame.f_code)] = frame.f_code
            frame, left = frame.f_back, left - 1
    return list(codes.values())


def hooks_find(names):
    names = names.split('\n')
    for at, code in enumerate(hooks_running()):
        hooks_watch(code, names)
        if at % 64 == 63:
            yield None
    yield None
    found = set(m for m in (name.rpartition('.')[0] for name in names) if m)
    for name in list(modules):
        module = modules.get(name) if type(name) is str else None
        if type(module) is not types_Module:
            continue
        file = module.__dict__.get('__file__')
        own = name == '__main__' or name in found or type(file) is str and '-packages' not in file and not file.startswith(sys.base_prefix)
        if own:
            for code in hooks_functions(module.__dict__, 0):
                hooks_watch(code, names)
            module = file = None
            yield None
    yield (len(hooks_codes),)


def hooks_off():
    hooks_gc_off()
    hooks_returns_off()

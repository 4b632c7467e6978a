# SPDX-License-Identifier: Apache-2.0
#
# The view of objects by Python's own types, independent of changes by a class of the job: for the
# other units.
#
# A unit is source that the python worker runs in the job, with the GIL; embedded in libprobing.so,
# a row each in src/agent/python/helper.c. All units share one private dict, so the names of each
# start with its own. Its pieces are separated by two empty lines and compiled one at a time, so
# that the GIL is never held for long. `modules` is sys.modules. Nothing is imported, printed or
# kept. Nothing of the job is called whose code may be its own, except where a function is
# documented to do so: only the types of CPython, its library and torch are asked about an object.
# Python 3.6 to 3.15; those for torch from 3.8.


# Copies, which no change by the job affects, and which keep none of the job's values alive.
__builtins__ = {name: value for name, value in __builtins__.items()
    if type(value) is type or type(value) is type(len) or type(value) is type(lambda: 0) or
    name in ('Ellipsis', 'NotImplemented', '__name__')}
sys = modules['sys']
types_Module = type(sys)
types_dict = type.__dict__['__dict__'].__get__
types_mro = type.__dict__['__mro__'].__get__
types_get_module = type.__dict__['__module__'].__get__
types_get_qualname = type.__dict__['__qualname__'].__get__
types_Function = type(lambda: 0)
types_Getset = type(types_Function.__dict__['__code__'])
types_Member = type(types_Function.__dict__['__globals__'])
types_Method = type((lambda: 0).__get__(1))
types_Builtin = type(len)
types_Namespace = type(sys.implementation)
types_module_dict = types_Module.__dict__['__dict__'].__get__


def types_named(module, name):
    m = modules.get(module)
    return m.__dict__.get(name) if type(m) is types_Module else None


def types_module(t):
    # A class may have anything here, whose == and + would be the job's.
    m = types_get_module(t)
    return m if type(m) is str else ''


def types_qualname(t):
    return str.__str__(types_get_qualname(t))


def types_name(t):
    m, q = types_module(t), types_qualname(t)
    return m + '.' + q if m and m != 'builtins' else q


def types_inherits(t, base):
    # `base in mro`, a set of types, or == would call __eq__ or __hash__ of a metaclass of the job.
    for b in types_mro(t):
        if b is base:
            return True
    return False


def types_member(place, i):
    # The tensor with that id, if a module still has it at its place: a weak reference to the module, the name of one of its
    # dicts, a key. A weak reference to the tensor would make torch.utils.swap_tensors fail, by which modules are moved.
    own = types_attributes(place[0]())
    held = dict.get(own, place[1]) if types_inherits(type(own), dict) else None
    t = dict.get(held, place[2]) if types_inherits(type(held), dict) else None
    return t if id(t) == i else None


def types_attributes(o):
    for t in types_mro(type(o)):
        d = types_dict(t).get('__dict__')
        if type(d) is types_Getset or type(d) is types_Member:
            return d.__get__(o)
    return {}

# SPDX-License-Identifier: Apache-2.0
"""A program all of whose stacks are known.

It calls itself in every way Python has, without end, in as many threads as its fifth argument says. A comment `# -> name, name` says which functions that line may call;
there is no other call in the program (up to 3.9 the end of a with block is on its last line). classify.py holds stacks against that. Run by bench/known_answer.py,
with the library that samples it, or "-" when it is sampled from another process.
"""

import _thread
import ctypes
import functools
import sys


# --- two chains of empty functions: nothing in them stands still -------------------------------------------------

def a6():
    pass

def a5():
    a6()  # -> a6

def a4():
    a5()  # -> a5

def a3():
    a4()  # -> a4
    a4()  # -> a4

def a2():
    a3()  # -> a3

def a1():
    a2()  # -> a2

def b6():
    pass

def b5():
    b6()  # -> b6
    b6()  # -> b6

def b4():
    b5()  # -> b5

def b3():
    b4()  # -> b4

def b2():
    b3()  # -> b3

def b1():
    b2()  # -> b2

def do_chains():
    for _ in range(20):
        a1()  # -> a1
        b1()  # -> b1


# --- recursion ---------------------------------------------------------------------------------------------------

def down(n):
    if n:
        down(n - 1)  # -> down
    return n

def even(n):
    return n == 0 or odd(n - 1)  # -> odd

def odd(n):
    return n != 0 and even(n - 1)  # -> even

def do_recursion():
    down(30)  # -> down
    even(12)  # -> even


# --- generators and coroutines -----------------------------------------------------------------------------------

def gen_leaf():
    pass

def gen_inner(n):
    for i in range(n):
        gen_leaf()  # -> gen_leaf
        yield i

def gen_outer(n):
    yield from gen_inner(n)  # -> gen_inner
    for item in gen_inner(2):  # -> gen_inner
        yield item

def gen_closing():
    try:
        yield 1
        yield 2
    finally:
        gen_leaf()  # -> gen_leaf

def do_generators():
    for _ in gen_outer(4):  # -> gen_outer
        pass
    sum(gen_outer(3))  # -> gen_outer
    closing = gen_closing()
    next(closing)  # -> gen_closing
    closing.close()  # -> gen_closing
    list(map(gen_mapped, gen_inner(3)))  # -> gen_mapped, gen_inner

def gen_mapped(value):
    return value

class Pause:
    def __await__(self):
        gen_leaf()  # -> gen_leaf
        yield None

async def co_inner():
    await Pause()  # -> __await__
    return co_plain()  # -> co_plain

def co_plain():
    pass

async def co_outer():
    await co_inner()  # -> co_inner
    async for _ in co_numbers():  # -> co_numbers
        pass
    async with CoContext():  # -> __aenter__, __aexit__
        co_plain()  # -> co_plain, __aexit__

async def co_numbers():
    for i in range(2):
        await Pause()  # -> __await__
        yield i

class CoContext:
    async def __aenter__(self):
        await Pause()  # -> __await__

    async def __aexit__(self, *_):
        co_plain()  # -> co_plain

def do_coroutines():
    running = co_outer()
    try:
        while True:
            running.send(None)  # -> co_outer
    except StopIteration:
        co_plain()  # -> co_plain


# --- exceptions in flight ----------------------------------------------------------------------------------------

class Trouble(Exception):
    def __init__(self, text):
        super().__init__(text)

def raise_deep(n):
    if n == 0:
        raise Trouble("deep")  # -> __init__
    try:
        raise_deep(n - 1)  # -> raise_deep
    finally:
        clean_up()  # -> clean_up

def clean_up():
    pass

def handle():
    clean_up()  # -> clean_up

def do_exceptions():
    try:
        raise_deep(6)  # -> raise_deep
    except Trouble:
        handle()  # -> handle
    with Context():  # -> __enter__, __exit__
        clean_up()  # -> clean_up, __exit__

class Context:
    def __enter__(self):
        clean_up()  # -> clean_up
        return self

    def __exit__(self, *_):
        return False


# --- through C ---------------------------------------------------------------------------------------------------

def sort_key(value):
    return key_helper(value)  # -> key_helper

def key_helper(value):
    return -value

def add(left, right):
    return left + right

@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
def c_compare(left, right):
    return compared(left[0], right[0])  # -> compared

def compared(left, right):
    return left - right

libc = ctypes.CDLL(None)

def do_callbacks():
    sorted(range(12), key=sort_key)  # -> sort_key
    functools.reduce(add, range(8))  # -> add
    numbers = (ctypes.c_int * 8)(5, 3, 8, 1, 9, 2, 7, 4)
    libc.qsort(numbers, 8, ctypes.sizeof(ctypes.c_int), c_compare)  # -> c_compare
    max(range(8), key=lambda value: key_helper(value))  # -> <lambda>, key_helper


# --- objects -----------------------------------------------------------------------------------------------------

class Thing:
    def __init__(self, value):
        self.kept = prepare(value)  # -> prepare

    @property
    def value(self):
        return key_helper(self.kept)  # -> key_helper

    @staticmethod
    def fixed():
        return clean_up()  # -> clean_up

    def __eq__(self, other):
        return compared(self.kept, other.kept) == 0  # -> compared

    def __getattr__(self, name):
        return prepare(name)  # -> prepare

    def __len__(self):
        return 3

    def __del__(self):
        prepare(None)  # -> prepare

class Derived(Thing):
    def __init__(self, value):
        super().__init__(value)  # -> __init__

def prepare(value):
    return value

def decorate(function):
    @functools.wraps(function)
    def wrapper(*args):
        return function(*args)  # -> decorated
    return wrapper

@decorate
def decorated(value):
    return prepare(value)  # -> prepare

def do_objects():
    thing = Thing(1)  # -> __init__
    other = Derived(2)  # -> __init__
    thing.value  # -> value
    thing == other  # -> __eq__
    thing.missing  # -> __getattr__
    len(thing)  # -> __len__
    Thing.fixed()  # -> fixed
    decorated(3)  # -> wrapper
    del other  # -> __del__
    thing = None  # -> __del__
    return thing


# --- comprehensions ----------------------------------------------------------------------------------------------

def do_comprehensions():
    [prepare(i) for i in range(4)]  # -> <listcomp>, prepare
    {prepare(i) for i in range(4)}  # -> <setcomp>, prepare
    {i: prepare(i) for i in range(4)}  # -> <dictcomp>, prepare
    sum(prepare(i) for i in range(4))  # -> <genexpr>, prepare


# --- code made at run time: its objects come and go, at the same addresses ---------------------------------------

CHURN = '''
def {name}_inner():
    pass
def {name}_outer():
    {name}_inner()  # -> {name}_inner
{name}_outer()  # -> {name}_outer
{name}_outer()  # -> {name}_outer
'''
CHURNED = ("left", "right", "above", "below")

def do_exec():
    for name in CHURNED:
        exec(CHURN.format(name=name), {})  # -> <module>
    eval("prepare(1)")  # -> <module>


# --- the loop ----------------------------------------------------------------------------------------------------

def loop():
    while True:
        do_chains()  # -> do_chains
        do_recursion()  # -> do_recursion
        do_generators()  # -> do_generators
        do_coroutines()  # -> do_coroutines
        do_exceptions()  # -> do_exceptions
        do_callbacks()  # -> do_callbacks
        do_objects()  # -> do_objects
        do_comprehensions()  # -> do_comprehensions
        do_exec()  # -> do_exec

def thread_root():
    loop()  # -> loop


if __name__ == "__main__":
    for _ in range(int(sys.argv[5]) - 1):
        _thread.start_new_thread(thread_root, ())
    if sys.argv[1] == "-":
        print("ready", flush=True)
    else:
        library = ctypes.CDLL(sys.argv[1])
        library.known_start.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_long, ctypes.c_double]
        if library.known_start(sys.argv[2].encode(), sys.argv[3].encode(), int(sys.argv[4]), float(sys.argv[6])) != 0:
            sys.exit("the sampler did not start")
    loop()  # -> loop

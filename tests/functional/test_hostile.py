# SPDX-License-Identifier: Apache-2.0
"""Jobs at their worst, while they are sampled: they go on, end as they would have, and what could not be seen is said."""

import os
import resource

import pytest

from hostile_support import run_job

# --- no room on the stack ---------------------------------------------------------------------------------------

EDGE = r'''
left, size, where = (int(a) for a in sys.argv[1:])
samplers = []
def end():
    until(lambda: counter.value > 0)
    samplers.append(sample())
    until(lambda: samplers[0].ticks() > 200 and samplers[0].refused() > 50)
    stop.value = 1
ender = threading.Thread(target=end)
ender.start()
edge = lambda: hostile.hostile_edge(left, ctypes.byref(counter), ctypes.byref(stop))
if where == 0:
    edge()
else:
    threading.stack_size(size)
    thread = threading.Thread(target=edge)
    thread.start()
    thread.join()
ender.join()
tell(samplers[0], counter=counter.value)
'''


@pytest.mark.parametrize("left", [1024, 4096])
@pytest.mark.parametrize("where", ["main", "thread", "small"])
def test_a_thread_at_the_end_of_its_stack_lives(any_python, build_dir, where, left):
    """The kernel kills a thread that has no room for a signal's frame; ours is not sent to it."""
    if where == "main" and resource.getrlimit(resource.RLIMIT_STACK)[0] == resource.RLIM_INFINITY:
        pytest.skip("needs stack-limit: the main thread's stack has no end here")
    told = run_job(any_python, build_dir, EDGE, str(left), str(262144 if where == "small" else 0), str(int(where != "main")))
    assert told["counter"] > 0
    assert told["refused"] > 50
    assert told["samples"] > 200


def test_a_thread_at_the_end_of_its_stack_lives_in_every_version(each_python, build_dir):
    assert run_job(each_python, build_dir, EDGE, "2048", "0", "1")["refused"] > 50


SMALL_STACKS = r'''
import re
threading.stack_size(int(sys.argv[1]))
sampler = sample()
def work():
    end = time.monotonic() + 0.05
    while time.monotonic() < end:
        len(str([i for i in range(20)]))
rounds = 0
while rounds < 12 or (sampler.ticks() < 400 and rounds < 400):
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    rounds += 1
tell(sampler)
'''


@pytest.mark.parametrize("size", [32768, 65536])
def test_threads_with_small_stacks_live(any_python, build_dir, size):
    told = run_job(any_python, build_dir, SMALL_STACKS, str(size))
    assert told["refused"] > 0 and told["samples"] > 0


def test_a_thread_with_room_is_asked(any_python, build_dir):
    """The guard refuses nobody without need: code of every kind, in threads that come and go and one that stays."""
    told = run_job(any_python, build_dir, r'''
sampler = sample()
def work():
    for i in range(300): json.dumps(json.loads("[" * 50 + "]" * 50))
while sampler.ticks() < 400:
    thread = threading.Thread(target=work)
    thread.start()
    work()
    thread.join()
tell(sampler)
''')
    assert told["exact"] > 0
    assert told["refused"] <= told["sent"] + 20

"""CUDA devices that mean the CPU: for a block, for a thread, for a process; each in a process of its own."""

from __future__ import annotations

import subprocess
import sys

HEAD = """
import threading, torch
from proveout_cpu import torch_cuda
x = torch.ones(2)
def fails(call):
    try: call()
    except Exception: return True
    return False
"""


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", HEAD + code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_block_maps_devices_in_its_own_thread_and_only_there() -> None:
    assert (
        run("""
seen = []
with torch_cuda.on_cpu():
    for made in (torch.zeros(2, device="cuda"), torch.empty(2, device=torch.device("cuda", 0)),
                 x.cuda(), x.to("cuda:0"),
                 torch.zeros(1, device=0), torch.nn.Linear(2, 2).to("cuda").weight, x.pin_memory(),
                 torch.empty(2, pin_memory=True)):
        assert made.device.type == "cpu"
    thread = threading.Thread(target=lambda: seen.append(fails(lambda: torch.zeros(1, device="cuda"))))
    thread.start(); thread.join()
print(seen, fails(lambda: torch.zeros(1, device="cuda")), fails(lambda: x.cuda()))
""")
        == "[True] True True"
    )


def test_a_thread_stays_entered_after_any_number_of_calls() -> None:
    assert (
        run("""
torch_cuda.enter_thread(); torch_cuda.enter_thread()
with torch_cuda.on_cpu(): pass
print(torch.zeros(1, device="cuda").device, x.cuda().device, len(torch.overrides._get_current_function_mode_stack()))
""")
        == "cpu cpu 1"
    )


def test_everywhere_reaches_threads_and_keeps_meta_devices_meta() -> None:
    """Wrapped without making torch's set of constructors first, the last would be a real tensor."""
    assert (
        run("""
torch_cuda.everywhere()
seen = []
def devices(): seen.append((torch.zeros(1, device="cuda").device.type, x.to("cuda").device.type))
thread = threading.Thread(target=devices)
thread.start(); thread.join()
with torch.device("meta"):
    layer, made = torch.nn.Linear(2, 2), torch.zeros(2)
print(seen, layer.weight.device, made.device, x.type())
""")
        == "[('cpu', 'cpu')] meta meta torch.FloatTensor"
    )


def test_only_megatrons_optimizers_see_a_cuda_type() -> None:
    assert (
        run("""
def kind(): return x.type()
as_optimizer = type(kind)(kind.__code__, {"x": x, "__name__": "megatron.core.optimizer.clip_grads"})
with torch_cuda.on_cpu():
    print(kind(), as_optimizer(), x.type(torch.float64).dtype)
""")
        == "torch.FloatTensor torch.cuda.FloatTensor torch.float64"
    )


def test_the_facade_answers_and_cuda_stays_absent() -> None:
    assert (
        run("""
torch_cuda.facade()
torch.cuda.manual_seed(3); state = torch.cuda.get_rng_state(); a = torch.rand(1)
torch.cuda.set_rng_state(state); b = torch.rand(1)
with torch.cuda.stream(torch.cuda.Stream()), torch.cuda.device(0): torch.cuda.synchronize()
torch.cuda.nvtx.range_push("x"); torch.cuda.nvtx.range_pop()
print(torch.cuda.current_device(), torch.cuda.is_available(), bool(a == b), torch.cuda.Event().query())
""")
        == "cpu False True True"
    )


def test_where_cuda_is_there_nothing_is_touched() -> None:
    assert (
        run("""
import proveout_cpu
before = dict(vars(torch.cuda)), torch.zeros, torch.Tensor.to
torch_cuda.cuda_is_there = lambda: True
torch_cuda.facade(); torch_cuda.everywhere(); torch_cuda.enter_thread()
with torch_cuda.on_cpu(): stack = len(torch.overrides._get_current_function_mode_stack())
print(before == (dict(vars(torch.cuda)), torch.zeros, torch.Tensor.to), stack, proveout_cpu.applied())
""")
        == "True 0 ()"
    )

"""How programs print a finished step and their end, and what is not to be taken for one."""

from __future__ import annotations

import pytest

from proveout.triage import triage
from proveout.triage.stages import end_marks, last_progress

BAD_ENDS = [
    "SystemExit: 3",
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:",
    "[launch.py:325:sigkill_handler] [python, train.py] exits with return code = -9",
    "[run.sh] train.py exited with 1",
    "PyTorchJob rl/x is failed because 1 Worker replica(s) failed.",
    "2025-09-30 10:33:12,411 ERR cli.py:68 -- Job 'raysubmit_x' failed",
    "  exitcode  : -9 (pid: 20441)",
    "  traceback : Signal 6 (SIGABRT) received by PID 20441",
    "Warning  BackoffLimitExceeded  2m    job-controller  Job has reached the specified backoff limit",
    "MPI_ABORT was invoked on rank 3 in communicator MPI_COMM_WORLD",
    "881234.batch         batch            defaultq         64  FAILED      1:0",
]
GOOD_ENDS = [
    "[default] worker group successfully finished. Waiting 300 seconds for other agents to finish.",
    "[2026-10-30 17:27:01,822] [INFO] [launch.py:348:main] Process 2291 exits successfully.",
    "13:58:02 SUCCESS RL trainer finished!",
    "pipeline complete!",
    "PyTorchJob grpo-qwen successfully completed.",
    "done.",
]
STEPS_DONE = {
    "20250911-03:12:44 StatsLogger INFO: Epoch 1/10 Step 17/117 Train step 17/1170 done.": 17,
    "[FullyAsyncTrainer] global_steps: 41 local_trigger_step: 2 trigger_parameter_sync_step: 4": 41,
    "[rlvr_pipeline.py (681)] [INFO] pipeline step 9 finished": 9,
    "stage train epoch 5/5 loss 0.600": 5,
    "  Total step time: 88.41s": None,
    "Rollout: 3%|3   | 4/128 [00:51<20:00, 1.97s/it]": None,
}


@pytest.mark.parametrize("line", BAD_ENDS)
def test_a_bad_end_is_seen_after_a_good_one(line, tmp_path):
    completed, zero, failed = end_marks(f"Training completed.\n{line}\n".encode())
    assert failed > max(completed, zero)
    log = tmp_path / "run.log"
    log.write_text(f"step:5 - actor/pg_loss:0.01 - actor/grad_norm:0.3\nTraining completed.\n{line}\n")
    assert triage([log]).verdict != "Pass"


@pytest.mark.parametrize("line", GOOD_ENDS)
def test_a_good_end_is_seen(line):
    completed, zero, failed = end_marks(f"{line}\n".encode())
    assert max(completed, zero) >= 0 > failed


@pytest.mark.parametrize("line", ["done with setup ...", "finished loading shard 3"])
def test_the_end_of_a_part_is_not_that_of_the_run(line):
    assert end_marks(f"{line}\n".encode()) == (-1, -1, -1)


@pytest.mark.parametrize(("line", "step"), STEPS_DONE.items())
def test_a_finished_step_is_seen_with_its_number(line, step):
    found = last_progress(f"{line}\n".encode())
    assert found is not None
    assert found[1] == step


def test_a_bar_at_nought_is_no_progress():
    assert last_progress(b"  0%|          | 0/843 [00:04<?, ?it/s]\n") is None

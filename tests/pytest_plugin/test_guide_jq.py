"""The guide's own query over the dated files. Needs the program jq."""

from __future__ import annotations

import subprocess

QUERY = (
    "jq -r '[.start_time, .git_commit, "
    '.metrics["test_hf_ray_policy::test_lm_policy_generation"].avg_prob_mult_error] | @tsv\' '
    "tests/unit/unit_results/*"
)


def test_the_guides_query_works_unchanged(project):
    project.write(
        "tests/unit/test_hf_ray_policy.py",
        """
        def test_lm_policy_generation(tracker):
            tracker.track("avg_prob_mult_error", 1.0000039339065552)
            tracker.track("mean_lps", -1.5399343967437744)
        """,
    )
    project.git("init", "-q")
    project.git("add", "-A")
    project.git("commit", "-qm", "first")
    for _ in range(2):
        project.run()

    answer = subprocess.run(
        ["bash", "-c", QUERY], cwd=project.root, check=True, capture_output=True, text=True
    ).stdout

    rows = [line.split("\t") for line in answer.splitlines()]
    times = [each["start_time"] for each in project.dated_results()]
    commit = project.git("rev-parse", "HEAD")
    assert [row[0] for row in rows] == times
    assert [row[1] for row in rows] == [commit, commit]
    assert [float(row[2]) for row in rows] == [1.0000039339065552] * 2

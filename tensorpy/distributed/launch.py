"""`python -m tensorpy.distributed.launch`: an older command line of run.py, which gives programs --local-rank."""

from __future__ import annotations

import sys

from tensorpy.distributed import run


def main(args: list[str] | None = None) -> None:
    """Runs the command line of run.py; unless --use-env is among it, the program gets --local-rank as an argument."""
    given = list(sys.argv[1:] if args is None else args)
    plain = [a for a in given if a not in ("--use-env", "--use_env")]
    job = run.job_of(run.parse_args(plain))
    job.says_local_rank = len(plain) == len(given)
    run.run_job(job)


if __name__ == "__main__":
    main()

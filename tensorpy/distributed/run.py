"""Starts a program as several processes: `python -m tensorpy.distributed.run`, torchrun's command line.

    python -m tensorpy.distributed.run --nproc-per-node 2 train.py argument ...
    python -m tensorpy.run torchrun --nproc-per-node 2 train.py argument ...

The second is for programs written for PyTorch: `import torch` in them means tensorpy. On several machines the same
command runs on each, with --nnodes, and --rdzv-endpoint host:port of one of them or --node-rank and --master-addr.
Each option has a variable of the environment, too: PET_NPROC_PER_NODE and so on.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from typing import Any

from tensorpy.distributed import agent
from tensorpy.distributed.logs import streams_of

_PORT = 29500
_RENDEZVOUS_PORT = 29400

# Options that change nothing here: name, value that they have without being given.
_TAKEN = (
    ("--start-method", "spawn"),
    ("--event-log-handler", "null"),
    ("--numa-binding", None),
    ("--logs-specs", None),
    ("--duplicate-stdout-filters", ""),
    ("--duplicate-stderr-filters", ""),
)


def get_args_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="torchrun", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )

    def option(name: str, default: Any = None, short: str | None = None, **rest: Any) -> None:
        """An option with its other spelling, and a variable that stands for it."""
        variable = "PET_" + name.strip("-").replace("-", "_").upper()
        default = os.environ.get(variable, default)
        spellings = [name] if "-" not in name[2:] else [name, "--" + name[2:].replace("-", "_")]
        if rest.get("action") == "store_true":
            default = default in (True, "1", "true", "True")
        parser.add_argument(*([short] if short else []), *spellings, default=default, **rest)

    option("--nnodes", "1:1", help="how many machines: a number, or least:most")
    option("--nproc-per-node", "1", help="processes on each: a number, or auto or cpu for one on each core")
    option("--node-rank", None, type=int, help="this machine's number, for --rdzv-backend static")
    option("--master-addr", "127.0.0.1", help="the first machine's address, for --rdzv-backend static")
    option("--master-port", None, type=int, help=f"and a port there; {_PORT} on several machines, else a free one")
    option("--rdzv-backend", "static", choices=["static", "c10d"], help="c10d: machines are numbered as they come")
    option("--rdzv-endpoint", "", help="host:port of one of the machines, where they meet")
    option("--rdzv-id", "none", help="the job's name, the same on all machines")
    option("--rdzv-conf", "", help="join_timeout=600,last_call_timeout=30: seconds")
    option("--standalone", action="store_true", help="one machine, which needs no address")
    option("--max-restarts", 0, type=int, help="how often all processes are started again after one has failed")
    option("--monitor-interval", 0.1, type=float, help="seconds between looks at the processes")
    option("--role", "default", help="a name that stands before lines of --tee")
    option("--module", action="store_true", short="-m", help="the program is a module, as for python -m")
    option("--no-python", action="store_true", help="the program is run as it is, without python")
    option("--run-path", action="store_true", help="the program is run by runpy.run_path")
    option("--log-dir", None, help="a folder for logs of each process")
    option("--redirects", "0", short="-r", help="what goes to logs: 0, 1 stdout, 2 stderr, 3 both; 0:1,1:2 by rank")
    option("--tee", "0", short="-t", help="what goes to logs and to the console")
    option("--local-ranks-filter", "", help="whose output the console shows: 0,1")
    option("--local-addr", None, help="this machine's address")
    option("--signals-to-handle", "SIGTERM,SIGINT,SIGHUP,SIGQUIT", help="what is handed on to the processes")
    option("--shutdown-timeout", None, type=float, help="seconds for processes to end before they are killed; 30")
    option("--virtual-local-rank", action="store_true", help="LOCAL_RANK is 0 in all processes")
    for name, default in _TAKEN:
        option(name, default, help="is taken")
    parser.add_argument("training_script", help="the program")
    parser.add_argument("training_script_args", nargs=argparse.REMAINDER, help="its arguments")
    return parser


def parse_args(args: list[str] | None) -> argparse.Namespace:
    """The options of a command line."""
    return get_args_parser().parse_args(args)


def parse_min_max_nnodes(nnodes: str) -> tuple[int, int]:
    """How many machines at least and at most."""
    least, _, most = str(nnodes).partition(":")
    try:
        found = int(least), int(most or least)
    except ValueError:
        found = (0, 0)
    if not 1 <= found[0] <= found[1]:
        raise RuntimeError(f'nnodes={nnodes} is not in "MIN:MAX" format')
    return found


def determine_local_world_size(nproc_per_node: str) -> int:
    """How many processes a machine has."""
    if nproc_per_node in ("auto", "cpu"):
        return os.cpu_count() or 1
    if nproc_per_node in ("gpu", "xpu"):
        raise ValueError(f"--nproc-per-node {nproc_per_node}: there are no such devices; a number, auto or cpu")
    try:
        count = int(nproc_per_node)
    except ValueError:
        raise ValueError(f"Unsupported nproc_per_node value: {nproc_per_node}") from None
    if count < 1:
        raise ValueError(f"--nproc-per-node {count}: one process at least")
    return count


def _command(args: argparse.Namespace) -> list[str]:
    python = [os.environ.get("PYTHON_EXEC", sys.executable), "-u"]
    script = args.training_script
    if args.run_path:
        text = "import runpy, sys; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
        return [*python, "-c", text, script]
    if args.no_python:
        if args.module:
            raise ValueError("Don't use both the '--no-python' flag and the '--module' flag at the same time.")
        return [script]
    return [*python, *(["-m"] if args.module else []), script]


def _pairs(text: str) -> dict[str, str]:
    """`a=1,b=2` as a dict."""
    parts = [part.partition("=") for part in text.split(",") if part.strip()]
    if any(not equals for _, equals, _ in parts):
        raise ValueError(f"--rdzv-conf {text!r}: key=value, with commas between")
    return {key.strip(): value.strip() for key, _, value in parts}


def _where(args: argparse.Namespace, most: int) -> tuple[str, int]:
    """Host and port at which the machines meet."""
    if args.standalone or (most == 1 and not args.rdzv_endpoint and args.master_port is None):
        return "127.0.0.1", 0
    if args.rdzv_endpoint:
        host, _, port = args.rdzv_endpoint.partition(":")
        if args.rdzv_endpoint.startswith("["):
            host, _, port = args.rdzv_endpoint[1:].partition("]:")
        try:
            return host.rstrip("]"), int(port) if port else _RENDEZVOUS_PORT
        except ValueError:
            raise ValueError(f"--rdzv-endpoint {args.rdzv_endpoint}: host:port") from None
    if args.rdzv_backend == "c10d" and most > 1:
        raise ValueError("--rdzv-backend c10d: --rdzv-endpoint host:port says where machines meet")
    return args.master_addr, _PORT if args.master_port is None else args.master_port


def job_from_args(args: argparse.Namespace) -> agent.Job:
    """The job of a command line; ValueError where it makes no sense."""
    least, most = (1, 1) if args.standalone else parse_min_max_nnodes(args.nnodes)
    count = determine_local_world_size(args.nproc_per_node)
    host, port = _where(args, most)
    settings = _pairs(args.rdzv_conf)
    static = args.rdzv_backend == "static" and not args.standalone and most > 1
    if static and args.node_rank is None:
        raise ValueError("--rdzv-backend static: --node-rank says which of the machines this is")
    if static and not 0 <= args.node_rank < most:
        raise ValueError(f"--node-rank {args.node_rank}: there are {most} machines, from 0 on")
    for text in (args.redirects, args.tee):
        streams_of(text, count)
    signals = [name.strip() for name in args.signals_to_handle.split(",") if name.strip()]
    unknown = [name for name in signals if not hasattr(signal, name)]
    if unknown:
        raise ValueError(f"--signals-to-handle: there is no {', '.join(unknown)}")
    if args.virtual_local_rank:
        raise ValueError("--virtual-local-rank is for CUDA devices, which there are none of")
    shown = {int(n) for n in args.local_ranks_filter.split(",")} if args.local_ranks_filter else None
    patience = args.shutdown_timeout or float(os.environ.get("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", 30))
    return agent.Job(
        command=_command(args),
        arguments=args.training_script_args,
        count=count,
        least=most if static else least,
        most=most,
        node=args.node_rank if static else None,
        host=host,
        port=port,
        run_id=args.rdzv_id,
        restarts=args.max_restarts,
        interval=args.monitor_interval,
        log_dir=args.log_dir,
        redirects=args.redirects,
        tee=args.tee,
        shown=shown,
        role=args.role,
        signals=signals,
        patience=patience,
        join_timeout=float(settings.get("join_timeout", settings.get("timeout", 600))),
        last_call=float(settings.get("last_call_timeout", 30)),
    )


def job_of(args: argparse.Namespace) -> agent.Job:
    """The same, for a program: SystemExit says what makes no sense."""
    try:
        return job_from_args(args)
    except (ValueError, RuntimeError) as error:
        print(f"torchrun: {error}", file=sys.stderr)
        raise SystemExit(2) from None


def run_job(job: agent.Job) -> None:
    """Runs a job; SystemExit where it fails."""
    if status := agent.run(job):
        raise SystemExit(status)


def run(args: argparse.Namespace) -> None:
    """Runs what a command line says; SystemExit where it fails."""
    run_job(job_of(args))


def main(args: list[str] | None = None) -> None:
    """torchrun."""
    run(parse_args(args))


if __name__ == "__main__":
    main()

"""Run every benchmark, or those named: `make bench ARGS="billing_ingest"`."""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
RUNS = 'if __name__ == "__main__"'  # the others help those that have it


def main() -> int:
    """Run them one after another, so that none disturbs another; 1 when one failed."""
    known = sorted(path.stem for path in HERE.glob("[a-z]*.py") if RUNS in path.read_text("utf-8"))
    wanted = sys.argv[1:] or known
    unknown = sorted(set(wanted) - set(known))
    if unknown:
        print(f"No benchmark {', '.join(unknown)}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    failed = False
    for name in wanted:
        print(f"--- {name}", flush=True)
        failed |= subprocess.run([sys.executable, str(HERE / f"{name}.py")]).returncode != 0
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())

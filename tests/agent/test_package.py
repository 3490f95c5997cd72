"""The package: what it needs, what its documents and deployments promise."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest
import yaml

from costwatch_agent import VERSION
from costwatch_agent.options import options_of, parser
from costwatch_agent.tail_options import tail_parser
from tests.agent.conftest import agent_environment
from tests.agent.server import Oracle, serving

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "agent"
OPTIONS = {
    option
    for one in (parser(), tail_parser())
    for action in one._actions
    for option in action.option_strings
    if option[:2] == "--"
}


def test_it_needs_nvmls_binding_and_nothing_else():
    needed = set()
    for path in (PACKAGE / "costwatch_agent").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                needed |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                needed.add(node.module.partition(".")[0])
    assert needed - set(sys.stdlib_module_names) == {"costwatch_agent", "pynvml"}
    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text("utf-8"))["project"]
    assert [text.partition(">")[0] for text in project["dependencies"]] == ["nvidia-ml-py"]


def test_the_command_that_is_installed_exists():
    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text("utf-8"))["project"]
    module, _, function = project["scripts"]["costwatch-agent"].partition(":")
    assert callable(getattr(import_module(module), function))
    assert re.fullmatch(r"\d+\.\d+\.\d+", VERSION)


def test_every_option_is_documented_and_every_documented_option_exists():
    page = (ROOT / "docs/agent.md").read_text("utf-8")
    cells = re.findall(r"^\| (`--[^|]*)", page, flags=re.MULTILINE)
    documented = {option for cell in cells for option in re.findall(r"--[a-z-]+", cell)}
    assert documented == OPTIONS - {"--help", "--version"}


def test_every_metric_is_documented(nvml, agent):
    one = agent()
    one.tick()
    names = set(re.findall(r"^# TYPE (\S+)", one.metrics(), flags=re.MULTILINE))
    one.close()
    page = (ROOT / "docs/agent.md").read_text("utf-8")
    assert {name for name in names if f"`{name}`" not in page} == set()


def test_the_deployments_use_options_that_exist():
    for path in sorted((PACKAGE / "deploy").iterdir()):
        text = path.read_text("utf-8")
        code = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
        used = {
            option
            for option in re.findall(r"(?<![\w-])(--[a-z][a-z-]+)", code)
            if "costwatch-agent" in text
        }
        foreign = {"--name-only", "--no-cache-dir"}
        assert used - OPTIONS - foreign == set(), path.name


def test_the_daemonset_reads_the_hosts_processes_and_keeps_its_spool_on_the_host():
    documents = list(yaml.safe_load_all((PACKAGE / "deploy/daemonset.yaml").read_text("utf-8")))
    (found,) = [document for document in documents if document["kind"] == "DaemonSet"]
    pod = found["spec"]["template"]["spec"]
    assert pod["hostPID"] is True
    arguments = pod["containers"][0]["args"]
    options = options_of(arguments)
    mounted = {mount["mountPath"] for mount in pod["containers"][0]["volumeMounts"]}
    assert str(options.spool) in mounted
    assert str(options.sys) in mounted


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--server", "ftp://x"], "is no address"),
        (["--server", "http://costwatch.example.org"], "in the clear"),
        (["--server", "https://user:secret@x"], "--token-file"),
        (["--server", "https://x", "--period", "0"], "--period"),
        (["--server", "https://x", "--listen", "9838"], "HOST:PORT"),
        (["--server", "https://x", "--spool-max-mb", "0"], "--spool-max-mb"),
    ],
)
def test_options_that_make_no_sense_are_refused_with_the_reason(capsys, arguments, reason):
    with pytest.raises(SystemExit) as refused:
        options_of([*arguments, "--token-file", "x"])
    assert refused.value.code == 2
    assert reason in capsys.readouterr().err


def test_a_token_that_cannot_be_read_stops_the_start(node, command):
    node.token.unlink()
    run = command("https://x", "--once")
    assert run.returncode == 1
    assert "the token cannot be read" in run.stderr


def test_a_second_agent_on_the_same_spool_is_refused(nvml, agent, command):
    one = agent()
    run = command("http://127.0.0.1:9", "--once")
    one.close()
    assert run.returncode == 1
    assert "give this one another --spool" in run.stderr


def test_a_node_without_anything_to_read_says_so(nvml, command):
    nvml.state.init_error = 9
    with serving(Oracle()) as url:
        run = command(url, "--once", "--no-rapl", "--no-bmc")
    assert run.returncode == 2
    assert "NVML cannot be opened" in run.stderr


def test_the_trial_on_a_gpu_compares_counter_and_power(nvml, library):
    nvml.rises(0, 500.0)
    nvml.gpu().usage_milliwatt = 500_000
    script = PACKAGE / "tools/try_on_gpu.py"
    run = subprocess.run(
        [sys.executable, script, "--idle", "1.5", "--busy", "0.1", "--period", "0.1"],
        env=agent_environment(nvml, library),
        capture_output=True,
        text=True,
        timeout=60,
    )
    found = json.loads(run.stdout)
    assert found["power_field"] == "average"
    for comparison in found["all"].values():
        assert comparison["readings"] > 5
        assert abs(comparison["divergence"]) < 0.01

"""The host's meters, each with its rule whether the GPUs are in it."""

import os

import pytest

from costwatch_agent.bmc import BmcReader, find_meter
from costwatch_agent.rapl import Rapl, rise
from tests.agent.test_spool import drain

ANSWER = """
    Instantaneous power reading:                  6120 Watts
    Minimum during sampling period:                 11 Watts
    Power reading state is:                   activated
"""


def zone(node, folder, name, energy_uj, *, range_uj=262_143_328_850):
    node.write(f"sys/class/powercap/{folder}/name", f"{name}\n")
    node.write(f"sys/class/powercap/{folder}/energy_uj", f"{energy_uj}\n")
    node.write(f"sys/class/powercap/{folder}/max_energy_range_uj", f"{range_uj}\n")


def test_rapl_adds_packages_and_memory_and_nothing_that_holds_or_is_held(node):
    for energy, spent in [(1_000_000, 0), (1_000_000, 1)]:
        zone(node, "intel-rapl:0", "package-0", energy + spent * 2_000_000_000)
        zone(node, "intel-rapl:0:0", "core", energy + spent * 1_500_000_000)
        zone(node, "intel-rapl:0:1", "dram", energy + spent * 300_000_000)
        zone(node, "intel-rapl:1", "package-1", energy + spent * 1_000_000_000)
        zone(node, "intel-rapl:2", "psys", energy + spent * 9_000_000_000)
        zone(node, "intel-rapl-mmio:0", "package-0", energy + spent * 2_000_000_000)
        if not spent:
            rapl = Rapl(node.sys)
            assert rapl.power_w(100.0) is None, "one reading is no power"
    assert rapl.power_w(110.0) == pytest.approx(330.0)


def test_a_rapl_counter_begins_again_at_its_range(node):
    assert rise(90, 10, range_uj=99) == 20
    zone(node, "intel-rapl:0", "package-0", 262_143_000_000)
    rapl = Rapl(node.sys)
    rapl.power_w(0.0)
    zone(node, "intel-rapl:0", "package-0", 1_671_149)
    assert rapl.power_w(10.0) == pytest.approx(0.2, abs=1e-3)


def test_rapl_after_a_long_pause_or_without_leave_is_missing_not_wrong(node):
    zone(node, "intel-rapl:0", "package-0", 1)
    rapl = Rapl(node.sys)
    rapl.power_w(0.0)
    assert rapl.power_w(4000.0) is None
    (node.sys / "class/powercap/intel-rapl:0/energy_uj").unlink()
    assert rapl.power_w(4010.0) is None
    assert not rapl
    assert not Rapl(node.sys)


def test_the_bmc_is_read_by_acpis_meter_with_the_gpus_in_it(node, agent, nvml):
    node.write("sys/class/hwmon/hwmon3/name", "power_meter\n")
    node.write("sys/class/hwmon/hwmon3/power1_average", "6120000000\n")
    meter = find_meter(node.sys)
    assert meter is not None
    assert meter() == 6120.0
    reader = BmcReader(meter, period_s=60)
    reader.ask()
    assert [power_w for _, power_w in reader.take()] == [6120.0]
    assert reader.take() == []


def test_a_superchips_meters_of_its_parts_are_not_the_node(node, monkeypatch):
    monkeypatch.setenv("PATH", "")
    node.write("sys/class/hwmon/hwmon0/name", "power_meter\n")
    node.write("sys/class/hwmon/hwmon0/device/power1_average", "300000000\n")
    node.write("sys/class/hwmon/hwmon0/device/power1_oem_info", "Grace Power Socket 0\n")
    node.write("sys/class/hwmon/hwmon1/name", "coretemp\n")
    assert find_meter(node.sys) is None


def test_without_acpis_meter_ipmitool_is_asked(node, monkeypatch):
    tool = node.write("bin/ipmitool", f"#!/bin/sh\nprintf '{ANSWER}'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:{os.environ['PATH']}")
    meter = find_meter(node.sys)
    assert meter is not None
    assert meter() == 6120.0
    tool.write_text("#!/bin/sh\necho 'DCMI request failed' >&2; exit 1\n", encoding="utf-8")
    assert meter() is None


def sent_nodes(one):
    one._spool.cut()
    return [reading for d in drain(one._spool) for reading in d["node_readings"]]


@pytest.mark.parametrize("without", [False, True])
def test_what_is_sent_of_the_host_says_whether_the_gpus_are_in_it(
    node, nvml, command, without, library
):
    zone(node, "intel-rapl:0", "package-0", 1_000_000)
    node.write("sys/class/hwmon/hwmon3/name", "power_meter\n")
    node.write("sys/class/hwmon/hwmon3/power1_average", "6120000000\n")
    from costwatch_agent.agent import Agent
    from costwatch_agent.options import options_of

    more = ["--bmc-without-gpus"] if without else []
    one = Agent(options_of(node.arguments("http://127.0.0.1:9", *more)))
    one.tick()
    assert one._bmc is not None
    one._bmc.ask()
    zone(node, "intel-rapl:0", "package-0", 9_000_000)
    one.tick()
    found = {(r["meter"], r["includes_accelerators"]) for r in sent_nodes(one)}
    assert found == {("rapl", False), ("bmc", not without)}
    one.close()


def test_where_a_gpus_counter_holds_the_cpu_rapl_is_left_out(node, nvml, agent):
    zone(node, "intel-rapl:0", "package-0", 1_000_000)
    nvml.gpu().module_milliwatt = 620_000
    one = agent()
    for energy in (2_000_000, 3_000_000):
        zone(node, "intel-rapl:0", "package-0", energy)
        one.tick()
    assert sent_nodes(one) == []
    one.close()


def test_a_node_without_gpus_still_tells_the_host(node, nvml, agent):
    nvml.state.init_error = 9
    zone(node, "intel-rapl:0", "package-0", 1_000_000)
    one = agent()
    one.tick()
    zone(node, "intel-rapl:0", "package-0", 9_000_000)
    assert one.tick() == 1
    assert [reading["meter"] for reading in sent_nodes(one)] == ["rapl"]
    one.close()

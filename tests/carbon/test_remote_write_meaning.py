"""What the labels of real exporters mean: units, devices, nodes, jobs, senders."""

import pytest

from carbon.adapters.remote_write import decode
from tests.carbon.remote_write_bodies import COUNTER, POWER, Ts, body, gpu
from tests.carbon.remote_write_corpus import NOW, OWNER, T

UUID = "GPU-00000000-aaaa-bbbb-cccc-dddddddddddd"


def brought(*series: Ts):
    decoded = decode(body(*series), owner=OWNER, now=NOW)
    assert not decoded.complaint
    return dict(decoded.streams)


def only(*series: Ts):
    ((_stream, one),) = brought(*series).items()
    return one


def labelled(name: str, value: float, **labels: str) -> Ts:
    pairs = sorted({"__name__": name, **labels}.items())
    return Ts(labels=pairs, samples=[(T, value)])


@pytest.mark.parametrize(
    ("name", "value", "label", "millijoule"),
    [
        (COUNTER, 3.6e12, "UUID", 3_600_000_000_000),
        ("nvidia_smi_energy_joules_total", 1_234.567, "uuid", 1_234_567),
        ("costwatch_gpu_energy_joules_total", 2.5, "uuid", 2_500),
    ],
)
def test_counters_are_millijoules(name, value, label, millijoule):
    one = only(labelled(name, value, **{label: UUID}))
    assert one.counters.counter_millijoule.tolist() == [millijoule]
    assert one.counters.epoch.tolist() == [0]


@pytest.mark.parametrize(
    ("name", "label", "value", "power_w", "field"),
    [
        (POWER, "UUID", 612.5, 612.5, "average"),
        ("DCGM_FI_DEV_POWER_USAGE_INSTANT", "UUID", 612.5, 612.5, "instant"),
        ("nvidia_smi_power_draw_watts", "uuid", 612.5, 612.5, "average"),
        ("nvidia_gpu_power_usage_milliwatts", "uuid", 612_500.0, 612.5, "average"),
        ("gpu_power_usage_watts", "uuid", 612.5, 612.5, "average"),
    ],
)
def test_power_is_watts_and_says_which_reading_it_is(name, label, value, power_w, field):
    one = only(labelled(name, value, **{label: UUID}))
    assert one.power.power_w.tolist() == pytest.approx([power_w])
    assert one.power_field == field


def test_what_a_device_does_is_one_row_in_our_units():
    one = only(
        Ts(labels=gpu("DCGM_FI_DEV_GPU_UTIL"), samples=[(T, 97.0)]),
        Ts(labels=gpu("DCGM_FI_PROF_GR_ENGINE_ACTIVE"), samples=[(T, 0.5)]),
        Ts(labels=gpu("DCGM_FI_DEV_FB_USED"), samples=[(T, 1024.0)]),
        Ts(labels=gpu("DCGM_FI_DEV_SM_CLOCK"), samples=[(T, 1980.0)]),
        Ts(labels=gpu("DCGM_FI_DEV_XID_ERRORS"), samples=[(T, 0.0)]),
    )
    assert len(one.use) == 1
    found = {name: column.tolist() for name, column in one.use.measures.items()}
    assert found == {
        "utilisation_fraction": [0.97],
        "memory_used_bytes": [1024.0 * 2**20],
        "sm_clock_hz": [1.98e9],
        "xid": [0.0],
    }


def test_the_driver_s_average_counts_before_an_instant():
    one = only(
        Ts(labels=gpu("DCGM_FI_DEV_POWER_USAGE_INSTANT"), samples=[(T, 900.0)]),
        Ts(labels=gpu(POWER), samples=[(T, 600.0)]),
    )
    assert one.power.power_w.tolist() == [600.0]
    assert one.power_field == "average"


def test_slices_of_one_device_count_its_power_once():
    slices = [
        Ts(labels=gpu(POWER, GPU_I_ID=str(number), GPU_I_PROFILE="3g.40gb"), samples=[(T, 512.0)])
        for number in (1, 2)
    ]
    of_slice = Ts(labels=gpu("DCGM_FI_DEV_GPU_UTIL", GPU_I_ID="1"), samples=[(T, 50.0)])
    one = only(*slices, of_slice)
    assert one.power.power_w.tolist() == [512.0]
    assert len(one.use) == 0
    assert one.ignored == 1


def test_a_device_is_its_uuid_and_not_its_host_or_index():
    moved = Ts(labels=gpu(Hostname="other", gpu="7"), samples=[(T + 1000, 2.0)])
    one = only(Ts(labels=gpu(), samples=[(T, 1.0)]), moved)
    assert [device.uuid for device in one.devices] == [UUID]
    assert one.power.device.tolist() == [0, 0]


def test_an_exporter_that_leaves_gpu_out_of_uuids_names_the_same_device():
    one = only(labelled("nvidia_smi_power_draw_watts", 1.0, uuid=UUID.removeprefix("GPU-")))
    assert one.devices[0].uuid == UUID


@pytest.mark.parametrize(
    ("labels", "node"),
    [
        ({"Hostname": "node-9"}, "node-9"),
        ({"Hostname": "dcgm-exporter-x7k2p", "node": "node-9"}, "node-9"),
        ({"Hostname": "dcgm-exporter-x7k2p", "instance": "10.1.2.3:9400"}, "10.1.2.3"),
        ({"Hostname": "", "instance": "[fe80::1]:9400"}, "[fe80::1]"),
        ({"Hostname": "abc", "pod": "abc", "exported_pod": "train-0", "instance": "h:1"}, "h"),
        ({"Hostname": "", "instance": "localhost:9400"}, ""),
    ],
)
def test_a_node_is_never_the_exporters_own_pod(labels, node):
    one = only(Ts(labels=gpu(POWER, **{"instance": "", **labels}), samples=[(T, 1.0)]))
    assert one.devices[0].node == node


@pytest.mark.parametrize(
    ("labels", "kind", "job"),
    [
        ({"pod": "train-0", "namespace": "llm"}, "kubernetes", "llm/train-0"),
        (
            {
                "pod": "dcgm-exporter-abc",
                "exported_pod": "train-0",
                "exported_namespace": "llm",
                "namespace": "monitoring",
            },
            "kubernetes",
            "llm/train-0",
        ),
        ({"hpc_job": "4711", "pod": "dcgm-exporter-abc"}, "slurm", "4711"),
    ],
)
def test_the_job_on_a_device_is_noted(labels, kind, job):
    one = only(Ts(labels=gpu(POWER, **labels), samples=[(T, 1.0)]))
    (note,) = one.jobs
    assert (note.kind, note.job, note.at) == (kind, job, T * 1000)
    assert one.devices[note.device].uuid == UUID


def test_the_exporters_own_pod_is_no_job():
    assert only(Ts(labels=gpu(POWER, pod="nvidia-dcgm-exporter-1"), samples=[(T, 1.0)])).jobs == ()


def test_a_job_is_noted_once_a_minute_and_only_when_it_was_stored():
    def at(offset_ms: int):
        series = Ts(labels=gpu(POWER, pod="once-a-minute"), samples=[(T + offset_ms, 1.0)])
        return decode(body(series), owner=OWNER, now=NOW)

    def jobs(decoded) -> int:
        return len(decoded.streams[0][1].jobs)

    assert jobs(at(0)) == 1  # not stored: its sender will send it again
    stored = at(0)
    assert jobs(stored) == 1
    stored.remember()
    assert jobs(at(10_000)) == 0
    assert jobs(at(60_000)) == 1


def test_two_exporters_and_two_replicas_are_senders_of_their_own():
    found = brought(
        Ts(labels=gpu(COUNTER), samples=[(T, 1e6)]),
        labelled("nvidia_smi_energy_joules_total", 1e3, uuid=UUID),
        Ts(labels=gpu(COUNTER, prometheus_replica="b"), samples=[(T + 3, 1e6)]),
    )
    assert set(found) == {
        ("dcgm-exporter", ""),
        ("nvidia_gpu_exporter", ""),
        ("dcgm-exporter", "b"),
    }


@pytest.mark.parametrize(
    ("series", "meter", "with_gpus"),
    [
        (labelled("ipmi_dcmi_power_consumption_watts", 6e3, instance="bmc-7:9290"), 0, True),
        (
            labelled(
                "kepler_platform_watts",
                6e3,
                node_name="bmc-7",
                power_control_name="Server Power Control",
            ),
            0,
            True,
        ),
        (labelled("kepler_node_cpu_watts", 6e3, node_name="bmc-7", zone="package"), 1, False),
        (labelled("costwatch_node_power_watts", 6e3, instance="bmc-7", meter="rapl"), 1, False),
        (labelled("costwatch_node_power_watts", 6e3, node="bmc-7", meter="pdu"), 2, True),
        (
            labelled(
                "costwatch_node_power_watts",
                6e3,
                node="bmc-7",
                meter="bmc",
                includes_accelerators="false",
            ),
            0,
            False,
        ),
    ],
)
def test_power_of_nodes_says_whether_the_gpus_are_in_it(series, meter, with_gpus):
    nodes = only(series).nodes
    assert nodes.names == ("bmc-7",)
    assert nodes.meter.tolist() == [meter]
    assert nodes.power_w.tolist() == [6000.0]
    assert nodes.includes_accelerators.tolist() == [with_gpus]


def test_names_that_others_use_too_are_ignored_without_a_uuid():
    article = labelled("gpu_power_usage_watts", 1.0, gpu_id="0", gpu_name="NVIDIA H100")
    decoded = decode(body(article), owner=OWNER, now=NOW)
    assert (decoded.written, decoded.ignored, decoded.complaint) == (0, 1, "")


def test_the_agent_says_which_power_it_reads():
    one = only(labelled("costwatch_gpu_power_watts", 9.0, uuid=UUID, power_field="instant"))
    assert one.power_field == "instant"


def test_parts_of_a_server_are_not_taken_for_the_whole():
    part = labelled("kepler_platform_watts", 1.0, node_name="n", power_control_name="CPU")
    zone = labelled("kepler_node_cpu_watts", 1.0, node_name="n", zone="dram")
    decoded = decode(body(part, zone), owner=OWNER, now=NOW)
    assert (decoded.written, decoded.ignored) == (0, 2)

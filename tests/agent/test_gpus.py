"""The GPUs through NVML's real binding, which loads a small library that plays the driver."""

import json
import time

import pytest

from costwatch_agent import gpus as gpus_module
from costwatch_agent.agent import START_AGAIN
from costwatch_agent.epochs import Life, began_again
from costwatch_agent.records import Reading
from tests.agent.conftest import BOOTED_AT
from tests.agent.fake_nvml import LOST, MISMATCH, NO_PERMISSION, NOT_LOADED, NOT_SUPPORTED


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch):
    monkeypatch.setattr(gpus_module, "REOPEN_EVERY_S", 0.0)


def test_eight_devices_are_read_each_with_all_its_measures(nvml, gpus):
    nvml.state.gpus = 8
    seen = gpus().see()
    assert [device.uuid[:12] for device in seen.devices] == [f"GPU-{n:08d}" for n in range(8)]
    third = seen.readings[2]
    assert abs(third.at_ms - time.time() * 1000) < 5000
    assert third == Reading(
        device=2,
        at_ms=third.at_ms,
        counter_millijoule=5_000_001_002,
        power_w=512.3,
        utilisation_fraction=0.97,
        memory_used_bytes=3 << 30,
        memory_total_bytes=80 << 30,
        temperature_c=61.0,
        sm_clock_hz=1_980_000_000,
        power_limit_w=650.0,
        throttle_reasons=4,
        xid=0,
        ecc_errors=0,
    )
    assert seen.devices[2].power_limit_w == 700.0
    assert seen.devices[2].epoch == BOOTED_AT


@pytest.mark.parametrize(
    ("average", "instant", "usage", "model", "architecture", "expected"),
    [
        (512_300, 530_000, 511_000, b"NVIDIA H100 80GB HBM3", 9, ("average", 512.3)),
        (0, 530_000, 511_000, b"NVIDIA H100 80GB HBM3", 9, ("instant", 530.0)),
        (0, 0, 511_000, b"NVIDIA H100 80GB HBM3", 9, ("average", 511.0)),
        (0, 0, 311_000, b"NVIDIA A100-SXM4-80GB", 7, ("instant", 311.0)),
        (0, 0, 211_000, b"NVIDIA A10", 7, ("average", 211.0)),
        (0, 0, 111_000, b"Tesla V100-SXM2-16GB", 5, ("instant", 111.0)),
        (0, 0, 0, b"NVIDIA H100 80GB HBM3", 9, ("", None)),
    ],
)
def test_it_is_recorded_which_power_was_read(
    nvml, gpus, average, instant, usage, model, architecture, expected
):
    gpu = nvml.gpu()
    gpu.average_milliwatt, gpu.instant_milliwatt, gpu.usage_milliwatt = average, instant, usage
    gpu.name, gpu.architecture = model, architecture
    seen = gpus().see()
    assert (seen.devices[0].power_field, seen.readings[0].power_w) == expected


def test_a_device_without_a_counter_still_tells_its_power(nvml, gpus):
    nvml.fails(0, "energy", NOT_SUPPORTED)
    (reading,) = gpus().see().readings
    assert (reading.counter_millijoule, reading.power_w) == (None, 512.3)


def test_what_needs_a_permission_is_missing_alone_and_is_asked_for_once(nvml, gpus, caplog):
    nvml.fails(0, "ecc", NO_PERMISSION)
    nvml.fails(0, "processes", NO_PERMISSION)
    reader = gpus()
    readings = [reader.see().readings[0] for _ in range(3)]
    assert [reading.ecc_errors for reading in readings] == [None] * 3
    assert readings[2].temperature_c == 61.0
    assert len([line for line in caplog.messages if "ECC errors cannot be read" in line]) == 1


def test_a_counter_that_fell_begins_an_epoch(nvml, gpus):
    reader = gpus()
    first = reader.see().devices[0].epoch
    nvml.gpu().counter_millijoule = 7
    second = reader.see().devices[0].epoch
    third = reader.see().devices[0].epoch
    assert first < second == third


def test_a_counter_that_wraps_begins_an_epoch(nvml, gpus):
    nvml.state.wrap_bits = 32
    nvml.gpu().counter_millijoule = (1 << 32) - 500 - 1000
    reader = gpus()
    before, after = reader.see(), reader.see()
    assert before.readings[0].counter_millijoule == (1 << 32) - 500
    assert after.readings[0].counter_millijoule == 500
    assert before.devices[0].epoch < after.devices[0].epoch


def test_a_reloaded_driver_is_opened_again_and_begins_an_epoch(nvml, gpus):
    nvml.state.gpus = 2
    reader = gpus()
    before = reader.see()
    nvml.reload_driver()
    assert reader.see().readings == (), "missing is not zero"
    after = reader.see()
    assert [reading.counter_millijoule for reading in after.readings] == [1000, 1000]
    assert {d.epoch for d in before.devices} == {BOOTED_AT}
    assert all(device.epoch > BOOTED_AT for device in after.devices)
    assert reader.reopened == 1


def test_a_driver_of_another_version_begins_an_epoch_whatever_the_counter_says(nvml, gpus):
    first = gpus()
    first.see()
    first.remember()
    first.close()
    nvml.gpu().counter_millijoule += 10
    nvml.state.driver = b"590.1"
    assert gpus().see().devices[0].epoch > BOOTED_AT


def test_one_lost_gpu_does_not_silence_the_others_nor_change_their_epochs(nvml, gpus):
    nvml.state.gpus = 8
    reader = gpus()
    reader.see()
    nvml.gpu(3).lost = LOST
    for _ in range(3):
        seen = reader.see()
        assert [device.index for device in seen.devices] == [0, 1, 2, 4, 5, 6, 7]
    nvml.gpu(3).lost = 0
    reader.see()
    back = reader.see()
    assert len(back.devices) == 8
    assert {device.epoch for device in back.devices} == {BOOTED_AT}, "their counters went on"


def test_after_nvml_was_lost_a_counter_too_high_to_be_new_went_on():
    last = Life(epoch=1, counter_millijoule=5_000_000_000, at_s=100.0)
    for counter, lost, expected in [
        (5_000_100_000, True, False),  # more than 700 W can have made in 10 s since a restart
        (4_999_999_999, False, True),
        (5_000_100_000, False, False),
    ]:
        found = began_again(last, counter_millijoule=counter, at_s=110.0, lost=lost, limit_w=700.0)
        assert found is expected
    young = Life(epoch=1, counter_millijoule=1_000, at_s=100.0)
    assert began_again(young, counter_millijoule=2_000, at_s=110.0, lost=True, limit_w=700.0)


def test_the_next_start_goes_on_with_the_epoch_unless_the_node_was_booted(nvml, gpus, node):
    reader = gpus()
    reader.see()
    nvml.gpu().counter_millijoule = 9
    epoch = reader.see().devices[0].epoch
    reader.remember()
    reader.close()
    again = gpus()
    assert again.see().devices[0].epoch == epoch
    again.close()
    node.write("proc/sys/kernel/random/boot_id", "boot-2\n")
    node.write("proc/stat", f"btime {BOOTED_AT + 90_000}\n")
    assert gpus().see().devices[0].epoch == BOOTED_AT + 90_000


def test_a_damaged_note_of_epochs_is_no_fault(nvml, gpus, node):
    for text in ("", "{", "[]", '{"boot_id": "boot-1", "driver": "580.1", "devices": {"a": {}}}'):
        node.write("epochs.json", text)
        reader = gpus()
        assert reader.see().devices[0].epoch == BOOTED_AT
        reader.close()


def test_a_driver_changed_under_the_library_asks_for_a_new_process(nvml, agent):
    nvml.state.init_error = MISMATCH
    assert agent().run() == START_AGAIN


def test_without_a_driver_it_waits_for_one(nvml, gpus):
    nvml.state.init_error = NOT_LOADED
    reader = gpus()
    assert reader.see().readings == ()
    nvml.state.init_error = 0
    assert len(reader.see().readings) == 1


def test_mig_is_read_once_on_the_parent_and_its_instances_are_listed(nvml, gpus, caplog):
    caplog.set_level("INFO")
    nvml.splits(0, [("3g.40gb", 60), ("1g.10gb", 16)])
    seen = gpus().see()
    assert len(seen.readings) == 1
    assert seen.readings[0].utilisation_fraction is None
    assert seen.devices[0].document()["mig"] == {
        "instances": [
            {"uuid": "MIG-0-0", "profile": "3g.40gb", "sm_fraction": 0.4545},
            {"uuid": "MIG-0-1", "profile": "1g.10gb", "sm_fraction": 0.1212},
        ]
    }
    assert "its energy is in the GPU's, once" in caplog.text


def test_where_nvml_does_not_count_sms_the_profile_tells_the_share(nvml, gpus):
    nvml.splits(0, [("3g.40gb", 0), ("1c.2g.20gb", 0)], all_sms=0)
    assert [part.sm_fraction for part in gpus().see().devices[0].mig] == [0.4286, 0.2857]


def test_a_superchip_is_read_for_its_module_and_it_is_said(nvml, gpus, caplog):
    nvml.gpu().module_milliwatt = 620_000
    reader = gpus()
    seen = reader.see()
    assert (seen.devices[0].energy_scope, seen.readings[0].power_w) == ("module", 620.0)
    assert reader.has_module_scope
    assert "RAPL is not read" in caplog.text


def test_an_xid_is_told_once(nvml, gpus):
    nvml.state.gpus = 2
    reader = gpus()
    reader.see()
    nvml.gpu(1).xid = 79
    assert [[r.xid for r in reader.see().readings] for _ in range(2)] == [[0, 79], [0, 0]]


def test_xids_that_cannot_be_watched_are_unread_not_zero(nvml, gpus):
    nvml.fails(0, "events", NOT_SUPPORTED)
    assert gpus().see().readings[0].xid is None


def test_the_processes_on_a_gpu_name_its_job(nvml, gpus, node):
    nvml.gpu().pids = 1
    nvml.gpu().pid[0] = 4242
    node.process(4242, SLURM_JOB_ID="4711", COSTWATCH_RUN="moe-10b/main")
    (note,) = gpus().see().jobs
    assert (note.device, note.kind, note.job, note.run) == (0, "slurm", "4711", "moe-10b/main")


def test_a_node_with_two_meanings_of_power_sends_two_batches(nvml, agent, node):
    nvml.state.gpus = 3
    nvml.gpu(1).average_milliwatt = 0
    nvml.gpu(2).average_milliwatt = nvml.gpu(2).instant_milliwatt = nvml.gpu(2).usage_milliwatt = 0
    one = agent()
    one.tick()
    kept = [json.loads(line) for line in _payloads(node)]
    found = [(d["power_field"], [x["uuid"][:12] for x in d["devices"]]) for d in kept]
    assert found == [
        ("average", ["GPU-00000000", "GPU-00000002"]),
        ("instant", ["GPU-00000001"]),
    ]
    assert kept[1]["columns"]["device"] == [0]
    one.close()


def _payloads(node):
    data = (node.spool / "journal").read_bytes()
    return [piece[28:] for piece in data.split(b"\xf5\xc0\xff\x01")[1:]]

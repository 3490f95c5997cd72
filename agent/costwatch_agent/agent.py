"""The agent's beat: read everything, make it durable, cut batches; sending is another thread's."""

import logging
import threading
import time
from dataclasses import dataclass, field
from typing import Final

from costwatch_agent.batches import BatchBuilder, tick_documents
from costwatch_agent.bmc import BmcReader, find_meter
from costwatch_agent.endpoint import Endpoint
from costwatch_agent.exposition import GpuState, Standing, exposition
from costwatch_agent.gpus import DriverChangedError, Gpus
from costwatch_agent.jobs import JobFinder
from costwatch_agent.options import Options
from costwatch_agent.rapl import Rapl
from costwatch_agent.records import Device, NodeReading, Reading, Tick
from costwatch_agent.sender import Door, Sender
from costwatch_agent.spool import Spool
from costwatch_agent.tailing import Tail, TailJob, path_of

log = logging.getLogger(__name__)
LAST_SEND_S: Final = 5.0  # what a stopping agent gives its last batches
OK: Final = 0
NOTHING_TO_READ: Final = 2
NOT_SENT: Final = 3
START_AGAIN: Final = 75  # the driver was changed: a supervisor starts a new process
ONCE_TRIES: Final = 4
ONCE_S: Final = 20.0


@dataclass(slots=True)
class _Newest:
    """What the endpoint shows."""

    gpus: tuple[tuple[Device, Reading], ...] = ()
    nodes: dict[str, NodeReading] = field(default_factory=dict)
    tick_s: float = 0.0


class Agent:
    """One node's agent."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self.stopping = threading.Event()
        builder = BatchBuilder(name=options.name)
        self._spool = Spool(options.spool, max_bytes=options.spool_max_bytes, builder=builder)
        finder = JobFinder(options.proc, options.jobs_folder) if options.jobs else None
        self._gpus = Gpus(proc=options.proc, state=options.spool / "epochs.json", finder=finder)
        self._rapl = Rapl(options.sys) if options.rapl else None
        meter = find_meter(options.sys) if options.bmc else None
        self._bmc = BmcReader(meter, period_s=options.bmc_period_s) if meter else None
        door = Door(options.server, options.token_file, ca_file=options.ca_file)
        self._sender = Sender(self._spool, door.post)
        self._tails = [self._tail(job) for job in options.tails]
        self._newest = _Newest()

    def _tail(self, job: TailJob) -> Tail:
        options = self._options
        door = Door(
            options.server,
            options.tail_token_file,
            ca_file=options.ca_file,
            path=path_of(job.run),
        )
        return Tail(job, door.post)

    def run(self) -> int:
        """Beat until told to stop."""
        self._spool.cut()  # what a former start left
        self._listen()
        if self._bmc is not None:
            self._bmc.start()
        sending = threading.Thread(target=self._sender.run, name="sender", daemon=True)
        sending.start()
        tailing = [
            threading.Thread(target=tail.run, name="tail", daemon=True) for tail in self._tails
        ]
        for thread in tailing:
            thread.start()
        status = OK
        try:
            self._beat()
        except DriverChangedError as error:
            log.error("the driver was changed (%s): the agent has to be started again", error)
            status = START_AGAIN
        for tail in self._tails:
            tail.stopping.set()
        self._spool.cut()
        self._gpus.remember()
        deadline = time.monotonic() + LAST_SEND_S
        while self._spool.waiting and sending.is_alive() and time.monotonic() < deadline:
            time.sleep(0.05)
        self._sender.stop()
        for thread in tailing:
            thread.join()
        self.close()
        return status

    def _listen(self) -> None:
        if self._options.listen is None:
            return
        host, port = self._options.listen
        try:
            endpoint = Endpoint(host, port, self.metrics)
        except OSError as error:
            log.error("no metrics on %s:%d: %s", host, port, error.strerror)
            return
        endpoint.start()
        log.info("metrics on http://%s:%d/metrics", host, endpoint.port)

    def _beat(self) -> None:
        options = self._options
        next_tick_s = next_cut_s = time.monotonic()
        next_cut_s += options.send_every_s
        while not self.stopping.is_set():
            self.tick()
            if time.monotonic() >= next_cut_s - options.period_s / 2:
                self._spool.cut()
                self._gpus.remember()
                next_cut_s = time.monotonic() + options.send_every_s
            next_tick_s += options.period_s
            late_s = time.monotonic() - next_tick_s
            if late_s > 0:  # a tick that is over is not made up for
                next_tick_s += (late_s // options.period_s + 1) * options.period_s
            self.stopping.wait(next_tick_s - time.monotonic())

    def once(self) -> int:
        """Read once and send; the status says whether everything arrived."""
        if self._bmc is not None:
            self._bmc.ask()
        rows = self.tick()
        self._gpus.remember()
        self._spool.cut()
        until = time.monotonic() + ONCE_S
        arrived = self._sender.empty(tries=ONCE_TRIES, until=until)
        for tail in self._tails:
            arrived = tail.once() and arrived
            rows += tail.rows
        self.close()
        if not arrived:
            log.error("not everything was sent: it waits in %s", self._options.spool)
            return NOT_SENT
        return OK if rows else NOTHING_TO_READ

    def tick(self) -> int:
        """Read everything and make it durable; the number of readings."""
        started_s = time.perf_counter()
        seen = self._gpus.see()
        tick = Tick(
            devices=seen.devices, readings=seen.readings, nodes=self._hosts(), jobs=seen.jobs
        )
        for document in tick_documents(tick):
            rows = len(document["columns"]["device"]) + len(document["nodes"])
            if rows or document["jobs"]:
                self._spool.add(document, rows=rows)
        self._newest.gpus = tuple(
            (seen.devices[reading.device], reading) for reading in seen.readings
        )
        self._newest.nodes |= {reading.meter: reading for reading in tick.nodes}
        self._newest.tick_s = time.perf_counter() - started_s
        return tick.rows

    def _hosts(self) -> tuple[NodeReading, ...]:
        """The host's power. RAPL is left out where a GPU's counter holds the CPU already."""
        found = []
        if self._rapl and not self._gpus.has_module_scope:
            at_s = time.time()
            power_w = self._rapl.power_w(time.monotonic())
            if power_w is not None:
                found.append(
                    NodeReading(
                        at_ms=int(at_s * 1000),
                        meter="rapl",
                        power_w=round(power_w, 3),
                        includes_accelerators=False,
                    )
                )
        for at_ms, power_w in self._bmc.take() if self._bmc else ():
            found.append(
                NodeReading(
                    at_ms=at_ms,
                    meter="bmc",
                    power_w=power_w,
                    includes_accelerators=self._options.bmc_includes_gpus,
                )
            )
        return tuple(found)

    def metrics(self) -> str:
        """The endpoint's text."""
        spool, sending, check = self._spool.tally, self._sender.tally, self._gpus.check
        figures = {
            "batches_taken": sending.taken,
            "batches_set_aside": spool.set_aside,
            "readings_dropped": spool.dropped,
            "spool_damaged": spool.damaged,
            "disk_errors": spool.disk_errors,
            "nvml_reopened": max(self._gpus.reopened, 0),
            "spool_bytes": self._spool.total_bytes,
            "refused_status": sending.refused,
            "last_taken_timestamp_seconds": sending.last_taken_s,
            "clock_skew_seconds": sending.skew_s,
            "tick_seconds": self._newest.tick_s,
        }
        return exposition(
            Standing(
                gpus=[
                    GpuState(
                        device=device,
                        reading=reading,
                        divergence=check.divergence(device.uuid),
                        diverges=check.flagged(device.uuid),
                    )
                    for device, reading in self._newest.gpus
                ],
                nodes=list(self._newest.nodes.values()),
                figures={name: value for name, value in figures.items() if value is not None},
                failures=dict(sending.failures),
                boot=self._spool.boot,
                node=self._options.name,
            )
        )

    def close(self) -> None:
        """Let go of the GPUs and the spool."""
        if self._bmc is not None:
            self._bmc.stop()
        self._gpus.close()
        self._spool.close()

"""What people call an accelerator, and which catalogue row that is; pure, no tables."""

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs.catalogue import accelerator_aliases, shipped_accelerators
from runs.records import AcceleratorSpec, InstanceTypeSpec, NamedAccelerator

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise

# Words that say who made it or that it is an accelerator, not which one.
_NOISE: Final = frozenset(
    {"nvidia", "amd", "google", "aws", "amazon", "intel", "habana", "instinct", "tesla", "cloud"}
    | {"gpu", "gpus", "tensor", "core", "accelerator", "accelerators"}
)
_SERVERS: Final = {"hgx": "sxm", "dgx": "sxm"}
_QUALIFIERS: Final = re.compile(
    r"(?:(?P<form>sxm[2-6]?|pcie?|nvl(?!\d)|oam)|(?P<memory>\d{2,3})gb|hbm[23]e?|per|chip|module)*"
)
_REASONS: "Final[Mapping[str, _StrPromise]]" = {
    "form_and_memory": gettext_lazy("the name alone does not say form or memory"),
    "form": gettext_lazy("the name alone does not say the form (SXM or PCIe)"),
    "memory": gettext_lazy("the name alone does not say the memory"),
    "generation": gettext_lazy("the name alone does not say the generation"),
    "capped": gettext_lazy(
        "cards with 96 GB, or capped at 500 W, have the same peaks; the TDP of this row is 700 W"
    ),
    "superchip": gettext_lazy("counted per GPU, not per superchip of two GPUs"),
    "module": gettext_lazy(
        "one %(family)s module = 2 GCDs; schedulers count GCDs, so their count is twice as large"
    ),
    "die": gettext_lazy("64 GB is one GCD, half a module of 128 GB"),
    "cores": gettext_lazy(
        "counted in chips of 2 cores each; the number in a slice's name counts cores"
    ),
}
# What holds however the rest of the name reads.
_UNIT_REASONS: Final = frozenset({"superchip", "module", "cores"})
_NEAR: Final = 4


def normal_name(text: str) -> str:
    """A name without case, spacing, punctuation and maker.

    >>> normal_name("NVIDIA H100-SXM 80 GB"), normal_name("h100 sxm 80gb")
    ('h100sxm80gb', 'h100sxm80gb')
    """
    joined = re.sub(r"(\d+)\s*(?:gib|gb|g)\b", r"\1gb", text.casefold())
    words = re.findall(r"[a-z0-9]+", joined)
    said = [word for word in words if word not in _NOISE]
    chips = [word for word in said if word not in _SERVERS]
    return "".join([*chips, *(_SERVERS[word] for word in said if word in _SERVERS)])


def plain_name(spec: AcceleratorSpec) -> str:
    """The name of a row without its maker: H100 SXM 80GB."""
    return spec.name.removeprefix(f"{spec.vendor} ")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """A row's key, and why the name alone does not say so."""

    key: str
    reason: str = ""


@cache
def _shipped_readings() -> Mapping[str, _Reading]:
    """Normal names of the shipped rows and aliases."""
    names = {normal_name(spec.name): spec.key for spec in shipped_accelerators().values()}
    found = {name: _Reading(key=key) for name, key in names.items()}
    for alias, key, reason in accelerator_aliases():
        found[normal_name(alias)] = _Reading(key=key, reason=reason)
    return MappingProxyType(found)


@cache
def _families() -> Mapping[str, tuple[AcceleratorSpec, ...]]:
    """The shipped rows by the normal name of their family."""
    families: dict[str, tuple[AcceleratorSpec, ...]] = {}
    for spec in shipped_accelerators().values():
        family = normal_name(spec.family)
        families[family] = (*families.get(family, ()), spec)
    return MappingProxyType(families)


def _parsed(name: str) -> _Reading | None:
    """A family followed by form and memory, in any spelling; None when a word stays unread."""
    fitting = [family for family in _families() if name.startswith(family)]
    family = max(fitting, key=len, default="")
    said = _QUALIFIERS.fullmatch(name.removeprefix(family)) if family else None
    if said is None:
        return None
    form, memory = (said["form"] or "").removesuffix("e"), said["memory"]
    candidates = [
        spec
        for spec in _families()[family]
        if spec.form_factor.casefold().startswith(form)
        and (memory is None or spec.memory_gb == float(memory))
    ]
    return _chosen(family, candidates)


def _chosen(family: str, candidates: list[AcceleratorSpec]) -> _Reading | None:
    """The usual one of several rows, with what sets them apart."""
    if not candidates:
        return None
    usual = _shipped_readings().get(family, _Reading(key=""))
    chosen = next((spec for spec in candidates if spec.key == usual.key), None)
    chosen = chosen or max(candidates, key=_usualness)
    forms = {spec.form_factor for spec in candidates}
    memories = {spec.memory_gb for spec in candidates}
    if len(forms) > 1 and len(memories) > 1:
        return _Reading(key=chosen.key, reason="form_and_memory")
    if len(forms) > 1:
        return _Reading(key=chosen.key, reason="form")
    if len(memories) > 1:
        return _Reading(key=chosen.key, reason="memory")
    return _Reading(key=chosen.key, reason=usual.reason if usual.reason in _UNIT_REASONS else "")


def _usualness(spec: AcceleratorSpec) -> tuple[int, float]:
    """Cards of training servers before cards for any server, then the larger memory."""
    return spec.accelerators_per_node or 0, spec.memory_gb or 0.0


def _assumption(text: str, spec: AcceleratorSpec, reason: str) -> str | None:
    """What was assumed, as one sentence for people."""
    if not reason:
        return None
    why = str(_REASONS[reason])
    return _("%(text)s read as %(name)s: %(why)s") % {
        "text": text.strip(),
        "name": plain_name(spec),
        "why": why % {"family": spec.family} if "%(family)s" in why else why,
    }


def named_accelerator(
    text: str,
    *,
    specs: Mapping[str, AcceleratorSpec],
    own: Iterable[AcceleratorSpec],
    types: Iterable[InstanceTypeSpec],
) -> NamedAccelerator:
    """The row that a key, a name or an instance type means, and what was assumed.

    Args:
        text: What somebody wrote; case and spacing do not matter.
        specs: All rows by key, the organisation's own ones in place of shipped ones.
        own: The organisation's own rows, whose names win.
        types: Instance types, own ones first.

    Raises:
        LookupError: nothing in the catalogue is called so; the message names near matches.
    """
    if spec := specs.get(text.strip().casefold()):
        return NamedAccelerator(spec=spec)
    name = normal_name(text)
    for spec in own:
        if name and name in (normal_name(spec.key), normal_name(spec.name)):
            return NamedAccelerator(spec=spec)
    reading = _shipped_readings().get(name)
    machine = None if reading else _machine(text, types)
    if machine and machine.accelerator_key in specs:
        return _of_machine(text, machine, specs[machine.accelerator_key])
    reading = reading or _parsed(name)
    if reading is None:
        raise LookupError(_unknown(text, own, types))
    spec = specs[reading.key]
    return NamedAccelerator(spec=spec, assumed=_assumption(text, spec, reading.reason))


def _machine_names(machine: InstanceTypeSpec) -> tuple[str, ...]:
    bare = machine.name.casefold().replace("_", " ")
    names = (bare, bare.removeprefix("standard "))
    return (*names, *(f"{machine.provider} {name}" for name in names))


def _machine(text: str, types: Iterable[InstanceTypeSpec]) -> InstanceTypeSpec | None:
    """The instance type of this name, with or without its provider."""
    wanted = " ".join(re.split(r"[\s_:/]+", text.casefold().strip()))
    return next((one for one in types if wanted in _machine_names(one)), None)


def _of_machine(text: str, machine: InstanceTypeSpec, spec: AcceleratorSpec) -> NamedAccelerator:
    why = _("%(provider)s %(type)s holds %(count)s of them; counted per accelerator") % {
        "provider": machine.provider,
        "type": machine.name,
        "count": format(machine.accelerator_count.normalize(), "f"),
    }
    assumed = _("%(text)s read as %(name)s: %(why)s") % {
        "text": text.strip(),
        "name": plain_name(spec),
        "why": why,
    }
    return NamedAccelerator(spec=spec, assumed=assumed, instance_type=machine)


def near_names(
    text: str, own: Iterable[AcceleratorSpec], types: Iterable[InstanceTypeSpec]
) -> list[str]:
    """Names of the catalogue that look like `text`, best first."""
    names = [plain_name(spec) for spec in (*own, *shipped_accelerators().values())]
    names += [alias for alias, _key, _reason in accelerator_aliases()]
    names += [one.name for one in types]
    by_normal = {normal_name(name): name for name in reversed(names)}
    close = difflib.get_close_matches(normal_name(text), by_normal, n=_NEAR, cutoff=0.5)
    return [by_normal[one] for one in close]


def _unknown(text: str, own: Iterable[AcceleratorSpec], types: Iterable[InstanceTypeSpec]) -> str:
    """What to tell somebody whose name leads nowhere."""
    near = near_names(text, own, types)
    said = [_("There is no accelerator '%(text)s' in the catalogue.") % {"text": text.strip()}]
    if near:
        said.append(_("Near it: %(names)s.") % {"names": ", ".join(near)})
    said.append(
        _(
            "Add a row of your own on the page of the hardware catalogue, or under "
            "'accelerators' in the configuration."
        )
    )
    return " ".join(said)

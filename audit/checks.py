"""Checks of the trail: is the chain whole? Changes nothing."""

from uuid import UUID

from audit.chain import FIRST_HASH, HASHED_FIELDS, hash_of
from audit.models import AuditEntry
from audit.records import Finding


def verify_chain(organisation_id: UUID) -> tuple[Finding, ...]:
    """Recompute every hash of an organisation's trail; return what does not fit."""
    findings: list[Finding] = []
    previous_hash, position = FIRST_HASH, 0
    entries = AuditEntry.objects.filter(organisation_id=organisation_id).order_by("position")
    for entry in entries.iterator(chunk_size=2000):
        where = f"audit entry {entry.position} of organisation {organisation_id}"
        position += 1
        if entry.position != position:
            findings.append(
                _finding("audit_gap", where, f"position {position}", f"position {entry.position}")
            )
            position = entry.position
        if entry.previous_hash != previous_hash:
            findings.append(
                _finding("audit_link_broken", where, previous_hash, entry.previous_hash)
            )
        computed = hash_of({name: getattr(entry, name) for name in HASHED_FIELDS})
        if computed != entry.entry_hash:
            findings.append(_finding("audit_entry_changed", where, entry.entry_hash, computed))
        previous_hash = entry.entry_hash
    return tuple(findings)


def _finding(code: str, where: str, expected: str, found: str) -> Finding:
    return Finding(code=code, where=where, expected=expected, found=found)

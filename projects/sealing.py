"""Seals and opens credentials with keys that lie outside the database. No tables, no audit."""

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings

KEY_FILE: Final = "secrets_key"


class SealingError(Exception):
    """A credential that cannot be sealed or opened; the message never holds any of it."""


def keys() -> tuple[str, ...]:
    """The sealing keys: the first seals, all of them open.

    Raises:
        SealingError: a key is no Fernet key, or the data folder cannot be written.
    """
    text = settings.SECRETS_KEY or _key_file_text()
    found = tuple(part for part in text.replace(",", " ").split() if part)
    if not found:
        raise SealingError("COSTWATCH_SECRETS_KEY holds no key")
    for position, key in enumerate(found, start=1):
        try:
            Fernet(key)
        except ValueError:
            raise SealingError(
                f"COSTWATCH_SECRETS_KEY: key {position} is no key: give 32 random bytes in "
                "URL-safe base64 (44 letters), the newest first"
            ) from None
    return found


def key_id(key: str) -> str:
    """What a row says about the key that sealed it; the key cannot be told from it."""
    return hashlib.sha256(b"costwatch secrets key\n" + key.encode()).hexdigest()[:16]


def first_key_id() -> str:
    """The id of the key that seals."""
    return key_id(keys()[0])


def seal(fields: Mapping[str, str], *, owner: str) -> str:
    """Seal the fields for one owner; another owner's row cannot be opened with it."""
    plain = json.dumps({"owner": owner, "fields": dict(fields)}, sort_keys=True)
    return _box().encrypt(plain.encode()).decode()


def open_sealed(sealed: str, *, owner: str) -> dict[str, str]:
    """The fields of what was sealed for this owner.

    Raises:
        SealingError: no key opens it, or it was sealed for another owner.
    """
    try:
        document = json.loads(_box().decrypt(sealed.encode()))
    except InvalidToken:
        raise SealingError(
            "the stored credential cannot be opened: none of the keys in COSTWATCH_SECRETS_KEY "
            "sealed it; add the old key behind the new one, or store the credential again"
        ) from None
    if document["owner"] != owner:
        raise SealingError("the stored credential belongs to another source; store it again")
    return {str(name): str(value) for name, value in document["fields"].items()}


def sealed_by_first(sealed: str) -> bool:
    """Whether the newest key sealed it, so that no older one is needed for it."""
    try:
        Fernet(keys()[0]).decrypt(sealed.encode())
    except InvalidToken:
        return False
    return True


def add_key_to_file() -> str:
    """Put a new key before those of the key file; return its id.

    Raises:
        SealingError: the keys come from the environment, where only the operator changes them.
    """
    if settings.SECRETS_KEY:
        raise SealingError(
            "the keys come from COSTWATCH_SECRETS_KEY: put a new one first there, keep the old "
            "one behind it, restart, then run rotate_secrets"
        )
    known = keys()
    key = Fernet.generate_key().decode()
    _write("\n".join((key, *known)) + "\n", _path(), replace=True)
    return key_id(key)


def _box() -> MultiFernet:
    return MultiFernet([Fernet(key) for key in keys()])


def _path() -> Path:
    return Path(settings.DATA_DIR) / KEY_FILE


def _key_file_text() -> str:
    """The key file's text; the file is made at the first use, readable by its owner alone."""
    path = _path()
    try:
        if not path.exists():
            _write(Fernet.generate_key().decode() + "\n", path, replace=False)
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise SealingError(
            f"the key file {path} cannot be read or made ({error.strerror}): set "
            "COSTWATCH_SECRETS_KEY"
        ) from error


def _write(text: str, path: Path, *, replace: bool) -> None:
    """Put a whole file in place: a twin never reads half of it, and the first to make it wins."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{KEY_FILE}-")  # 0600
    aside = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if replace:
            aside.replace(path)
        else:
            os.link(aside, path)
    except FileExistsError:
        return  # somebody else was first: that file counts
    finally:
        aside.unlink(missing_ok=True)

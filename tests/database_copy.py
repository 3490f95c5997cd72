"""A copy of the tests' database, for a module whose tests share what they read."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from django.db import connection, connections
from psycopg import sql


@contextmanager
def on_a_copy_of_the_database(suffix: str) -> Iterator[None]:
    """Every connection of this process goes to a copy, made now and dropped at the end."""
    original = str(connection.settings_dict["NAME"])
    copy = f"{original}_{suffix}"
    _point_at(original)
    with _administration() as server:
        server.execute(_drop(copy))
        # Nobody may be connected to what is copied; a session from before the browser's loop is.
        server.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [original]
        )
        server.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(
                sql.Identifier(copy), sql.Identifier(original)
            )
        )
    _point_at(copy)
    try:
        yield
    finally:
        _point_at(original)
        with _administration() as server:
            server.execute(_drop(copy))


def _point_at(database: str) -> None:
    connection.close()
    for named in (connection.settings_dict, connections.settings["default"]):
        named["NAME"] = database


def _drop(database: str) -> sql.Composed:
    return sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(database))


def _administration() -> psycopg.Connection:
    """A connection to the server that stands in neither database."""
    parameters = connection.get_connection_params()
    return psycopg.connect(
        **{
            name: value
            for name, value in parameters.items()
            if name in {"host", "port", "user", "password"}
        },
        dbname="postgres",
        autocommit=True,
    )

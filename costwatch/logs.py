"""Structured logs: one JSON object a line in production, readable lines at a desk."""

import logging.config
from typing import Any

import structlog

_TALKATIVE = (
    "adlfs",
    "azure",
    "boto3",
    "botocore",
    "fsspec",
    "gcsfs",
    "google",
    "s3transfer",
    "urllib3",
)


def logging_config(*, log_format: str, level: str) -> dict[str, Any]:
    """Build the standard-library logging set-up that renders through structlog, and apply it."""
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
    ]
    config: dict[str, Any] = {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "structured": {
                "()": structlog.stdlib.ProcessorFormatter,
                "processors": [
                    structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                    *_last(log_format),
                ],
                "foreign_pre_chain": shared,
            }
        },
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "structured"}},
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            "django.server": {"handlers": ["stderr"], "level": "WARNING", "propagate": False},
            "celery": {"level": "WARNING"},
            "kombu": {"level": "WARNING"},
            # On DEBUG these write requests with their credentials.
            **{name: {"level": "WARNING"} for name in _TALKATIVE},
        },
    }
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    logging.config.dictConfig(config)
    return config


def _last(log_format: str) -> list[Any]:
    """How a line is written in the end."""
    if log_format == "json":
        return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    # Plain tracebacks: pretty ones print local variables, credentials among them.
    plain = structlog.dev.plain_traceback
    return [structlog.dev.ConsoleRenderer(colors=False, exception_formatter=plain)]

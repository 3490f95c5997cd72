"""Every setting of Costwatch, read from the environment; docs/configuration.md explains each."""

import os
import secrets
import sys
from pathlib import Path

from csp.constants import NONCE, NONE, SELF
from django.utils.translation import gettext_lazy as _

from costwatch.env import (
    EnvironmentVariableError,
    database_from_url,
    env_bool,
    env_int,
    env_list,
    env_secret,
    env_str,
)
from costwatch.logs import logging_config

VERSION = "0.1.0"
BASE_DIR = Path(__file__).resolve().parent.parent
DATA_DIR = Path(env_str("COSTWATCH_DATA_DIR", str(BASE_DIR / "var"))).resolve()
LAKE_URL = env_str("LAKE_URL", str(DATA_DIR / "lake"))
LAKE_S3_ENDPOINT_URL = env_str("LAKE_S3_ENDPOINT_URL")
LAKE_S3_REGION = env_str("LAKE_S3_REGION")
LAKE_CACHE_DIR = Path(env_str("LAKE_CACHE_DIR", str(DATA_DIR / "lake-cache"))).resolve()
LAKE_CACHE_MB = env_int("LAKE_CACHE_MB", 20480, minimum=64)
LAKE_ENGINE = env_str("LAKE_ENGINE", "duckdb")
LAKE_SPARK_DRIVER_HOST = env_str("LAKE_SPARK_DRIVER_HOST", "127.0.0.1")
LAKE_SPARK_CONF = env_list("LAKE_SPARK_CONF")
LAKE_MEMORY_LIMIT_MB = env_int("LAKE_MEMORY_LIMIT_MB", 1024, minimum=128)
LAKE_THREADS = env_int("LAKE_THREADS", 0)
MAX_UPLOAD_MB = env_int("COSTWATCH_MAX_UPLOAD_MB", 2048, minimum=1)
MAX_UNPACKED_MB = env_int("COSTWATCH_MAX_UNPACKED_MB", 65536, minimum=1)
INTAKE_WAITING_MB = env_int("COSTWATCH_INTAKE_WAITING_MB", 4096, minimum=1)

# --- security. Production is the default; `make run` and `make test` say otherwise.
TESTING = "pytest" in sys.modules
DEBUG = env_bool("COSTWATCH_DEBUG", default=False)
INSECURE_HTTP = env_bool("COSTWATCH_INSECURE_HTTP", default=TESTING)


def _secret_key() -> str:
    """The key from the environment, else one made once and kept in the data folder (0600)."""
    given = env_secret("COSTWATCH_SECRET_KEY")
    if given:
        return given
    path = DATA_DIR / "secret_key"
    try:
        DATA_DIR.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(secrets.token_urlsafe(64))
    except FileExistsError:
        pass
    except OSError as error:
        raise EnvironmentVariableError(
            f"The data folder {DATA_DIR} cannot be written ({error.strerror}): "
            "set COSTWATCH_DATA_DIR to a folder of yours, or set COSTWATCH_SECRET_KEY"
        ) from error
    return path.read_text(encoding="utf-8")


SECRET_KEY = _secret_key()
ADMIN_PASSWORD = env_secret("COSTWATCH_ADMIN_PASSWORD")  # only `create_admin` asks for it
SECRETS_KEY = env_secret("COSTWATCH_SECRETS_KEY")  # None: a key file, see projects/sealing.py
TOKEN_PEPPER = env_secret("COSTWATCH_TOKEN_PEPPER") or SECRET_KEY
ALLOWED_HOSTS = env_list("COSTWATCH_ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]")
CSRF_TRUSTED_ORIGINS = env_list("COSTWATCH_TRUSTED_ORIGINS")
SECURE_SSL_REDIRECT = not INSECURE_HTTP
SECURE_PROXY_SSL_HEADER = (
    ("HTTP_X_FORWARDED_PROTO", "https")
    if env_bool("COSTWATCH_BEHIND_PROXY", default=False)
    else None
)
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$"]
SECURE_HSTS_SECONDS = 0 if INSECURE_HTTP else 31_536_000
SECURE_HSTS_INCLUDE_SUBDOMAINS = not INSECURE_HTTP
SECURE_HSTS_PRELOAD = not INSECURE_HTTP
SECURE_REFERRER_POLICY = "same-origin"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = not INSECURE_HTTP
SESSION_COOKIE_AGE = 12 * 3600
SESSION_SAVE_EVERY_REQUEST = False
CSRF_COOKIE_HTTPONLY = True
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF, NONCE],
        "style-src": [SELF, NONCE],
        "img-src": [SELF, "data:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "frame-ancestors": [NONE],
        "base-uri": [NONE],
        "form-action": [SELF],
        "manifest-src": [SELF],
    }
}
PASSWORD_HASHERS = [
    "django.contrib.auth.hashers.Argon2PasswordHasher",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
]
if TESTING:
    PASSWORD_HASHERS.insert(0, "django.contrib.auth.hashers.MD5PasswordHasher")
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 12},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
AUTH_USER_MODEL = "projects.User"
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "login"

# --- rooms
INSTALLED_APPS = [
    "costwatch",
    "reports",
    "planning",
    "billing",
    "carbon",
    "runs",
    "projects",
    "jobs",
    "audit",
    "ui",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django_htmx",
    "heroicons",
    "rest_framework",
    "drf_spectacular",
    "csp",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "costwatch.middleware.RequestLogMiddleware",
    "costwatch.middleware.NoNulMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "costwatch.middleware.SignedInMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]
ROOT_URLCONF = "costwatch.urls"
WSGI_APPLICATION = "costwatch.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "csp.context_processors.nonce",
                "costwatch.shell_context.shell",
            ],
        },
    },
]
# The price feed of Google Cloud; without a key its client looks for credentials by itself.
CLOUD_BILLING_API_KEY = env_secret("COSTWATCH_CLOUD_BILLING_API_KEY") or ""
CLOUD_BILLING_ENDPOINT = env_str("COSTWATCH_CLOUD_BILLING_ENDPOINT")
# What connections of sources may reach beside public addresses of known stores.
PRIVATE_HOSTS = env_list("COSTWATCH_PRIVATE_HOSTS")
WATCHED_FOLDERS = tuple(Path(folder) for folder in env_list("COSTWATCH_WATCHED_FOLDERS"))
STORE_PROTOCOLS = env_list("COSTWATCH_STORE_PROTOCOLS")
JOB_KINDS = {
    "billing.pull_source": "billing.services:pull_source",
    "billing.refresh_prices": "billing.services:refresh_prices",
    "billing.reprice": "billing.services:reprice_estimated",
    "billing.stage_delivery": "billing.services:stage_delivery",
    "billing.rebuild_daily_costs": "billing.services:rebuild_daily_costs",
    "billing.test_source": "billing.services:test_source",
    "carbon.store_power_delivery": "carbon.services:store_power_delivery",
    "carbon.close_hours": "carbon.services:close_hours_job",
    "carbon.pull_intensity": "carbon.intensity_feeds:pull_intensity",
    "carbon.pull_promql": "carbon.promql_pulls:pull_promql_job",
    "carbon.book_readings": "carbon.booking:book_readings_job",
    "runs.sum_progress": "runs.progress_summing:sum_progress_job",
    "planning.charge_own_hardware": "planning.charging:charge_own_hardware_job",
}

# Who seals the stored credentials of a room anew: "module:function" giving how many it did.
SECRET_STORES = ["billing.services:rotate_secrets", "carbon.intensity_sources:rotate_secrets"]

# --- data
DATABASES = {"default": database_from_url(env_str("DATABASE_URL", "postgresql:///costwatch"))}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
DATA_UPLOAD_MAX_MEMORY_SIZE = 5 * 1024 * 1024
FILE_UPLOAD_TEMP_DIR = env_str("COSTWATCH_UPLOAD_TEMP_DIR") or None

# --- jobs: the database is the queue of record, Celery rings
REDIS_URL = env_str("REDIS_URL", "redis://localhost:6379/0")
CELERY_BROKER_URL = REDIS_URL
CELERY_TASK_IGNORE_RESULT = True
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_SERIALIZER = "json"
CELERY_TIMEZONE = "UTC"
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "socket_timeout": 5,
    "socket_connect_timeout": 2,
    # A broker that is down must not hold up whoever asks for a job: beat rings again.
    "max_retries": 1,
    "interval_start": 0,
    "interval_step": 0.1,
    "interval_max": 0.1,
}
JOB_LEASE_S = env_int("COSTWATCH_JOB_LEASE_S", 30, minimum=1)
JOB_MAX_ATTEMPTS = 3
JOB_BACKOFF_S = 5
JOB_RING_AGAIN_S = 30
JOB_TIME_LIMIT_S = env_int("COSTWATCH_JOB_TIME_LIMIT_S", 6 * 3600, minimum=1)
# What the outbox may carry: topic -> "module:function" taking one jobs.records.OutboxEvent.
OUTBOX_TOPICS: dict[str, str] = {}

# --- languages and time
LANGUAGE_CODE = "en"
LANGUAGES = [("en", _("English")), ("zh-hans", _("Simplified Chinese"))]
LOCALE_PATHS = [BASE_DIR / "locale"]
USE_I18N = True
USE_TZ = True
TIME_ZONE = "UTC"

# --- static files
STATIC_URL = "static/"
STATIC_ROOT = BASE_DIR / "staticfiles"
WHITENOISE_USE_FINDERS = WHITENOISE_AUTOREFRESH = DEBUG or TESTING
STATICFILES_FINDERS = [
    "django.contrib.staticfiles.finders.AppDirectoriesFinder",
    "ui.finders.PlotlyFinder",
]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if DEBUG or TESTING
        else "django.contrib.staticfiles.storage.ManifestStaticFilesStorage"
    },
}

# --- mail (password reset)
EMAIL_BACKEND = env_str(
    "COSTWATCH_EMAIL_BACKEND",
    "django.core.mail.backends.smtp.EmailBackend"
    if env_str("COSTWATCH_EMAIL_HOST")
    else "django.core.mail.backends.console.EmailBackend",
)
EMAIL_HOST = env_str("COSTWATCH_EMAIL_HOST", "localhost")
EMAIL_PORT = env_int("COSTWATCH_EMAIL_PORT", 25)
EMAIL_HOST_USER = env_str("COSTWATCH_EMAIL_USER")
EMAIL_HOST_PASSWORD = env_secret("COSTWATCH_EMAIL_PASSWORD") or ""
EMAIL_USE_TLS = env_bool("COSTWATCH_EMAIL_TLS", default=False)
DEFAULT_FROM_EMAIL = env_str("COSTWATCH_EMAIL_FROM", "costwatch@localhost")

# --- REST API
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "projects.authentication.TokenAuthentication",
        "projects.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["projects.authentication.IsSignedIn"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["projects.parsing.StrictJSONParser"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "projects.errors.api_exception_handler",
    "UNAUTHENTICATED_USER": None,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Costwatch API",
    "VERSION": "1",
    "DESCRIPTION": "Money, energy and carbon of AI-training projects.",
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_PERMISSIONS": ["projects.authentication.IsSignedIn"],
    "SCHEMA_PATH_PREFIX": "/api/v1/",
}

# --- logs
LOG_FORMAT = env_str("COSTWATCH_LOG_FORMAT", "text" if DEBUG or TESTING else "json")
LOGGING_CONFIG = None
LOGGING = logging_config(log_format=LOG_FORMAT, level=env_str("COSTWATCH_LOG_LEVEL", "INFO"))
BIND = env_str("COSTWATCH_BIND", "127.0.0.1:8000")
WEB_WORKERS = env_int("COSTWATCH_WEB_WORKERS", 2, minimum=1)
WEB_THREADS = env_int("COSTWATCH_WEB_THREADS", 4, minimum=1)
WORKER_PROCESSES = env_int("COSTWATCH_WORKER_PROCESSES", 2, minimum=1)

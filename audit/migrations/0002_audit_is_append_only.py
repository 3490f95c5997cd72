"""Refuse UPDATE, DELETE and TRUNCATE of the trail inside PostgreSQL itself."""

from django.db import migrations

FORWARD = """
CREATE FUNCTION audit_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'The audit trail is append-only: % is refused', TG_OP
        USING ERRCODE = 'insufficient_privilege';
END
$$;
CREATE TRIGGER audit_entry_is_append_only BEFORE UPDATE OR DELETE ON audit_auditentry
    FOR EACH ROW EXECUTE FUNCTION audit_refuse_change();
CREATE TRIGGER audit_entry_is_not_truncated BEFORE TRUNCATE ON audit_auditentry
    FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse_change();
"""
BACKWARD = """
DROP TRIGGER audit_entry_is_not_truncated ON audit_auditentry;
DROP TRIGGER audit_entry_is_append_only ON audit_auditentry;
DROP FUNCTION audit_refuse_change();
"""


class Migration(migrations.Migration):
    dependencies = [("audit", "0001_audit_entries")]
    operations = [migrations.RunSQL(FORWARD, BACKWARD)]

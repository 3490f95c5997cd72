"""Refuse entries of a locked period inside PostgreSQL, but for a release that says so."""

from django.db import migrations

FORWARD = """
CREATE FUNCTION carbon_refuse_locked() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('costwatch.release', true) = 'on' THEN
        RETURN NULL;
    END IF;
    IF EXISTS (
        SELECT 1 FROM carbon_periodlock AS lock
        JOIN fresh ON fresh.organisation_id = lock.organisation_id
            AND fresh.hour >= lock.start AND fresh.hour < lock."end"
        WHERE lock.approved_at IS NOT NULL AND lock.reopened_at IS NULL
    ) THEN
        RAISE EXCEPTION 'Emission entries of a locked period are refused; release the change'
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER locked_periods_take_no_entries AFTER INSERT ON carbon_emissionentry
    REFERENCING NEW TABLE AS fresh
    FOR EACH STATEMENT EXECUTE FUNCTION carbon_refuse_locked();
"""
BACKWARD = """
DROP TRIGGER locked_periods_take_no_entries ON carbon_emissionentry;
DROP FUNCTION carbon_refuse_locked();
"""


class Migration(migrations.Migration):
    dependencies = [("carbon", "0006_how_devices_spent_their_hours")]
    operations = [migrations.RunSQL(FORWARD, BACKWARD)]

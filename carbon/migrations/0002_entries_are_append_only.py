"""Refuse UPDATE and DELETE of emission entries and their factor sets inside PostgreSQL itself."""

from django.db import migrations

FORWARD = """
CREATE FUNCTION carbon_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'Emission entries are append-only: % is refused; post a reversal', TG_OP
        USING ERRCODE = 'insufficient_privilege';
END
$$;
CREATE TRIGGER emission_entry_is_append_only BEFORE UPDATE OR DELETE ON carbon_emissionentry
    FOR EACH ROW EXECUTE FUNCTION carbon_refuse_change();
CREATE TRIGGER factor_set_is_append_only BEFORE UPDATE OR DELETE ON carbon_factorset
    FOR EACH ROW EXECUTE FUNCTION carbon_refuse_change();
"""
BACKWARD = """
DROP TRIGGER factor_set_is_append_only ON carbon_factorset;
DROP TRIGGER emission_entry_is_append_only ON carbon_emissionentry;
DROP FUNCTION carbon_refuse_change();
"""


class Migration(migrations.Migration):
    dependencies = [("carbon", "0001_power_energy_emissions")]
    operations = [migrations.RunSQL(FORWARD, BACKWARD)]

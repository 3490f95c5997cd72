"""Frozen means frozen: triggers refuse changes of estimates and approved plan versions."""

from django.db import migrations

FREEZE = """
CREATE FUNCTION planning_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is frozen and cannot be changed or deleted', TG_TABLE_NAME
        USING ERRCODE = 'restrict_violation';
END $$;
CREATE FUNCTION planning_refuse_line_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM planning_planversion v
               WHERE v.id IN (OLD.version_id, COALESCE(NEW.version_id, OLD.version_id))
                 AND v.state = 'approved') THEN
        RAISE EXCEPTION 'the lines of an approved plan version are frozen'
            USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN COALESCE(NEW, OLD);
END $$;
CREATE TRIGGER planning_estimate_frozen BEFORE UPDATE OR DELETE ON planning_estimate
    FOR EACH ROW EXECUTE FUNCTION planning_refuse_change();
CREATE TRIGGER planning_version_frozen BEFORE UPDATE OR DELETE ON planning_planversion
    FOR EACH ROW WHEN (OLD.state = 'approved') EXECUTE FUNCTION planning_refuse_change();
CREATE TRIGGER planning_line_frozen BEFORE UPDATE OR DELETE ON planning_planline
    FOR EACH ROW EXECUTE FUNCTION planning_refuse_line_change();
"""
THAW = """
DROP TRIGGER planning_line_frozen ON planning_planline;
DROP TRIGGER planning_version_frozen ON planning_planversion;
DROP TRIGGER planning_estimate_frozen ON planning_estimate;
DROP FUNCTION planning_refuse_line_change();
DROP FUNCTION planning_refuse_change();
"""


class Migration(migrations.Migration):
    dependencies = [("planning", "0001_estimates_plans_lines")]
    operations = [migrations.RunSQL(FREEZE, THAW)]

"""Keep signed periods, restatements and all books from change and loss inside PostgreSQL itself."""

from django.db import migrations

FORWARD = """
CREATE FUNCTION carbon_refuse_truncate() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'The books are append-only: TRUNCATE is refused'
        USING ERRCODE = 'insufficient_privilege';
END
$$;
CREATE TRIGGER emission_entry_is_not_truncated BEFORE TRUNCATE ON carbon_emissionentry
    FOR EACH STATEMENT EXECUTE FUNCTION carbon_refuse_truncate();
CREATE TRIGGER factor_set_is_not_truncated BEFORE TRUNCATE ON carbon_factorset
    FOR EACH STATEMENT EXECUTE FUNCTION carbon_refuse_truncate();
CREATE TRIGGER period_lock_is_not_truncated BEFORE TRUNCATE ON carbon_periodlock
    FOR EACH STATEMENT EXECUTE FUNCTION carbon_refuse_truncate();
CREATE TRIGGER restatement_is_not_truncated BEFORE TRUNCATE ON carbon_restatement
    FOR EACH STATEMENT EXECUTE FUNCTION carbon_refuse_truncate();

CREATE FUNCTION carbon_period_step(old carbon_periodlock, new carbon_periodlock)
RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF (new.id, new.organisation_id, new.start, new."end", new.digest, new.prepared_by,
        new.prepared_at)
        IS DISTINCT FROM
       (old.id, old.organisation_id, old.start, old."end", old.digest, old.prepared_by,
        old.prepared_at) THEN
        RETURN false;
    END IF;
    IF old.approved_at IS NULL THEN  -- approved, by somebody else, and nothing besides
        RETURN new.approved_at IS NOT NULL AND new.approved_by <> ''
            AND lower(new.approved_by) <> lower(old.prepared_by)
            AND new.totals = old.totals
            AND (new.reopened_at, new.reopened_by, new.reason)
                IS NOT DISTINCT FROM (old.reopened_at, old.reopened_by, old.reason);
    END IF;
    IF old.reopened_at IS NOT NULL
        OR (new.approved_at, new.approved_by) IS DISTINCT FROM (old.approved_at, old.approved_by)
    THEN
        RETURN false;
    END IF;
    IF new.reopened_at IS NOT NULL THEN  -- reopened, by somebody, with a reason
        RETURN new.reopened_by <> '' AND new.reason <> '' AND new.totals = old.totals;
    END IF;
    RETURN current_setting('costwatch.release', true) = 'on'  -- a release notes what it made
        AND new.totals ? 'released' AND new.totals - 'released' = old.totals - 'released'
        AND (new.reopened_by, new.reason) = (old.reopened_by, old.reason);
END
$$;
CREATE FUNCTION carbon_keep_signed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        IF NEW.approved_at IS NULL AND NEW.reopened_at IS NULL THEN
            RETURN NEW;
        END IF;
    ELSIF TG_OP = 'DELETE' THEN
        IF OLD.approved_at IS NULL THEN
            RETURN OLD;
        END IF;
    ELSIF carbon_period_step(OLD, NEW) THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'A signed period never changes: % is refused; reopen it', TG_OP
        USING ERRCODE = 'insufficient_privilege';
END
$$;
CREATE TRIGGER signed_periods_never_change BEFORE INSERT OR UPDATE OR DELETE ON carbon_periodlock
    FOR EACH ROW EXECUTE FUNCTION carbon_keep_signed();

CREATE FUNCTION carbon_keep_restated() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND OLD.state = 'held'
        AND current_setting('costwatch.hold', true) = 'on' THEN
        RETURN OLD;  -- posting counts again what waits
    END IF;
    RAISE EXCEPTION 'The log of restatements is append-only: % is refused', TG_OP
        USING ERRCODE = 'insufficient_privilege';
END
$$;
CREATE TRIGGER restatement_is_append_only BEFORE UPDATE OR DELETE ON carbon_restatement
    FOR EACH ROW EXECUTE FUNCTION carbon_keep_restated();
"""
BACKWARD = """
DROP TRIGGER restatement_is_append_only ON carbon_restatement;
DROP FUNCTION carbon_keep_restated();
DROP TRIGGER signed_periods_never_change ON carbon_periodlock;
DROP FUNCTION carbon_keep_signed();
DROP FUNCTION carbon_period_step(carbon_periodlock, carbon_periodlock);
DROP TRIGGER restatement_is_not_truncated ON carbon_restatement;
DROP TRIGGER period_lock_is_not_truncated ON carbon_periodlock;
DROP TRIGGER factor_set_is_not_truncated ON carbon_factorset;
DROP TRIGGER emission_entry_is_not_truncated ON carbon_emissionentry;
DROP FUNCTION carbon_refuse_truncate();
"""


class Migration(migrations.Migration):
    dependencies = [("carbon", "0007_locked_periods_take_no_entries")]
    operations = [migrations.RunSQL(FORWARD, BACKWARD)]

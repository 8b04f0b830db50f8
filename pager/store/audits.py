"""The laws that can be asked in SQL."""

from pager.types import FOREVER

# A law, and what is wrong -> a query whose every row is a case of it
AUDITS: dict[tuple[str, str], str] = {
    ("law 2", "a call is open in a step that is not the newest"): """
        SELECT c.id FROM calls c
        WHERE c.result IS NULL AND c.step < (SELECT max(id) FROM steps WHERE kind <> 'record')""",
    ("law 2", "a result stands in another step than its call"): """
        SELECT c.id FROM calls c JOIN parts p ON p.id = c.result
        WHERE p.step <> c.step OR p.slot <> 'result'""",
    ("law 3", "an epoch lives that is not the newest"): (
        "SELECT id FROM epochs WHERE through_step IS NULL AND id < (SELECT max(id) FROM epochs)"
    ),
    ("law 5", "a pinned page is not resident"): f"""
        SELECT p.page FROM pins p WHERE p.unseen = 0 AND NOT EXISTS
        (SELECT 1 FROM residency r WHERE r.page = p.page AND r.how = 'pinned' AND r.until_step = {FOREVER})""",
    ("law 8", "a step that somebody said has no parts"): """
        SELECT id FROM steps s WHERE kind <> 'assistant' AND purged = 0
        AND NOT EXISTS (SELECT 1 FROM parts WHERE step = s.id)""",
    ("law 8", "a reply has no request"): """
        SELECT id FROM steps s WHERE kind = 'assistant'
        AND NOT EXISTS (SELECT 1 FROM requests WHERE step = s.id)""",
    ("law 8", "a part of the conversation has no size"): """
        SELECT p.id FROM parts p JOIN steps s ON s.id = p.step WHERE s.kind <> 'record'
        AND NOT EXISTS (SELECT 1 FROM sizes WHERE part = p.id)""",
    ("law 9", "a superseded fact has no end"): (
        "SELECT id FROM facts WHERE superseded_by IS NOT NULL AND valid_until IS NULL"
    ),
    ("law 9", "a fact ends before it begins"): ("SELECT id FROM facts WHERE valid_until < valid_from"),
    ("law 9", "a fact is superseded by one of another key"): """
        SELECT f.id FROM facts f JOIN facts n ON n.id = f.superseded_by
        WHERE f.key IS NOT n.key AND f.purged = 0 AND n.purged = 0""",
    ("law 10", "a step left the prompt and the ledger does not say why"): f"""
        SELECT r.page FROM residency r WHERE r.how = 'step' AND r.until_step < {FOREVER} AND NOT EXISTS
        (SELECT 1 FROM ledger l WHERE l.page = r.page AND l.event IN ('evict', 'drop'))""",
    ("law 10", "an interval ends before it begins"): ("SELECT page FROM residency WHERE until_step < from_step"),
    ("law 10", "a page is in the prompt twice in the same way"): f"""
        SELECT page FROM residency WHERE until_step = {FOREVER} AND how IN ('step', 'pinned', 'request')
        GROUP BY page, how HAVING count(*) > 1""",
}

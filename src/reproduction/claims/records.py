"""Names that moved to `reproduction.engine.verdicts`."""

from reproduction.engine.verdicts import (
    CROSS_CHECK_VERDICTS as CROSS_CHECK_VERDICTS,
)
from reproduction.engine.verdicts import (
    KINDS as KINDS,
)
from reproduction.engine.verdicts import (
    SEVERITIES as SEVERITIES,
)
from reproduction.engine.verdicts import (
    STATEMENT_VERDICTS as STATEMENT_VERDICTS,
)
from reproduction.engine.verdicts import (
    Book as Book,
)
from reproduction.engine.verdicts import (
    FindingRecord as FindingRecord,
)
from reproduction.engine.verdicts import (
    Record as Record,
)
from reproduction.engine.verdicts import (
    TopicRecord as TopicRecord,
)
from reproduction.engine.verdicts import (
    counts as counts,
)
from reproduction.engine.verdicts import (
    findings_to_csv as findings_to_csv,
)
from reproduction.engine.verdicts import (
    from_json as from_json,
)
from reproduction.engine.verdicts import (
    join as join,
)
from reproduction.engine.verdicts import (
    to_csv as to_csv,
)
from reproduction.engine.verdicts import (
    to_json as to_json,
)

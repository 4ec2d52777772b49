"""Names that moved to `reproduction.engine.falsify`."""

from reproduction.engine.falsify import (
    Patch as Patch,
)
from reproduction.engine.falsify import (
    WrongStatement as WrongStatement,
)
from reproduction.engine.falsify import (
    WrongVersion as WrongVersion,
)
from reproduction.engine.falsify import (
    plus as plus,
)
from reproduction.engine.falsify import (
    power as power,
)
from reproduction.engine.falsify import (
    scaled as scaled,
)
from reproduction.engine.falsify import (
    times as times,
)

"""Which tokens may read energy and carbon; people are checked by their roles elsewhere."""

from typing import Final

from projects.records import Scope

READERS: Final = (Scope.READ_COSTS, Scope.READ_REPORTS, Scope.MANAGE_PROJECT, Scope.ADMIN_ORG)

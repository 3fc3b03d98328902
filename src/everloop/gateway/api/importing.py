"""Moving in from another agent or a service: the owner's, who may read and write everything here anyway."""

import msgspec

from ...ports.importing import ImportWanted
from .files import pieces_of
from .route import ApiAnswer, ApiCall


async def show_import(call: ApiCall) -> ApiAnswer:
    return call.agent.imports.standing()


async def upload_export(call: ApiCall) -> ApiAnswer:
    """Piece by piece: however large it is, little of it is in memory."""
    call.principal.check_lasting()
    return await call.agent.imports.receive(pieces_of(call))


async def begin_import(call: ApiCall) -> ApiAnswer:
    call.principal.check_lasting()
    return call.agent.imports.begin(msgspec.convert(call.body, ImportWanted, from_attributes=True))

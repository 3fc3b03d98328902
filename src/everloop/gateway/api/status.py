"""How the whole house stands."""

from .route import ApiAnswer, ApiCall


async def show_status(call: ApiCall) -> ApiAnswer:
    return await call.agent.house_status()

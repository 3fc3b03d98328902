"""What is wrong with the house, and what can be mended."""

from ...ports.doctor import Diagnosis
from .doctor_shapes import DiagnosisShown, DoctorFixed, Examined, MendedShown
from .route import ApiAnswer, ApiCall


async def examine(call: ApiCall) -> ApiAnswer:
    return await _examined(call)


async def fix(call: ApiCall) -> ApiAnswer:
    mended = await call.agent.doctor.mend()
    return DoctorFixed([MendedShown(each.check, each.what, each.failed) for each in mended], await _examined(call))


async def _examined(call: ApiCall) -> Examined:
    findings = [_shown(each) for each in await call.agent.doctor.examine()]
    gravest = next((each for each in ("broken", "advice") if any(one.verdict == each for one in findings)), "ok")
    return Examined(gravest, findings, [*call.agent.doctor.checks()])  # type: ignore[arg-type]  # one of three words


def _shown(each: Diagnosis) -> DiagnosisShown:
    return DiagnosisShown(each.check, each.group, each.verdict, each.what, each.todo, bool(each.mends))

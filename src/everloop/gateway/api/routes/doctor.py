"""Routes of the API: the doctor."""

from ....core.people import Role
from .. import doctor, doctor_shapes, shapes
from ..route import ApiRoute

ROUTES = (
    ApiRoute(
        "GET",
        "/api/doctor",
        "What is wrong with the house, and what to do about it",
        handle=doctor.examine,
        answers=doctor_shapes.Examined,
        least=Role.OWNER,
        needs="admin",
    ),
    ApiRoute(
        "POST",
        "/api/doctor/fix",
        "Mend what is safe, and look again",
        handle=doctor.fix,
        answers=doctor_shapes.DoctorFixed,
        body=shapes.Nothing,
        least=Role.OWNER,
        needs="admin",
    ),
)

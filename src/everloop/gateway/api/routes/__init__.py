"""Every route of the API, a file for each subject: what it is for, what it takes and answers, and who may ask."""

from . import budgets, delivery, files, models, own, people, sessions

TABLE = (
    *own.ROUTES,
    *sessions.ROUTES,
    *models.ROUTES,
    *people.ROUTES,
    *budgets.ROUTES,
    *delivery.ROUTES,
    *files.ROUTES,
)

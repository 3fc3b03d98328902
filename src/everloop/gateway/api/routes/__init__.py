"""Every route of the API, a file for each subject: what it is for, what it takes and answers, and who may ask."""

from . import (
    audit,
    budgets,
    channels,
    delivery,
    files,
    leaving,
    memory,
    models,
    own,
    own_secrets,
    people,
    personas,
    schedules,
    sessions,
    skills,
    subagents,
)

TABLE = (
    *own.ROUTES,
    *own_secrets.ROUTES,
    *sessions.ROUTES,
    *subagents.ROUTES,
    *models.ROUTES,
    *people.ROUTES,
    *budgets.ROUTES,
    *leaving.ROUTES,
    *personas.ROUTES,
    *skills.ROUTES,
    *schedules.ROUTES,
    *channels.ROUTES,
    *delivery.ROUTES,
    *files.ROUTES,
    *memory.ROUTES,
    *audit.ROUTES,
)

"""Routes of the API: what is remembered for whoever asks, and for nobody else."""

from ....core.people import Role
from .. import memory, memory_shapes
from ..route import ApiRoute

ROUTES = (
    ApiRoute(
        "GET",
        "/api/memory",
        "What is remembered for you, in numbers",
        memory.show_memory,
        memory_shapes.MemoryShown,
        least=Role.GUEST,
    ),
    ApiRoute(
        "GET",
        "/api/memory/facts",
        "Facts that are remembered for you, with where they are known from; those that words mean, with `search`",
        memory.remembered_facts,
        memory_shapes.FactList,
        query=memory_shapes.FactQuery,
        least=Role.GUEST,
    ),
    ApiRoute(
        "GET",
        "/api/memory/versions",
        "Who has changed it when",
        memory.memory_versions,
        memory_shapes.MemoryVersions,
        query=memory_shapes.VersionsQuery,
        least=Role.GUEST,
    ),
    ApiRoute(
        "GET",
        "/api/memory/document",
        "MEMORY.md or HISTORY.md, now or at a version",
        memory.memory_document,
        memory_shapes.DocumentShown,
        query=memory_shapes.DocumentQuery,
        further={404: "there was no such version"},
        least=Role.GUEST,
    ),
    ApiRoute(
        "GET",
        "/api/memory/difference",
        "What a version has changed, or what differs between two",
        memory.memory_difference,
        memory_shapes.DifferenceShown,
        query=memory_shapes.DifferenceQuery,
        further={404: "there was no such version"},
        least=Role.GUEST,
    ),
    ApiRoute(
        "PUT",
        "/api/memory/document",
        "Write it anew; what was changed meanwhile is kept as well",
        memory.edit_memory,
        memory_shapes.MemoryChanged,
        body=memory_shapes.DocumentEdited,
        tells=True,
        least=Role.GUEST,
    ),
    ApiRoute(
        "POST",
        "/api/memory/restore",
        "Have a document as it was at a version, as a new one",
        memory.restore_memory,
        memory_shapes.MemoryChanged,
        body=memory_shapes.Restoring,
        tells=True,
        least=Role.GUEST,
    ),
    ApiRoute(
        "POST",
        "/api/memory/forget",
        "Forget facts, also in earlier versions",
        memory.forget_facts,
        memory_shapes.ForgottenShown,
        body=memory_shapes.Forgetting,
        tells=True,
        least=Role.GUEST,
    ),
)

"""Routes of the API: backups."""

from ....core.people import Role
from .. import backup, backup_shapes
from ..route import ApiRoute

ALL = ("admin", "read", "chat", "approve")  # it is all that there is

ROUTES = (
    ApiRoute(
        "GET",
        "/api/backup",
        "The backups that there are, how often one is made, and whether this home is a restored copy",
        handle=backup.show_backups,
        answers=backup_shapes.BackupsStanding,
        least=Role.OWNER,
        needs="admin",
    ),
    ApiRoute(
        "POST",
        "/api/backup",
        "Make a backup now",
        handle=backup.create_backup,
        answers=backup_shapes.BackupShown,
        least=Role.OWNER,
        needs="admin",
    ),
    ApiRoute(
        "PUT",
        "/api/backup/schedule",
        "Say how often the gateway makes one, and how many stay",
        handle=backup.schedule_backups,
        answers=backup_shapes.BackupsStanding,
        body=backup_shapes.SchedulingBackups,
        least=Role.OWNER,
        needs="admin",
    ),
    ApiRoute(
        "POST",
        "/api/backup/adopt",
        "Say that this restored copy is the one that goes on",
        handle=backup.adopt_copy,
        answers=backup_shapes.BackupsStanding,
        least=Role.OWNER,
        needs=ALL,
    ),
    ApiRoute(
        "GET",
        "/api/backup/files/{name}",
        "A backup, as the file that it is",
        handle=backup.download_backup,
        at=backup_shapes.OfBackup,
        least=Role.OWNER,
        needs=ALL,
    ),
)

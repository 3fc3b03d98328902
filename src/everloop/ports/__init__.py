"""The doors between the rooms, as Protocols, a small file for each group; `app` hands each room what it needs."""

from .archive import Archive
from .audit import Audit
from .budgets import Budgets
from .bus import Bus, Feed
from .channel import Admission, Channel, Deliver, Fetches, Hooked, Previews, Renders, Signals
from .clock import Clock
from .credentials import Credentials, Logins, Tokens, Users
from .dial import ByteStream, Dials
from .directory import Directory
from .erasing import Belongings, Erasing, HomeFile, HomeFolders
from .files import FileRecord, FileRecords, Files, FileShelves, KeepsFiles, KeptFile
from .grants import Grants
from .http import BoundHeaders, Hops, Http, HttpAnswer
from .jobs import Jobs, Leases
from .ledger import Ledger
from .listening import ListeningStates
from .log import Log
from .mail import Arrivals, Mailroom
from .memory import Memory
from .outbox import Outgoing
from .people import Briefer, People, RevocableSource, SectionSource
from .polled import Polled
from .provider import Embedder, Embeddings, Provider
from .removal import Removal
from .store import Activity, Store
from .taints import PromptFiles, Taints
from .tools import ToolSource
from .vault import Secrets, Vault
from .websocket import PLAIN_TERMS, SocketTerms, WebSocket, WebSockets
from .workspace import WorkspaceFiles

__all__ = [
    "PLAIN_TERMS",
    "Activity",
    "Admission",
    "Archive",
    "Arrivals",
    "Audit",
    "Belongings",
    "BoundHeaders",
    "Briefer",
    "Budgets",
    "Bus",
    "ByteStream",
    "Channel",
    "Clock",
    "Credentials",
    "Deliver",
    "Dials",
    "Directory",
    "Embedder",
    "Embeddings",
    "Erasing",
    "Feed",
    "Fetches",
    "FileRecord",
    "FileRecords",
    "FileShelves",
    "Files",
    "Grants",
    "HomeFile",
    "HomeFolders",
    "Hooked",
    "Hops",
    "Http",
    "HttpAnswer",
    "Jobs",
    "KeepsFiles",
    "KeptFile",
    "Leases",
    "Ledger",
    "ListeningStates",
    "Log",
    "Logins",
    "Mailroom",
    "Memory",
    "Outgoing",
    "People",
    "Polled",
    "Previews",
    "PromptFiles",
    "Provider",
    "Removal",
    "Renders",
    "RevocableSource",
    "Secrets",
    "SectionSource",
    "Signals",
    "SocketTerms",
    "Store",
    "Taints",
    "Tokens",
    "ToolSource",
    "Users",
    "Vault",
    "WebSocket",
    "WebSockets",
    "WorkspaceFiles",
]  # fmt: skip

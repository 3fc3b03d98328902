"""For tests of everloop and of what is built on it: a scripted model, real calls to a model that were recorded, a
recording channel, counting tools, failpoints, turns that were recorded.

The model as an HTTP server is in `everloop.testing.model_server`, which loads a web server and so is not named here.
"""

from .cassette import Cassette, CassetteMismatch
from .channel import AckLost, Limited, RecordingChannel, Sent, Trouble, sends_in
from .effects import Ran, counting_tool, effects_in, repeats_in, runs_in
from .record import Record, Stub, opaque
from .recorder import Recorder
from .script import (
    ByConversation,
    Call,
    Calls,
    CutAt,
    Empty,
    End,
    Fail,
    Http,
    InOrder,
    Line,
    Pause,
    Raw,
    Say,
    Script,
    ScriptedModel,
    Shown,
    Spend,
    Think,
    Wait,
    paced,
)

__all__ = [
    "AckLost",
    "ByConversation",
    "Call",
    "Calls",
    "Cassette",
    "CassetteMismatch",
    "CutAt",
    "Empty",
    "End",
    "Fail",
    "Http",
    "InOrder",
    "Limited",
    "Line",
    "Pause",
    "Ran",
    "Raw",
    "Record",
    "Recorder",
    "RecordingChannel",
    "Say",
    "Script",
    "ScriptedModel",
    "Sent",
    "Shown",
    "Spend",
    "Stub",
    "Think",
    "Trouble",
    "Wait",
    "counting_tool",
    "effects_in",
    "opaque",
    "paced",
    "repeats_in",
    "runs_in",
    "sends_in",
]

"""Running a stranger's commands where they can do no harm.

`port` says what a sandbox is asked and answers. `bwrap`, `landlock` and `seatbelt` are the ways to confine a command,
`choose` finds the one that works here. `usage` and `disk` say how much a command takes, `command` when that is too
much. `commands` is the worker's side; `runner` is a process outside of the worker that starts the commands and keeps
what they say in a `spool`, so that the death of a worker costs nothing. The runner loads the standard library alone,
and starts fast: `runner`, `command`, `launch`, `portable`, `spool`, `usage`, `disk`, `seccomp` and `landlock` import
nothing else. Commands that may reach some hosts go through an `outlet`, to which `forward` carries them.
"""

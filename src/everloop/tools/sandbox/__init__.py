"""Running a stranger's commands where they can do no harm.

`port` says what a sandbox is asked and answers. `bwrap`, `landlock` and `seatbelt` are the ways to confine a command,
`choose` finds the one that works here. `usage` and `disk` say how much a command takes, `command` when that is too
much. `commands` is the worker's side; `runner` is a process outside of the worker that starts the commands and keeps
what they say in a `spool`, so that the death of a worker costs nothing. `servers` is the worker's side of what it
speaks with and what ends with it; `duplex_jobs` and `duplex` are the runner's. The runner loads the standard library
alone, and starts fast: `runner`, `launcher`, `launch`, `parked`, `command`, `duplex_jobs`, `duplex`, `portable`,
`spool`, `usage`, `disk`, `cgroup`, `delegation`, `seccomp` and `landlock` import nothing else. Commands that may reach
some hosts go through an `outlet`, to which `forward` carries them.
"""

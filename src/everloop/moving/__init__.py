"""What other agents and services have kept for somebody, read as plain values: conversations, memory, skills, jobs.

A reader a source. It looks and never writes. Everything here may be a stranger's: what is broken is passed over and
told as a Remark, what is whole is read. `app` takes it over into a home.
"""

"""Servers of the Model Context Protocol, spoken with as strangers: what they say is bounded, marked and compared with
what was allowed. `client` and what it imports load the SDK, which takes its time: nobody imports them but on first use.
"""

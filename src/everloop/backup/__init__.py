"""Backups: one file that holds a whole home, sealed where there is a passphrase, and checked before it is believed.

`sealing` encrypts a stream in chunks, `pack` writes the file, `unpack` reads it member by member and holds it against
its manifest, `listing` knows the files of a folder. What lies in a home, and what a copy's rows become, others say.
"""

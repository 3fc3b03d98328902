"""Why messages cannot be encrypted or read, as people are told."""

NEEDS_EXTRA = "encrypted messages need the extra [matrix-e2ee]: pip install 'everloop[matrix-e2ee]'"
NO_PLACE = "whoever has opened this channel has given it no place for its keys"
OTHER_KEYS = (
    "the access token is that of another client, which has keys of its own, or everloop's own have been lost: "
    "encrypted messages cannot be read with it. Take away channels.matrix.device_id and log in "
    "anew: everloop channels login matrix"
)
UNSIGNED = (
    "another client (Element, say) has made this account's own keys, its cryptographic identity, and everloop's device "
    "is not signed with them: who uses Element may not be able to write to it in encrypted rooms. Use an account in "
    "which nobody was ever logged in with such a client"
)

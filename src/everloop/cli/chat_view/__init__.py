"""What the chat at a terminal shows, as text with codes of our own: answers, tools at work, changes of files,
questions.

Nothing here reads or writes anything. Whatever a model, a tool or a file says is made `visible` before it is styled, so
that the only codes in what comes out are those of the theme.
"""

"""What is said where a turn ends without an answer."""

EXCUSES = {
    "resumed": "I was interrupted three times in a row while working on this, so I stopped. "
    "Nothing of it runs any more; say it again if you want me to go on.",
    "empty": "The model gave no answer, twice in a row. Please try again, or put it in other words.",
    "futile": "I have done the same things over and over without getting any further, so I stopped. What I found is in "
    "this conversation; tell me what to try instead.",
    "context": "This conversation is too long for the model. Start a new one with /new; this one stays readable.",
    "blocked": "This was not done: whoever asked for it may not speak with me any more.",
}
FOR_GUESTS = "I could not answer. Whoever runs this can look up why."  # a host's own words may name models and keys
TOO_LONG = (
    "This conversation is too long: it needs about {tokens:,} tokens, and {model} reads at most {limit:,} as far as is "
    "known. Say less at once, start anew with /new, or choose a model that reads more with /model. If this one does, "
    "say so in agents.defaults.context_window."
)

"""One of the Python clients, asked over stdin: a JSON object a line, and one back. Runs in the venv that has them."""

import json
import os
import sys

os.environ |= {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LANGSMITH_TRACING": "false"}


def openai(ask):
    from openai import OpenAI

    client = OpenAI(base_url=ask["base"], api_key=ask["key"], **timeout(ask))
    if ask["door"] == "chat":
        return said_in(client.chat.completions.create(**chat(ask)), ask)
    return said_in(client.responses.create(model="everloop", input=ask["text"], stream=ask["stream"]), ask)


def litellm(ask, **more):
    import litellm

    litellm.suppress_debug_info = True
    where = {"model": "openai/everloop", "api_base": ask["base"], "api_key": ask["key"], **timeout(ask), **more}
    if ask["door"] == "chat":
        return said_in(litellm.completion(**chat(ask) | where), ask)
    return said_in(litellm.responses(input=ask["text"], stream=ask["stream"], **where), ask)


def litellm_persistent(ask):
    return litellm(ask, num_retries=2)


def langchain(ask, attempts=1):
    from langchain_openai import ChatOpenAI

    model = ChatOpenAI(
        model="everloop",
        base_url=ask["base"],
        api_key=ask["key"],
        use_responses_api=ask["door"] == "responses",
        **timeout(ask),
    )
    if attempts > 1:
        model = model.with_retry(stop_after_attempt=attempts)
    if ask["stream"]:
        return "".join(piece.text for piece in model.stream(ask["text"]))
    return model.invoke(ask["text"]).text


def langchain_persistent(ask):
    return langchain(ask, attempts=3)


def timeout(ask):
    return {"timeout": ask["seconds"]} if ask["seconds"] else {}


def chat(ask):
    messages = [{"role": "user", "content": ask["text"]}]
    return {"model": "everloop", "messages": messages, "stream": ask["stream"]}


def said_in(answer, ask):
    if ask["door"] == "chat":
        if ask["stream"]:
            return "".join(chunk.choices[0].delta.content or "" for chunk in answer if chunk.choices)
        return answer.choices[0].message.content
    if not ask["stream"]:
        return text_of(answer)
    said = ""
    for event in answer:  # a program has to look for this event itself
        if event.type in ("response.completed", "response.failed"):
            said = text_of(event.response)
    return said


def text_of(response):
    if response.error:
        raise RuntimeError(response.error.message)
    return "".join(part.text for item in response.output for part in getattr(item, "content", None) or ())


CLIENTS = {each.__name__: each for each in (openai, litellm, litellm_persistent, langchain, langchain_persistent)}

for line in sys.stdin:
    asked = json.loads(line)
    try:
        told = {"said": CLIENTS[sys.argv[1]](asked)}
    except Exception as error:  # whatever a client makes of it is what its user sees
        told = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(told), flush=True)

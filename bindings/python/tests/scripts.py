"""Replies for scripted models."""


def say(text, **more):
    """A reply of one text."""
    return {"content": [{"type": "text", "text": text}], **more}


def call(name, arguments, id="c1"):
    """A reply that calls a tool."""
    return {"content": [{"type": "toolCall", "id": id, "name": name, "arguments": arguments}]}

"""judge.py API BASE_URL: what the official SDK makes of a stream, as one JSON line.

{"text", "thinking", "calls": [{"name", "arguments"}], "stop", "usage": [input with cache, output]}: only what every SDK
says, so that it can be compared with what branchline says of the same bytes.
"""

import json
import sys

MODEL = "judge-1"
TOOL = {"type": "object", "properties": {"city": {"type": "string"}}}


def chat(base_url):
    import openai

    client = openai.OpenAI(base_url=base_url + "/v1", api_key="k", max_retries=0, timeout=30)
    tool = {"type": "function", "function": {"name": "get_weather", "description": "w", "parameters": TOOL}}
    stream = client.chat.completions.create(
        model=MODEL,
        stream=True,
        stream_options={"include_usage": True},
        messages=[{"role": "user", "content": "q"}],
        tools=[tool],
    )
    text, thinking, calls, stop, usage = "", "", {}, None, None
    for chunk in stream:
        if chunk.usage:
            usage = [chunk.usage.prompt_tokens, chunk.usage.completion_tokens]
        for choice in chunk.choices[:1]:
            text += choice.delta.content or ""
            thinking += getattr(choice.delta, "reasoning_content", None) or ""
            stop = choice.finish_reason or stop
            for piece in choice.delta.tool_calls or []:
                call = calls.setdefault(piece.index, {"name": "", "arguments": ""})
                if piece.function:
                    call["name"] += piece.function.name or ""
                    call["arguments"] += piece.function.arguments or ""
    calls = [{"name": call["name"], "arguments": json.loads(call["arguments"])} for call in calls.values()]
    return text, thinking, calls, {"stop": "stop", "tool_calls": "toolUse", "length": "length"}[stop], usage


def responses(base_url):
    import openai

    client = openai.OpenAI(base_url=base_url + "/v1", api_key="k", max_retries=0, timeout=30)
    tool = {"type": "function", "name": "get_weather", "description": "w", "parameters": TOOL, "strict": False}
    # Not the helper `stream`: it knows no response that is incomplete.
    response = None
    for event in client.responses.create(model=MODEL, input="q", tools=[tool], stream=True):
        if event.type in ("response.completed", "response.incomplete"):
            response = event.response
    thinking = [part.text for item in response.output if item.type == "reasoning" for part in item.summary]
    calls = [
        {"name": item.name, "arguments": json.loads(item.arguments)}
        for item in response.output
        if item.type == "function_call"
    ]
    stop = "length" if response.status == "incomplete" else "toolUse" if calls else "stop"
    usage = [response.usage.input_tokens, response.usage.output_tokens]
    return response.output_text, "\n\n".join(thinking), calls, stop, usage


def anthropic_messages(base_url):
    import anthropic

    client = anthropic.Anthropic(base_url=base_url, api_key="k", max_retries=0, timeout=30)
    tool = {"name": "get_weather", "description": "w", "input_schema": TOOL}
    with client.messages.stream(
        model=MODEL, max_tokens=64, messages=[{"role": "user", "content": "q"}], tools=[tool]
    ) as stream:
        for _ in stream:
            pass
        message = stream.get_final_message()
    text = "".join(block.text for block in message.content if block.type == "text")
    thinking = "".join(block.thinking for block in message.content if block.type == "thinking")
    calls = [{"name": block.name, "arguments": block.input} for block in message.content if block.type == "tool_use"]
    stop = {"end_turn": "stop", "tool_use": "toolUse", "max_tokens": "length"}[message.stop_reason]
    used = message.usage
    prompt = used.input_tokens + (used.cache_read_input_tokens or 0) + (used.cache_creation_input_tokens or 0)
    return text, thinking, calls, stop, [prompt, used.output_tokens]


def gemini(base_url):
    from google import genai
    from google.genai import types

    options = {"base_url": base_url, "timeout": 30000, "api_version": "v1beta"}
    client = genai.Client(api_key="k", http_options=options)
    declared = types.FunctionDeclaration(name="get_weather", description="w", parameters_json_schema=TOOL)
    config = types.GenerateContentConfig(
        tools=[types.Tool(function_declarations=[declared])],
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
    )
    text, thinking, calls, stop, usage = "", "", [], None, None
    for chunk in client.models.generate_content_stream(model=MODEL, contents="q", config=config):
        if chunk.usage_metadata:
            used = chunk.usage_metadata
            usage = [
                used.prompt_token_count or 0,
                (used.candidates_token_count or 0) + (used.thoughts_token_count or 0),
            ]
        for candidate in (chunk.candidates or [])[:1]:
            stop = candidate.finish_reason.name if candidate.finish_reason else stop
            for part in (candidate.content.parts if candidate.content else None) or []:
                if part.function_call:
                    calls.append({"name": part.function_call.name, "arguments": part.function_call.args or {}})
                elif part.thought:
                    thinking += part.text or ""
                else:
                    text += part.text or ""
    stop = "toolUse" if calls else {"STOP": "stop", "MAX_TOKENS": "length"}[stop]
    return text, thinking, calls, stop, usage


JUDGES = {
    "openai-completions": chat,
    "openai-responses": responses,
    "anthropic-messages": anthropic_messages,
    "google-generative-ai": gemini,
}

text, thinking, calls, stop, usage = JUDGES[sys.argv[1]](sys.argv[2])
print(json.dumps({"text": text, "thinking": thinking, "calls": calls, "stop": stop, "usage": usage}))

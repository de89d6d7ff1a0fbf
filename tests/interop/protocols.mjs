// Generated conversations and answers of services, and what the real pi makes of them: the requests it sends, the events it
// tells, the message it stores. Written as conformance cases.
//
//   PI_ROOT=build/peer build/peer/node tests/interop/protocols.mjs SEED COUNT FOLDER [API]
//
// Left out of what is generated, because we differ on purpose or pi is at odds with itself: results that are missing or in
// another order than their calls, images in results that are errors, calls with an id twice, images of several results for
// Gemini before its third generation, unfinished calls, texts that say nothing, refusals in Gemini's form.
import { mkdirSync, writeFileSync } from "node:fs";

const [seed, count, folder, only] = process.argv.slice(2);
const api = `${process.env.PI_ROOT}/node_modules/@earendil-works/pi-ai/dist/api`;
const apis = {
	"anthropic-messages": "anthropic",
	"openai-completions": "completions",
	"openai-responses": "responses",
	"google-generative-ai": "gemini",
};

// --- chance, the same for the same seed --------------------------------------------------------------------------------

let state = Number(seed);
function below(end) {
	state = (state + 0x6d2b79f5) | 0;
	let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
	mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
	return ((mixed ^ (mixed >>> 14)) >>> 0) % end;
}
const one = (list) => list[below(list.length)];
const maybe = (chance) => below(1000) < chance * 1000;
const some = (chance, key, make) => (maybe(chance) ? { [key]: make() } : {});
const times = (most, make) => Array.from({ length: below(most + 1) }, (_, at) => make(at));
function cut(text) {
	const pieces = [];
	for (let at = 0; at < text.length; ) {
		const length = 1 + below(7);
		pieces.push(text.slice(at, at + length));
		at += length;
	}
	return pieces;
}

// --- models ------------------------------------------------------------------------------------------------------------

const services = {
	"openai-completions": [
		["demo", "http://127.0.0.1:9/v1"], ["openai", "https://api.openai.com/v1"], ["openrouter", "https://openrouter.ai/api/v1"],
		["deepseek", "https://api.deepseek.com"], ["zai", "https://api.z.ai/api/paas/v4"], ["together", "https://api.together.ai/v1"],
		["moonshotai", "https://api.moonshot.ai/v1"], ["xai", "https://api.x.ai/v1"], ["groq", "https://api.groq.com/openai/v1"],
		["cerebras", "https://api.cerebras.ai/v1"], ["nvidia", "https://integrate.api.nvidia.com/v1"],
		["ant-ling", "https://api.ant-ling.com/v1"], ["opencode", "https://opencode.ai/zen/v1"],
		["custom", "https://gateway.ai.cloudflare.com/v1/x"], ["chutes", "https://llm.chutes.ai/v1"],
	],
	"openai-responses": [
		["demo", "http://127.0.0.1:9/v1"], ["openai", "https://api.openai.com/v1"], ["openrouter", "https://openrouter.ai/api/v1"],
		["opencode", "https://opencode.ai/zen/v1"],
	],
	"anthropic-messages": [["demo", "http://127.0.0.1:9"], ["anthropic", "https://api.example.com"], ["openrouter", "https://openrouter.ai/api"]],
	"google-generative-ai": [["demo", "http://127.0.0.1:9/v1beta"], ["google", "https://generativelanguage.googleapis.com/v1beta"]],
};
const ids = {
	"google-generative-ai": ["gemini-2.5-pro", "gemini-2.5-flash", "gemini-2.5-flash-lite", "gemini-3-pro-preview", "gemini-3.1-flash",
		"gemini-flash-latest", "gemini-4-ultra", "gemma-4-27b", "gemini-2.0-flash", "claude-x", "demo-1"],
};
const yes = [true, true, false];
const flags = {
	"openai-completions": {
		supportsStore: yes, supportsDeveloperRole: yes, supportsReasoningEffort: yes, supportsUsageInStreaming: yes, supportsFinishReason: yes,
		maxTokensField: ["max_tokens", "max_completion_tokens"], requiresToolResultName: yes, requiresNonNullAssistantContent: yes,
		requiresToolsWithToolHistory: yes, requiresThinkingAsText: yes, requiresReasoningContentOnAssistantMessages: yes,
		thinkingFormat: ["openai", "openrouter", "deepseek", "zai", "qwen", "qwen-chat-template", "together", "string-thinking", "ant-ling",
			"chat-template", "baseten"],
		chatTemplateKwargs: [{ on: { $var: "thinking.enabled" }, word: { $var: "thinking.effort", omitWhenOff: true }, plain: "v" }],
		chatTemplateArgs: [{ tokens: { $var: "thinking.budget", omitWhenOff: true } }],
		zaiToolStream: yes, supportsStrictMode: yes, supportsMidConvoSystemMessages: yes, supportsMidConvoToolAdditions: yes,
		cacheControlFormat: ["anthropic"], promptCacheKeyMode: ["auto", "enabled", "disabled"], supportsLongCacheRetention: yes,
		openRouterRouting: [{ only: ["a"], sort: "price" }], vercelGatewayRouting: [{ only: ["x"] }, { order: ["y"], other: 1 }],
		thinkingTokenBudgetField: ["thinking_budget"], supportsThinkingTokenBudget: yes, vllmPriority: [3, 0],
	},
	"openai-responses": {
		supportsDeveloperRole: yes, supportsMidConvoSystemMessages: yes, promptCacheKeyMode: ["auto", "enabled", "disabled"],
		supportsLongCacheRetention: yes, supportsStrictMode: yes, supportsExplicitPromptCacheMode: yes, supportsMaxOutputTokens: yes,
		supportsMidConvoEffort: yes,
	},
	"anthropic-messages": {
		supportsEagerToolInputStreaming: yes, supportsLongCacheRetention: yes, supportsCacheControlOnTools: yes, supportsTemperature: yes,
		allowEmptySignature: yes, supportsStrictTools: yes, supportsMidConvoSystemMessages: yes,
	},
	"google-generative-ai": {},
};
const levels = ["minimal", "low", "medium", "high", "xhigh", "max"];

function model(api) {
	const [provider, baseUrl] = one(services[api]);
	const compat = {};
	for (const [flag, values] of Object.entries(flags[api])) if (maybe(0.12)) compat[flag] = one(values);
	const map = {};
	const words = api.startsWith("openai") ? ["low", "high", "word"] : ["low", "high", "medium"];
	if (maybe(0.4)) for (const level of ["off", ...levels]) if (maybe(0.25)) map[level] = maybe(0.3) ? null : one(words);
	const reasoning = maybe(0.7);
	if (api === "anthropic-messages" && reasoning && maybe(0.3)) {
		compat.forceAdaptiveThinking = true;
		if (maybe(0.5)) compat.supportsMidConvoEffort = true;
	}
	const small = maybe(0.2);
	return {
		id: one(ids[api] ?? ["demo-1", "demo-1", "gpt-5.5", "anthropic/claude-x"]), name: "Demo", api, provider, baseUrl, reasoning,
		input: ["text", "image"],
		cost: {
			input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75,
			...some(0.2, "tiers", () => [{ inputTokensAbove: 100, input: 6, output: 30, cacheRead: 0.6, cacheWrite: 7.5 }]),
		},
		contextWindow: small ? one([5000, 20000]) : 100000, maxTokens: small ? one([500, 3000]) : one([8000, 32000]),
		thinkingLevelMap: map, compat,
		...some(0.1, "samplingParams", () => ({ top_p: 0.9, temperature: 0.1 })),
		...some(0.1, "samplingParamsByThinkingLevel", () => ({ high: { top_k: 5 }, off: { top_k: 1 } })),
	};
}

// --- conversations -----------------------------------------------------------------------------------------------------

const text = () => one(["hello", "a b", "é🍋", "line\nline", "x".repeat(30)]);
const image = () => ({ type: "image", mimeType: "image/png", data: "iVBORw0KGgo=" });
const schemas = [
	{ type: "object", properties: { crate: { type: "string" }, exact: { type: "boolean" } }, required: ["crate"] },
	{ type: "object", properties: {} },
	{ type: "object", properties: { n: { type: "integer", minimum: 1 }, tags: { type: "array", items: { type: "string" } }, mode: { enum: ["a", "b"] } },
		required: ["n"], additionalProperties: false },
	{ type: "object", properties: { k: { const: "x" }, o: { type: "object", properties: { p: { type: ["string", "null"] } } } }, required: [],
		$defs: { z: { type: "string" } } },
];
const tool = (name) => ({
	name, description: `Tool ${name}`, parameters: one(schemas),
	...some(0.2, "constrainedSampling", () => ({ type: "json_schema", strict: "prefer" })),
});
const authors = [
	{ api: "anthropic-messages", provider: "anthropic", model: "c" }, { api: "openai-responses", provider: "openai", model: "g" },
	{ api: "openai-completions", provider: "z", model: "q" }, { api: "google-generative-ai", provider: "google", model: "gm" },
];

function signature(author, at) {
	if (author.api === "openai-responses") {
		return JSON.stringify({ type: "reasoning", id: `rs_${at}`, summary: [{ type: "summary_text", text: "hm" }], encrypted_content: "enc" });
	}
	return author.api === "openai-completions" ? one(["reasoning_content", "reasoning", '[{"type":"reasoning.text","text":"hm"}]']) : "c2ln";
}

function answer(of, at) {
	const own = { api: of.api, provider: of.provider, model: of.id };
	const author = maybe(0.4) ? one([...authors, { ...own, model: "else" }]) : own;
	const responses = author.api === "openai-responses";
	const content = [];
	// Ids that belong to thinking which is left out are left out too.
	if (maybe(0.4) && (of.api !== "openai-responses" || author === own)) {
		const redacted = { type: "thinking", thinking: "[Reasoning redacted]", thinkingSignature: "cmVk", redacted: true };
		const thinking = { type: "thinking", thinking: maybe(0.2) ? "" : "hm", ...some(responses ? 1 : 0.6, "thinkingSignature", () => signature(author, at)) };
		content.push(maybe(0.15) && !responses ? redacted : thinking);
	}
	const texts = [JSON.stringify({ v: 1, id: `msg_${at}`, phase: "final_answer" }), `msg_plain${at}`, JSON.stringify({ v: 1, id: `m${at}`.repeat(40) })];
	if (maybe(0.7)) content.push({ type: "text", text: text(), ...some(0.3, "textSignature", () => (responses ? one(texts) : "c2ln")) });
	const calls = maybe(0.5)
		? [...times(1, (n) => n + 1), 0].map((n) => ({
			type: "toolCall",
			id: `${at}${n}${one(["call_1", `call_AbC|fc_${at}${n}`, "toolu_01", "functions.weigh:0", "x".repeat(60), `y|fc_${at}${n}${"z".repeat(40)}`, "é1"])}`,
			name: one(["weigh", "list"]), arguments: one([{}, { crate: "B" }, { n: 1, tags: ["é"] }]),
			...some(0.2, "thoughtSignature", () => one(["c2ln", "bad!", "YWJj"])),
		}))
		: [];
	content.push(...calls);
	const stopReason = calls.length ? "toolUse" : maybe(0.12) ? one(["error", "aborted"]) : one(["stop", "length"]);
	const tokens = { input: 10 * at, output: 5, cacheRead: 0, cacheWrite: 0, totalTokens: maybe(0.8) ? 10 * at + 5 : 0 };
	const usage = { ...tokens, cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 } };
	return {
		role: "assistant", content, ...author, usage, stopReason, timestamp: at,
		...some(0.3, "providerThinkingLevel", () => one(["low", "high", "max"])),
	};
}

function conversation(of) {
	const out = [];
	let at = 2;
	const turns = 1 + below(4);
	for (let turn = 0; turn < turns; turn++) {
		const parts = [{ type: "text", text: text() }, ...times(2, () => image()), ...(maybe(0.3) ? [image(), { type: "text", text: text() }] : [])];
		out.push({ role: "user", content: maybe(0.5) ? text() : parts, timestamp: at++ });
		if (turn === turns - 1 && maybe(0.6)) break;
		const message = answer(of, at++);
		out.push(message);
		const calls = message.content.filter((block) => block.type === "toolCall");
		const several = of.api === "google-generative-ai" && calls.length > 1;
		for (const call of calls) {
			const seen = several ? [] : [[image()], [{ type: "text", text: "see" }, image(), image()]];
			const content = one([[{ type: "text", text: "ok" }], [], [{ type: "text", text: "a" }, { type: "text", text: "b" }], ...seen]);
			const isError = !content.some((block) => block.type === "image") && maybe(0.3);
			out.push({ role: "toolResult", toolCallId: call.id, toolName: call.name, content, isError, timestamp: at++ });
		}
		if (maybe(0.2)) {
			out.push({
				role: "system", content: maybe(0.5) ? "more rules" : "", ...some(0.5, "sections", () => ({ cwd: maybe(0.3) ? null : "<cwd>/b</cwd>" })),
				...some(0.3, "toolsAdded", () => [tool(one(["weigh", "new"]))]), ...some(0.2, "toolsRemoved", () => [{ name: "list" }]), timestamp: at++,
			});
		}
	}
	const first = { role: "system", content: one(["base", "You keep a log."]), timestamp: 1 };
	return [{ ...first, ...some(0.5, "sections", () => ({ cwd: "<cwd>/a</cwd>" })), ...some(0.6, "toolsAdded", () => [tool("weigh"), tool("list")]) }, ...out];
}

function options(of, messages) {
	// Who asks knows the levels of the model.
	const usable = levels.filter((level) => of.thinkingLevelMap[level] !== null && (levels.indexOf(level) < 4 || of.thinkingLevelMap[level]));
	const tools = messages[0].toolsAdded !== undefined && !messages.some((message) => message.toolsRemoved);
	return {
		apiKey: one(["k-demo", "sk-demo"]),
		...some(of.reasoning && usable.length ? 0.6 : 0, "reasoning", () => one(usable)), ...some(0.2, "temperature", () => 0.5),
		...some(0.25, "maxTokens", () => one([1000, 20000])), ...some(0.3, "cacheRetention", () => one(["none", "short", "long"])),
		...some(0.4, "sessionId", () => one(["s-1", "s".repeat(80)])), ...some(tools ? 0.2 : 0, "toolChoice", () => one(["auto", "none"])),
		...some(0.1, "thinkingBudgets", () => ({ low: 1500, high: 3000 })), ...some(0.1, "metadata", () => ({ user_id: "u1", other: 1 })),
		...some(0.1, "samplingParams", () => ({ seed: 7 })), ...some(0.05, "headers", () => ({ "x-extra": "1" })),
	};
}

// --- answers -----------------------------------------------------------------------------------------------------------

const texts = ['{"crate":"B2"}', '{"crate": "é\\n", "exact": true}', "", "{}", '{"n": 12, "tags": ["a", "b"]}', '{"crate": "x', "[1]", '{"a":"tab\there"}', '{"p":"C:\\dir"}'];

const answers = {
	"anthropic-messages"() {
		const out = [];
		const tell = (type, more) => out.push({ event: type, data: { type, ...more } });
		const usage = one([
			{ input_tokens: 120, output_tokens: 1, cache_read_input_tokens: 40, cache_creation_input_tokens: 10 }, { input_tokens: 120, output_tokens: 1 },
			{ input_tokens: 5, output_tokens: 2, cache_creation_input_tokens: 100, cache_creation: { ephemeral_5m_input_tokens: 40, ephemeral_1h_input_tokens: 60 } },
		]);
		tell("message_start", { message: { id: "msg_1", model: one(["demo-1", "other"]), content: [], usage } });
		times(3, (index) => {
			const delta = (delta) => tell("content_block_delta", { index, delta });
			const begin = (content_block) => tell("content_block_start", { index, content_block });
			one([
				() => (begin({ type: "text", text: "" }), cut("Hel é lo").forEach((text) => delta({ type: "text_delta", text }))),
				() => {
					begin({ type: "thinking", thinking: "", signature: "" });
					if (maybe(0.8)) delta({ type: "thinking_delta", thinking: "hm" });
					for (const signature of ["si", "g"]) delta({ type: "signature_delta", signature });
				},
				() => begin({ type: "redacted_thinking", data: "cmVk" }),
				() => {
					begin({ type: "tool_use", id: `toolu_${index}`, name: "weigh", input: {} });
					for (const partial_json of [...cut(one(texts)), ""]) delta({ type: "input_json_delta", partial_json });
				},
				() => (begin({ type: "server_tool_use", id: "s", name: "web", input: {} }), delta({ type: "input_json_delta", partial_json: "{}" })),
			])();
			tell("content_block_stop", { index });
		});
		const stop_reason = one(["end_turn", "tool_use", "max_tokens", "stop_sequence", "pause_turn", "refusal", "sensitive"]);
		const more = one([{ output_tokens: 25 }, { output_tokens: 25, input_tokens: null }, { output_tokens: 30, cache_read_input_tokens: 7, output_tokens_details: { thinking_tokens: 3 } }, {}]);
		if (maybe(0.9)) tell("message_delta", { delta: { stop_reason }, usage: more });
		if (maybe(0.05)) tell("error", { error: { type: "overloaded_error", message: "Overloaded" } });
		if (maybe(0.93)) tell("message_stop", {});
		return out;
	},
	"openai-completions"() {
		const out = [];
		const tell = (delta, more = {}) => out.push({ data: { id: "cc_1", model: "demo-1", choices: [{ index: 0, delta, finish_reason: null, ...more }] } });
		if (maybe(0.5)) tell({ role: "assistant", content: "" });
		if (maybe(0.4)) for (const piece of cut("think é")) tell({ [one(["reasoning_content", "reasoning", "reasoning_text"])]: piece });
		if (maybe(0.15)) for (const text of ["a", "b"]) tell({ reasoning_details: [{ type: "reasoning.text", text, index: 0, ...some(0.3, "signature", () => "s") }] });
		if (maybe(0.1)) tell({ reasoning_details: [{ type: "reasoning.encrypted", data: "enc", id: "r1" }] });
		if (maybe(0.7)) for (const content of cut("Hel é lo")) tell({ content });
		const calls = maybe(0.5) ? 1 + below(2) : 0;
		for (let index = 0; index < calls; index++) {
			const place = maybe(0.1) ? { id: `call_${index}` } : { index };
			tell({ tool_calls: [{ ...place, id: `call_${index}`, type: "function", function: { name: "weigh", arguments: "" } }] });
			for (const piece of cut(one(texts))) tell({ tool_calls: [{ ...place, function: { arguments: piece } }] });
		}
		const usage = one([
			{ prompt_tokens: 100, completion_tokens: 7, prompt_tokens_details: { cached_tokens: 60 }, completion_tokens_details: { reasoning_tokens: 3 } },
			{ prompt_tokens: 100, completion_tokens: 7, prompt_cache_hit_tokens: 20 }, { prompt_tokens: 10, completion_tokens: 1, cached_tokens: 40 },
			{ prompt_tokens: 50, completion_tokens: 7, prompt_tokens_details: { cached_tokens: 30, cache_write_tokens: 10 } },
			{ prompt_tokens: 10, completion_tokens: 1, cost: 0.5, is_byok: false },
			{ prompt_tokens: 10, completion_tokens: 1, cost: 0.5, is_byok: true, cost_details: { upstream_inference_cost: 0.25 } },
		]);
		const finish_reason = calls ? one(["tool_calls", "function_call", "stop"]) : one(["stop", "length", "end", "content_filter", "network_error", "odd"]);
		if (maybe(0.9)) tell({}, { finish_reason, ...some(0.1, "usage", () => usage) });
		if (maybe(0.7)) out.push({ data: { id: "cc_1", model: "demo-1", choices: [], usage } });
		if (maybe(0.9)) out.push({ data: "[DONE]" });
		return out;
	},
	"openai-responses"() {
		const out = [];
		const tell = (type, more) => out.push({ event: type, data: { type, ...more } });
		tell("response.created", { response: { id: "resp_1" } });
		times(3, (output_index) => {
			const item = (kind, item) => tell(`response.output_item.${kind}`, { output_index, item });
			const delta = (kind, delta) => tell(`response.${kind}.delta`, { output_index, delta });
			one([
				() => {
					const message = { type: "message", id: `msg_${output_index}`, role: "assistant", ...some(0.3, "phase", () => one(["final_answer", "commentary"])) };
					item("added", { ...message, content: [] });
					for (const piece of cut("Hello é")) delta(maybe(0.9) ? "output_text" : "refusal", piece);
					item("done", { ...message, content: [{ type: "output_text", text: one(["Hello é", "Hello!"]) }] });
				},
				() => {
					const reasoning = { type: "reasoning", id: `rs_${output_index}` };
					item("added", { ...reasoning, summary: [] });
					if (maybe(0.6)) {
						for (const piece of cut("think")) delta("reasoning_summary_text", piece);
						tell("response.reasoning_summary_part.done", { output_index, part: { type: "summary_text", text: "think" } });
					} else delta("reasoning_text", "raw");
					const summary = one([[{ type: "summary_text", text: "think" }], [], [{ type: "summary_text", text: "a" }, { type: "summary_text", text: "b" }]]);
					item("done", { ...reasoning, summary, ...some(0.3, "content", () => [{ type: "reasoning_text", text: "raw" }]), ...some(0.7, "encrypted_content", () => "enc") });
				},
				() => {
					const call = { type: "function_call", id: `fc_${output_index}`, call_id: `call_${output_index}`, name: "weigh" };
					const text = one(texts);
					item("added", { ...call, arguments: "" });
					const pieces = cut(text);
					const all = maybe(0.8);
					for (const piece of all ? pieces : pieces.slice(0, 1)) delta("function_call_arguments", piece);
					if (!all || maybe(0.7)) tell("response.function_call_arguments.done", { output_index, arguments: text });
					item("done", { ...call, arguments: text });
				},
			])();
		});
		const usage = one([
			{ input_tokens: 90, output_tokens: 12, total_tokens: 102, input_tokens_details: { cached_tokens: 50 }, output_tokens_details: { reasoning_tokens: 4 } },
			{ input_tokens: 90, output_tokens: 12, total_tokens: 102 },
			{ input_tokens: 90, output_tokens: 12, total_tokens: 102, input_tokens_details: { cached_tokens: 50, cache_write_tokens: 20 } },
		]);
		const end = (status, more) => tell(`response.${status}`, { response: { id: "resp_1", status, output: [], ...some(0.2, "service_tier", () => one(["default", "flex", "priority"])), ...more } });
		one([
			() => end("completed", { usage }), () => end("completed", { usage }), () => end("completed", { usage }),
			() => end("incomplete", { usage, incomplete_details: { reason: one(["max_output_tokens", "content_filter"]) } }),
			() => end("failed", { ...some(0.5, "usage", () => usage), error: maybe(0.7) ? { code: "server_error", message: "boom" } : null }), () => {},
		])();
		return out;
	},
	"google-generative-ai"() {
		const usage = one([
			{ promptTokenCount: 80, candidatesTokenCount: 9, thoughtsTokenCount: 4, cachedContentTokenCount: 20, totalTokenCount: 93 },
			{ promptTokenCount: 80, candidatesTokenCount: 9, totalTokenCount: 89 },
		]);
		const finishReason = one(["STOP", "STOP", "MAX_TOKENS", "SAFETY", "RECITATION", "MALFORMED_FUNCTION_CALL", "OTHER"]);
		const part = () => one([
			() => ({ text: one(["Hel", "", "é lo"]), ...some(0.2, "thoughtSignature", () => "c2ln") }),
			() => ({ text: "hm", thought: true, ...some(0.3, "thoughtSignature", () => "dGg=") }),
			() => ({ functionCall: { name: "weigh", args: one([{}, { crate: "B" }]), ...some(0.5, "id", () => one(["f1", "f2"])) }, ...some(0.3, "thoughtSignature", () => "c2ln") }),
		])();
		const chunks = times(4, () => ({ content: { role: "model", parts: [part(), ...times(1, part)] } }));
		chunks.push({ content: { role: "model", parts: [part()] }, ...(maybe(0.9) ? { finishReason } : {}) });
		return chunks.map((candidate) => ({ data: { ...some(0.5, "responseId", () => "g1"), candidates: [candidate], ...some(0.6, "usageMetadata", () => usage) } }));
	},
};

function refusal() {
	const body = one([
		{ error: { message: "bad things", type: "invalid_request_error", code: "x" } }, "plain text", "", { error: "just text" },
		{ type: "error", error: { type: "invalid_request_error", message: "prompt is too long: 300 tokens > 200" } },
		{ error: { message: "Provider returned error", code: 400, metadata: { raw: "upstream said: context too big", provider_name: "P" } } },
	]);
	return { status: one([400, 401, 404, 413, 429, 500, 503, 529]), body };
}

// --- cases -------------------------------------------------------------------------------------------------------------

function encode(response) {
	if (response.status) return new Response(typeof response.body === "string" ? response.body : JSON.stringify(response.body), { status: response.status });
	const data = (event) => (typeof event.data === "string" ? event.data : JSON.stringify(event.data));
	const body = response.sse.map((event) => `${event.event ? `event: ${event.event}\n` : ""}data: ${data(event)}\n\n`).join("");
	return new Response(body, { status: 200, headers: { "content-type": "text/event-stream" } });
}

async function play(subject) {
	const { streamSimple } = await import(`${api}/${subject.model.api}.js`);
	const requests = [];
	const fetch = async (url, init) => {
		const request = url instanceof Request ? url : new Request(url, init);
		requests.push({ url: request.url, method: request.method, headers: Object.fromEntries(request.headers), body: JSON.parse(await request.text()) });
		return encode(subject.response);
	};
	globalThis.fetch = fetch;
	const stream = streamSimple(structuredClone(subject.model), structuredClone(subject.context), { ...subject.options, fetch });
	const events = [];
	for await (const { partial, message, error, ...event } of stream) {
		if (event.type === "toolcall_delta") event.argsNow = partial.content[event.contentIndex].arguments;
		events.push(structuredClone(event));
	}
	const { timestamp, durationMs, diagnostics, ...final } = await stream.result();
	return { requests, events, final };
}

mkdirSync(folder, { recursive: true });
for (let at = 0; at < Number(count); at++) {
	const name = only ?? Object.keys(apis)[at % 4];
	const of = model(name);
	const messages = conversation(of);
	const response = name !== "google-generative-ai" && maybe(0.1) ? refusal() : { sse: answers[name]() };
	const subject = { model: of, context: { messages }, options: options(of, messages), response };
	const id = `${apis[name]}-${seed}-${String(at).padStart(4, "0")}`;
	const written = { id, title: "generated", rules: [], simple: true, ...subject, expect: await play(subject) };
	const json = JSON.stringify(written, null, 1).replace(/weigh_1\d{12}_\d+/g, "weigh_{MS}_{N}");
	writeFileSync(`${folder}/${id}.json`, json);
}
// pi leaves timers behind.
process.exit(0);

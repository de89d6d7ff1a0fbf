// The real pi's whole agent loop as a partner in tests: scenarios played over scripted replies, with real and scripted
// tools, one JSON object a line on stdin and stdout.
//
//   PI_ROOT=build/peer build/peer/node tests/interop/loop.mjs
//
//   {"do": "play", "scenario", "dir"}   plays a scenario in this folder, which exists and holds the scenario's files
//
// A scenario is one of the corpus of traces (tests/conformance/README.md) with these additions: `builtins`, pi's own tools
// that are active too; the step `runBash` {command, excludeFromContext?}, a shell run of the user that is executed; every
// wait also ends when nothing runs any more. Where something that was waited for stands at a gate, the gate is opened; where
// it can only be ended by an abort, it is aborted. So every scenario ends, whatever the generator drew.
//
// The answer has `outcomes` (one a step), `events` in the JSON form that pi writes, `requests` as the stream function got
// them, `files` (the lines of each session file, in order of appearance), `context`, and `state`. Words that every
// implementation chooses itself are replaced by {{NAME}}; everything else is pi's to the last byte.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";

import { neutral, neutralised, summaryParts } from "./loop-words.mjs";

const pi = (path) => import(`${process.env.PI_ROOT}/node_modules/@earendil-works/${path}`);
const { createAgentSession } = await pi("pi-coding-agent/dist/core/sdk.js");
const { createAgentSessionRuntime } = await pi("pi-coding-agent/dist/core/agent-session-runtime.js");
const { SessionManager } = await pi("pi-coding-agent/dist/core/session-manager.js");
const { SettingsManager } = await pi("pi-coding-agent/dist/core/settings-manager.js");
const { ModelRuntime } = await pi("pi-coding-agent/dist/core/model-runtime.js");
const { createExtensionRuntime } = await pi("pi-coding-agent/dist/core/extensions/loader.js");
const { toJsonEvent } = await pi("pi-coding-agent/dist/modes/json-event.js");
const { createAssistantMessageEventStream } = await pi("pi-ai/dist/utils/event-stream.js");
const { fauxProvider } = await pi("pi-ai/dist/providers/faux.js");

/** How long a wait for something in particular goes on before what stands is let go, in milliseconds. */
const PATIENCE = 3_000;
/** Of these events the last one tells whether a wait before another try goes on. */
const RETRIES = new Set([
	"auto_retry_start", "auto_retry_end", "summarization_retry_scheduled", "summarization_retry_attempt_start",
	"summarization_retry_finished", "compaction_end", "agent_start", "agent_settled",
]);
/** The same for an action of the host that may end at once. */
const SOON = 700;

const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
/** Lets everything that is ready run. */
const quiet = async () => {
	for (let i = 0; i < 4; i++) await new Promise((done) => setImmediate(done));
};
const plain = (value) => (value === undefined ? undefined : JSON.parse(JSON.stringify(value)));
const aborted = (signal) =>
	new Promise((done) => (signal?.aborted ? done() : signal?.addEventListener("abort", () => done(), { once: true })));

/** Named gates: closed at first, open for good once opened. */
class Gates {
	#gates = new Map();
	#of(name) {
		if (!this.#gates.has(name)) {
			const gate = {};
			gate.opened = new Promise((open) => (gate.open = open));
			this.#gates.set(name, gate);
		}
		return this.#gates.get(name);
	}
	open = (name) => this.#of(name).open();
	opened = (name) => this.#of(name).opened;
}

function usage({ input = 0, output = 0, cacheRead = 0, cacheWrite = 0 } = { input: 100, output: 10 }) {
	const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 };
	return { input, output, cacheRead, cacheWrite, totalTokens: input + output + cacheRead + cacheWrite, cost };
}

class Play {
	events = [];
	requests = [];
	outcomes = [];
	gates = new Gates();
	/** What waits for the host: replies by number, tool calls by id. */
	standing = new Map();
	/** Started prompts that have not returned. */
	running = new Set();
	named = new Map();
	/** Files of sessions in order of appearance, and how many sessions there were. */
	known = [];
	made = 0;

	constructor(scenario, dir) {
		Object.assign(this, { scenario, dir, script: scenario.script, next: 0 });
	}

	get session() {
		return this.runtime.session;
	}
	get manager() {
		return this.session.sessionManager;
	}

	async open() {
		const { scenario, dir } = this;
		const { options } = scenario;
		const models = await ModelRuntime.create({ authPath: join(dir, "auth.json"), modelsPath: join(dir, "models.json") });
		this.faux = fauxProvider({ api: "script-api", provider: "script", models: scenario.models });
		models.registerNativeProvider(this.faux.provider);
		await models.refresh?.({ allowNetwork: false });
		const nothing = {
			getExtensions: () => ({ extensions: [], errors: [], runtime: createExtensionRuntime() }),
			getSkills: () => ({ skills: [], diagnostics: [] }),
			getPrompts: () => ({ prompts: [], diagnostics: [] }),
			getThemes: () => ({ themes: [], diagnostics: [] }),
			getAgentsFiles: () => ({ agentsFiles: [] }),
			getSystemPrompt: () => scenario.prompt,
			getSystemPromptSource: () => undefined,
			getAppendSystemPrompt: () => [],
			getAppendSystemPromptSources: () => [],
			extendResources() {},
			async reload() {},
		};
		const settingsManager = SettingsManager.inMemory(structuredClone(scenario.settings));
		const customTools = scenario.tools.map((tool) => this.tool(tool));
		const names = [...(scenario.builtins ?? []), ...scenario.tools.map((tool) => tool.name)];
		const create = async ({ cwd, sessionManager, sessionStartEvent }) => {
			const given = this.made++ === 0 || options.replacement !== "restore";
			const made = await createAgentSession({
				cwd,
				agentDir: dir,
				modelRuntime: models,
				resourceLoader: nothing,
				settingsManager,
				sessionManager,
				sessionStartEvent,
				customTools,
				tools: names,
				model: given ? this.faux.getModel(options.model) : undefined,
				thinkingLevel: given ? (options.thinkingLevel ?? undefined) : undefined,
			});
			made.session.agent.streamFunction = (model, context, how) => this.respond(model, context, how);
			made.session.subscribe((event) => this.events.push(neutralised(plain(toJsonEvent(event)))));
			const file = sessionManager.getSessionFile();
			if (file && !this.known.includes(file)) this.known.push(file);
			return { session: made.session, services: { cwd, agentDir: dir, modelRuntime: models }, diagnostics: [] };
		};
		const sessionManager = options.inMemory ? SessionManager.inMemory(dir) : SessionManager.create(dir, join(dir, "sessions"));
		this.runtime = await createAgentSessionRuntime(create, { cwd: dir, agentDir: dir, sessionManager });
	}

	/** The scripted model: one reply a request, every block in one delta. */
	respond(model, context, { signal, reasoning, cacheRetention }) {
		const number = signal?.aborted || this.next >= this.script.length ? undefined : this.next++;
		const reply = number === undefined ? undefined : this.script[number];
		if (reply?.throw) throw new Error(reply.throw);
		const request = { model: model.id, reasoning: reasoning ?? "off", aborted: signal?.aborted === true };
		if (cacheRetention === "none") {
			const parts = summaryParts(String(context.messages.at(-1).content[0].text));
			this.requests.push({ ...request, summary: neutralised(parts) });
		} else this.requests.push({ ...request, messages: neutralised(plain(context.messages)) });
		const stream = createAssistantMessageEventStream();
		this.play(stream, model, number, reply, signal);
		return stream;
	}

	async play(stream, model, number, reply, signal) {
		const message = {
			role: "assistant",
			content: [],
			api: model.api,
			provider: model.provider,
			model: model.id,
			usage: usage({}),
			stopReason: "pending",
			timestamp: 0,
		};
		// The tokens of a reply are known at its end.
		const end = (stopReason, errorMessage) => {
			const spent = reply ? usage(reply.usage) : message.usage;
			const final = { ...message, usage: spent, stopReason, ...(errorMessage === undefined ? {} : { errorMessage }) };
			const failed = stopReason === "error" || stopReason === "aborted";
			stream.push(failed ? { type: "error", reason: stopReason, error: final } : { type: "done", reason: stopReason, message: final });
			stream.end(final);
		};
		// Later than whatever was stored before the request (S251).
		await sleep(2);
		message.timestamp = Date.now();
		if (signal?.aborted) return end("aborted", "scripted abort");
		if (!reply) return end("error", "the script has no reply left for this request");
		if (reply.immediateError) return end("error", reply.immediateError);
		const tell = (event) => stream.push({ ...event, partial: { ...message } });
		tell({ type: "start" });
		for (const [contentIndex, block] of (reply.content ?? []).entries()) {
			const before = message.content;
			if (block.type === "toolCall") {
				message.content = [...before, { type: "toolCall", id: block.id, name: block.name, arguments: {} }];
				tell({ type: "toolcall_start", contentIndex });
				tell({ type: "toolcall_delta", contentIndex, delta: JSON.stringify(block.arguments) });
				message.content = [...before, { ...block }];
				tell({ type: "toolcall_end", contentIndex, toolCall: { ...block } });
				continue;
			}
			const text = block[block.type];
			message.content = [...before, { type: block.type, [block.type]: "" }];
			tell({ type: `${block.type}_start`, contentIndex });
			message.content = [...before, { ...block }];
			tell({ type: `${block.type}_delta`, contentIndex, delta: text });
			tell({ type: `${block.type}_end`, contentIndex, content: text });
		}
		if (reply.hang || reply.waitGate) {
			const ways = [aborted(signal)];
			if (reply.waitGate) ways.push(this.gates.opened(reply.waitGate));
			await this.stand(number, reply.waitGate, Promise.race(ways));
			if (signal?.aborted) return end("aborted", "scripted abort");
		}
		const calls = (reply.content ?? []).some((block) => block.type === "toolCall");
		end(reply.stop ?? (calls ? "toolUse" : "stop"), reply.error);
	}

	/** Waits where the host can see it; without a gate only an abort helps. */
	async stand(key, gate, until) {
		this.standing.set(key, { gate });
		await until;
		this.standing.delete(key);
	}

	tool({ name, description, schema, executionMode, behaviour }) {
		const fill = (text, args) =>
			text.replace(/\{(\*|\w+)\}/g, (_, key) => {
				if (key === "*") return JSON.stringify(args);
				const value = args[key] ?? "";
				return typeof value === "string" ? value : JSON.stringify(value);
			});
		const execute = async (id, args, signal, update) => {
			for (const step of behaviour) {
				const content = () => step.content ?? [{ type: "text", text: fill(step.text ?? "", args) }];
				switch (step.do) {
					case "update":
						update?.({ content: content(), details: {} });
						break;
					case "waitGate":
						await this.stand(id, step.gate, this.gates.opened(step.gate));
						break;
					case "waitAbort":
						await this.stand(id, undefined, aborted(signal));
						break;
					case "openGate":
						this.gates.open(step.gate);
						break;
					case "throw":
						throw new Error(fill(step.message, args));
					case "reply": {
						const result = { content: content(), details: step.details ?? {} };
						if (step.usage) result.usage = usage(step.usage);
						for (const flag of ["isError", "terminate"]) if (step[flag]) result[flag] = true;
						return result;
					}
					default:
						throw new Error(`unknown behaviour ${step.do}`);
				}
			}
			return { content: [], details: {} };
		};
		return { name, label: name, description, parameters: schema, execute, ...(executionMode ? { executionMode } : {}) };
	}

	target({ role, index, entry, leaf }) {
		const entries = this.manager.getEntries();
		if (leaf) return this.manager.getLeafId() ?? "nowhere";
		if (role) return entries.filter((it) => it.type === "message" && it.message.role === role)[index]?.id ?? "nowhere";
		return entries[entry]?.id ?? "nowhere";
	}

	index(id) {
		const at = this.manager.getEntries().findIndex((entry) => entry.id === id);
		return at < 0 ? null : at;
	}

	busy() {
		return this.running.size > 0 || !this.session.isIdle;
	}

	/** A long wait before a request is made again. */
	waits() {
		const last = this.events.findLast(({ type }) => RETRIES.has(type));
		return last?.delayMs > 1_000;
	}

	/** Waits for `over`; what stands meanwhile is let go. */
	async until(over, patience = 0) {
		const begun = Date.now();
		for (;;) {
			await quiet();
			if (over()) return;
			if (Date.now() - begun > 8_000) throw new Error("nothing happens any more");
			if (this.waits() && Date.now() - begun >= patience) {
				await sleep(50);
				if (over()) return;
				if (this.waits()) await this.session.abort();
			}
			if (this.standing.size && Date.now() - begun >= patience) {
				// What follows by itself has happened by then; an abort would end it.
				await sleep([...this.standing.values()].some(({ gate }) => gate === undefined) ? 150 : 15);
				await quiet();
				if (over()) return;
				let abort = false;
				for (const { gate } of this.standing.values()) gate === undefined ? (abort = true) : this.gates.open(gate);
				if (abort) await this.session.abort();
			}
			await sleep(1);
		}
	}

	start(promise) {
		const failed = { error: undefined };
		const entry = promise.then(
			() => this.running.delete(entry),
			(error) => {
				failed.error = error;
				this.running.delete(entry);
			},
		);
		this.running.add(entry);
		return failed;
	}

	async guarded(promise) {
		let over = false;
		const settled = promise.then(
			(value) => ({ value }),
			(error) => ({ error }),
		);
		settled.then(() => (over = true));
		await this.until(() => over, SOON);
		const { value, error } = await settled;
		if (error) throw error;
		return value;
	}

	/** Runs an action, beside the following steps if it has a name. */
	act(step, promise) {
		if (!step.as) return this.guarded(promise);
		const settled = promise.then(
			(value) => ({ value }),
			(error) => ({ error }),
		);
		const action = { settled, over: false };
		settled.then(() => (action.over = true));
		this.named.set(step.as, action);
	}

	async step(step) {
		const s = this.session;
		switch (step.do) {
			case "prompt":
			case "start": {
				const streamingBehavior = step.behaviour;
				const queued = this.busy();
				const failed = this.start(s.prompt(step.text, { images: step.images, streamingBehavior }));
				// Refusals come at once; else the run has begun when this step is over.
				await quiet();
				if (failed.error) throw failed.error;
				if (step.do === "prompt" && !queued) await this.until(() => !this.busy());
				if (failed.error) throw failed.error;
				return;
			}
			case "steer":
				return void (await s.steer(step.text));
			case "followUp":
				return void (await s.followUp(step.text));
			case "abort":
				return void (await this.guarded(s.abort()));
			case "abortRetry":
				return void s.abortRetry();
			case "abortCompaction":
				return void s.abortCompaction();
			case "abortBranchSummary":
				return void s.abortBranchSummary();
			case "clearQueue":
				return s.clearQueue();
			case "setQueueModes":
				if (step.steering) s.setSteeringMode(step.steering);
				if (step.followUp) s.setFollowUpMode(step.followUp);
				return;
			case "bash": {
				const { command, output, exitCode, cancelled = false, truncated = false, excludeFromContext } = step;
				const how = excludeFromContext === undefined ? undefined : { excludeFromContext };
				return void s.recordBashResult(command, { output, exitCode: exitCode ?? undefined, cancelled, truncated }, how);
			}
			case "runBash": {
				const { excludeFromContext } = step;
				const how = excludeFromContext === undefined ? undefined : { excludeFromContext };
				const { output, exitCode, cancelled, truncated } = await s.executeBash(step.command, undefined, how);
				return { output, exitCode, cancelled, truncated };
			}
			case "compact":
				return this.act(
					step,
					s.compact(step.instructions).then((r) => ({
						summary: neutral(r.summary),
						firstKept: this.index(r.firstKeptEntryId),
						details: r.details,
					})),
				);
			case "navigate": {
				const how = { summarize: step.summarize, label: step.label };
				return this.act(
					step,
					s.navigateTree(this.target(step.target), { ...how, customInstructions: step.instructions }).then((r) => ({
						cancelled: r.cancelled,
						aborted: r.aborted,
						editorText: r.editorText,
						summaryEntry: r.summaryEntry && this.index(r.summaryEntry.id),
					})),
				);
			}
			case "join": {
				const action = this.named.get(step.of);
				if (!action) return;
				await this.until(() => action.over, PATIENCE);
				this.named.delete(step.of);
				const { value, error } = await action.settled;
				if (error) throw error;
				return value;
			}
			case "setModel":
				return await s.setModel(this.faux.getModel(step.model));
			case "setThinkingLevel":
				return s.setThinkingLevel(step.level);
			case "setTools":
				return s.setActiveToolsByName(step.tools);
			case "setName":
				return s.setSessionName(step.name);
			case "label":
				return void this.manager.appendLabelChange(this.target(step.target), step.label ?? undefined);
			case "contextEdit":
				this.manager.appendContextEdit(this.target(step.target), step.replacement);
				return s.refreshContext();
			case "sendCustomMessage": {
				const { customType, content, display = true, triggerTurn, deliverAs } = step;
				const how = plain({ triggerTurn, deliverAs });
				if (!triggerTurn || this.busy()) return void (await s.sendCustomMessage({ customType, content, display }, how));
				const failed = this.start(s.sendCustomMessage({ customType, content, display }, how));
				await this.until(() => !this.busy());
				if (failed.error) throw failed.error;
				return;
			}
			case "fork":
				return this.replace(() => this.runtime.fork(this.target(step.target)));
			case "clone":
				return this.replace(() => this.runtime.fork(this.manager.getLeafId(), { position: "at" }));
			case "newSession":
				return this.replace(() => this.runtime.newSession());
			case "switchSession":
			case "reopen": {
				const file = step.do === "reopen" ? this.manager.getSessionFile() : this.known[step.session - 1];
				return existsSync(file ?? "") ? this.replace(() => this.runtime.switchSession(file)) : "no file";
			}
			case "openGate":
				return this.gates.open(step.gate);
			case "waitIdle":
				return this.until(() => !this.busy());
			case "waitModel":
				return this.until(() => this.standing.has(step.reply) || this.idle(), PATIENCE);
			case "waitTool":
				return this.until(() => this.standing.has(step.call) || this.idle(), PATIENCE);
			case "waitEvent":
				return this.until(() => this.told(step.event) || this.idle(), PATIENCE);
			default:
				throw new Error(`unknown step ${step.do}`);
		}
	}

	told(wanted) {
		return this.events.some((event) => Object.entries(wanted).every(([key, value]) => event[key] === value));
	}

	/** Nothing runs, not even a named action. */
	idle() {
		return !this.busy() && [...this.named.values()].every((action) => action.over);
	}

	async replace(make) {
		const { cancelled, selectedText } = await this.guarded(make());
		return { cancelled, selectedText };
	}

	/** The lines of a session file without the words of pi alone. */
	lines(file) {
		if (!file || !existsSync(file)) return null;
		return readFileSync(file, "utf8").trimEnd().split("\n").map((line) => neutralised(JSON.parse(line)));
	}

	async run() {
		await this.open();
		for (const step of this.scenario.steps) {
			let outcome;
			try {
				outcome = { value: plain(await this.step(step)) ?? null };
			} catch (error) {
				outcome = { error: String(error?.message ?? error) };
			}
			this.outcomes.push(outcome);
			await quiet();
		}
		await this.until(() => !this.busy());
		const { session, manager } = this;
		const { tokens, cost, userMessages, assistantMessages, toolCalls, toolResults, totalMessages } = session.getSessionStats();
		const state = {
			leaf: this.index(manager.getLeafId()),
			name: session.sessionName ?? null,
			model: session.model?.id ?? null,
			thinkingLevel: session.thinkingLevel,
			tools: session.getActiveToolNames(),
			labels: manager.getEntries().flatMap((entry, at) => (manager.getLabel(entry.id) === undefined ? [] : [[at, manager.getLabel(entry.id)]])),
			forkable: session.getUserMessagesForForking().map((message) => message.text),
			contextTokens: session.getContextUsage()?.tokens ?? null,
			pending: session.pendingMessageCount,
			stats: { userMessages, assistantMessages, toolCalls, toolResults, totalMessages, tokens, cost },
		};
		const context = neutralised(plain(session.messages));
		const files = this.known.map((file) => this.lines(file));
		session.dispose();
		const { outcomes, events, requests, known } = this;
		return { outcomes, events, requests, files, paths: known, context, state };
	}
}

for await (const line of createInterface({ input: process.stdin })) {
	let answer;
	try {
		const { scenario, dir } = JSON.parse(line);
		answer = { ok: true, value: await new Play(scenario, dir).run() };
	} catch (error) {
		answer = { ok: false, error: String(error?.stack ?? error) };
	}
	process.stdout.write(`${JSON.stringify(answer)}\n`);
}
process.exit(0);

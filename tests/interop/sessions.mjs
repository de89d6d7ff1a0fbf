// Generated session files, steps and folders, and what the real pi makes of them: written as conformance cases (their form is
// that of the corpus for sessions).
//
//   PI_ROOT=build/peer build/peer/node tests/interop/sessions.mjs SEED COUNT FOLDER [KIND]
//
// One case a seed. Left out of what is generated, because pi does not end or contradicts itself there: cycles on a path that
// is looked at, entries that throw in pi whatever is asked. What we do differently on purpose is generated too, in its own
// share of the cases; the runner knows it by the input and checks what docs/differences.md promises.
import { createRequire, syncBuiltinESMExports } from "node:module";
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync, existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

const [firstSeed, count, folder, only] = process.argv.slice(2);
process.env.TZ = "UTC";

// --- a clock that stands still, and ids that are remembered --------------------------------------------------------------

const NOW = 1893456000123;
const RealDate = Date;
globalThis.Date = class extends RealDate {
	constructor(...given) {
		if (given.length) super(...given);
		else super(NOW);
	}
	static now() {
		return NOW;
	}
};
const crypto = createRequire(import.meta.url)("node:crypto");
let drawn = [];
let forced = [];
crypto.randomUUID = () => {
	if (forced.length > 0) return forced.shift();
	const made = hex(8) + "-" + hex(4) + "-4" + hex(3) + "-8" + hex(3) + "-" + hex(12);
	drawn.push(made);
	return made;
};
syncBuiltinESMExports();

const root = `${process.env.PI_ROOT}/node_modules/@earendil-works`;
const core = `${root}/pi-coding-agent/dist/core`;
const { SessionManager, parseSessionEntries, buildSessionContext, buildContextEntries } = await import(`${core}/session-manager.js`);
const compaction = await import(`${core}/compaction/index.js`);
const prose = await import(`${core}/messages.js`);
const { transformMessages } = await import(`${root}/pi-ai/dist/api/transform-messages.js`);
const { createUsageTotals, addUsageToTotals, combineUsage, getUsageCostBreakdown } = await import(`${core}/usage-totals.js`);
const { SettingsManager } = await import(`${core}/settings-manager.js`);
const { isContextOverflow, isRecoverableLength } = await import(`${root}/pi-ai/dist/utils/overflow.js`);
const { isRetryableAssistantError } = await import(`${root}/pi-ai/dist/utils/retry.js`);
const { collapseSystemMessages, getCurrentSystemMessage, getCurrentSystemPrompt } = await import(`${root}/pi-ai/dist/utils/transcript.js`);

// --- chance, the same for the same seed --------------------------------------------------------------------------------

let state = 0;
function below(end) {
	state = (state + 0x6d2b79f5) | 0;
	let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
	mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
	return ((mixed ^ (mixed >>> 14)) >>> 0) % end;
}
const hex = (length) => Array.from({ length }, () => "0123456789abcdef"[below(16)]).join("");
const one = (list) => list[below(list.length)];
const maybe = (chance) => below(1000) < chance * 1000;
const some = (chance, key, make) => (maybe(chance) ? { [key]: make() } : {});
const ABSENT = Symbol();
/** An object without the members that are absent. */
const object = (members) => Object.fromEntries(Object.entries(members).filter(([, value]) => value !== ABSENT));
const shuffled = (list) => {
	const out = [...list];
	for (let at = out.length - 1; at > 0; at--) {
		const other = below(at + 1);
		[out[at], out[other]] = [out[other], out[at]];
	}
	return out;
};

// --- messages --------------------------------------------------------------------------------------------------------------

const TEXTS = [
	"plain", "two words", "", " ", "quote \" back \\ slash / tab \t line\nbreak", "\r\nwindows\r\n", "nul \u0000 bell \u0007 del \u007f",
	"naïve 日本語 👩‍👩‍👧", "half \ud83d of a pair", "<summary>", "a b", "- list\n- more", "  spaces  ",
];
let halves = true; // halves of surrogate pairs: files may hold them, our strings cannot (S3)
const text = () => whole(maybe(0.1) ? one(["long ", "日本", "👍"]).repeat(50 + below(900)) : one(TEXTS));
const whole = (t) => (halves ? t : t.replaceAll("\ud83d of", "of"));
const path = () => one(["a.txt", "src/b.rs", "c d.md", "é.txt", "z", "src/", "Ω", "😀.txt", "\uff5e.txt", ""]);
const image = () => ({ type: "image", data: one(["aGk=", ""]), mimeType: one(["image/png", "image/jpeg"]) });
const textBlock = () => ({ type: "text", text: text(), ...some(0.15, "textSignature", () => "sig+/=") });
const CALLS = ["c1", "c2", "c3", "call|one+two/three=", "x".repeat(70), "ok-id_1", "é", "toolu_01|fc_2", ""];
const call = () => ({
	type: "toolCall", id: one(CALLS), name: one(["read", "write", "edit", "bash", "grep"]),
	arguments: one([() => ({ path: path() }), () => ({ path: path(), limit: 3 }), () => ({}), () => ({ path: 5 }), () => ({ b: 1.5, 2: [], 1: { q: [1, null] } })])(),
	...some(0.15, "thoughtSignature", () => "ts=="), ...some(0.1, "namespace", () => "ns"), ...some(0.1, "argumentsError", () => "bad"),
});
const thinking = () => ({ type: "thinking", thinking: one(["hm", "", "  ", "why\n"]), ...some(0.5, "thinkingSignature", () => one(["s==", ""])), ...some(0.2, "redacted", () => maybe(0.5)) });
const blocks = (...kinds) => Array.from({ length: below(5) }, () => one(kinds)());
const oddBlock = () => one([{ type: "odd" }, { type: "odd", text: "not text" }, {}]);
const usage = () => one([
	{ input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0, cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 } },
	{ input: 120, output: 30, cacheRead: 1, cacheWrite: 2, totalTokens: 153, cost: { input: 0.12, output: 0.09, cacheRead: 0, cacheWrite: 0, total: 0.21 } },
	{ input: 5, output: 6, cacheRead: 7, cacheWrite: 8, totalTokens: 0, cost: { input: 1e-7, output: 0, cacheRead: 0, cacheWrite: 0, total: 1e-7 } },
	{ input: 40, output: 2, cacheRead: 0, cacheWrite: 0, reasoning: 1, cacheWrite1h: 0, totalTokens: 42, cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 } },
]);
const MODELS = [["lantern", "lantern-chat", "lantern-small"], ["lantern", "lantern-chat", "lantern-large"], ["lantern", "lantern-v2", "lantern-small"], ["otherco", "other-chat", "other-1"]];
const time = () => one([1736931601000, 5, 5.5, 1736931699999, 0, -1]);

/** A message of a role as careful programs write it; `odd` lets fields be missing or null. */
function message(role, odd) {
	const before = halves;
	const content = (...kinds) => (odd && maybe(0.25) ? one([null, ABSENT, [], [...blocks(...kinds), oddBlock()]]) : blocks(...kinds));
	const timestamp = odd && maybe(0.2) ? one([ABSENT, "soon", null]) : time();
	switch (role) {
		case "user":
			return object({ role, content: maybe(0.4) ? text() : content(textBlock, textBlock, image), timestamp });
		case "assistant": {
			const [provider, api, model] = one(MODELS);
			return object({
				role, content: content(textBlock, thinking, call, call), api, provider, model, usage: odd && maybe(0.1) ? ABSENT : usage(),
				stopReason: one(["stop", "toolUse", "toolUse", "length", "error", "aborted", "deferred"]), timestamp,
				...some(0.2, "responseModel", () => "lantern-small-2"), ...some(0.2, "errorMessage", () => "oops"), ...some(0.3, "durationMs", () => one([12, 12.75])),
				...some(0.3, "thinkingLevel", () => "high"), ...some(0.1, "unknownField", () => [1.5, 2e21]),
			});
		}
		case "toolResult":
			return object({
				role, toolCallId: one(CALLS), toolName: one(["read", "bash"]), content: content(textBlock, textBlock, image), ...some(0.2, "details", () => ({ diff: "x" })),
				...some(0.1, "usage", usage), isError: maybe(0.3), timestamp,
				...some(0.2, "nestedCalls", () => ({ calls: [{ id: "n1", name: "edit", arguments: { path: path() }, status: "ok" }, { id: "n2", name: "read", status: "ok" }], complete: true })),
			});
		case "system": {
			// A prompt that is folded anew into a snapshot cannot keep half a pair.
			halves = false;
			const made = object({
				role, content: odd && maybe(0.2) ? one([null, ABSENT]) : maybe(0.5) ? text() : blocks(textBlock),
				sections: one([ABSENT, ABSENT, { tools: text(), rules: null }, { rules: text(), preamble: "", cwd: "/x" }, { tools: null, skills: "two", addendum: "one" }, {}]), timestamp,
				toolsAdded: one([ABSENT, ABSENT, [{ name: "read", description: "d", parameters: { type: "object" } }], [{ name: "bash", description: one(["", "naïve \"x\""]), parameters: {} }, { name: "read", description: "new", parameters: {} }], []]),
				toolsRemoved: one([ABSENT, ABSENT, [{ name: "read" }], [{ name: "ghost" }, { name: "bash" }]]),
			});
			halves = before;
			return made;
		}
		case "bashExecution":
			return object({
				role, command: one(["ls", "echo `x`", ""]), output: one(["", "x\n", "```\n", text()]), exitCode: one([0, 1, 127, ABSENT, ...(odd ? [null, -1] : [])]), cancelled: maybe(0.3),
				truncated: maybe(0.3), fullOutputPath: one([ABSENT, "/tmp/full", ...(odd ? [""] : [])]), timestamp, excludeFromContext: one([ABSENT, true, false]),
			});
		case "custom":
		case "hookMessage":
			return object({ role, customType: "note", content: maybe(0.5) ? text() : content(textBlock, image), display: maybe(0.5), ...some(0.3, "details", () => ({ k: 1 })), timestamp });
		default:
			return object({ role, content: one([text(), ABSENT]), timestamp });
	}
}
const roles = (odd) => one(["user", "user", "user", "assistant", "assistant", "assistant", "toolResult", "toolResult", "system", "bashExecution", ...(odd ? ["custom", "hookMessage", "strange"] : [])]);

// --- entries -------------------------------------------------------------------------------------------------------------

const KINDS = ["custom_message", "compaction", "context_edit", "label", "session_info", "branch_summary", "model_change", "thinking_level_change", "usage", "custom", "future"];
const TIMES = ["2025-01-15T09:00:00.000Z", "2025-01-15T09:01:00.000Z", "2025-01-15T09:02:00.000Z", "2025-01-15T09:03:00.000Z"];
const ODD_TIMES = ["2025-01-15T09:02:00Z", "2025-01-15", "2025-01-15T11:02:00+02:00", "2025-01-15T09:02Z", "2025-01-15T09:02:00.5Z", "2025-01-15T09:02:00.123456Z", "2025-01-15T09:02:00", "2025", "2025-02-30T00:00:00.000Z", "2025-01-15T24:00:00.000Z", "", "yesterday", 1736931720000, null, ABSENT, 12.7, true];

/** One entry. `ids`: all ids of the file; `n`: how many came before. */
function entry(n, ids, odd) {
	const earlier = () => (n === 0 ? null : ids[below(n)]);
	const parentId = n === 0 ? (odd && maybe(0.1) ? one(["ghost", ABSENT, ""]) : null) : maybe(0.75) ? ids[n - 1] : odd && maybe(0.3) ? one(["ghost", "", ABSENT, null, 7]) : maybe(0.1) ? null : earlier();
	const any = () => ids[below(ids.length)];
	const near = () => (n === 0 ? any() : ids[Math.max(0, n - 1 - below(4))]);
	const target = () => (odd && maybe(0.15) ? one(["ghost", any()]) : near());
	const kind = maybe(0.6) ? "message" : one(KINDS);
	const timestamp = odd && maybe(0.25) ? one(ODD_TIMES) : one(TIMES);
	const base = { type: kind, id: ids[n], parentId, timestamp };
	const late = { id: ids[n], parentId, timestamp };
	const extra = odd && maybe(0.1) ? { unknown: [1.0, "\u2028", { 2: 1, 1: 2, __proto: 0 }] } : {};
	const lists = () => ({ readFiles: [path(), path()], modifiedFiles: [path()] });
	switch (kind) {
		case "message":
			return object({ ...base, message: message(roles(odd), odd), ...extra });
		case "custom_message":
			return object({ type: kind, customType: "note", content: odd && maybe(0.3) ? one([null, ABSENT, []]) : maybe(0.5) ? text() : blocks(textBlock, image), display: odd && maybe(0.2) ? ABSENT : maybe(0.5), details: one([ABSENT, { 2: 1, 1: 2 }, null]), ...late, ...extra });
		case "compaction":
			return object({
				...base, summary: one(["s", "", text()]), firstKeptEntryId: odd && maybe(0.3) ? one(["ghost", ABSENT, 7, null, any()]) : maybe(0.15) ? ids[n] : near(), tokensBefore: odd && maybe(0.2) ? one([1.5, ABSENT]) : 4321,
				details: one([ABSENT, lists(), ...(odd ? [{ readFiles: "x" }, null] : [])]), usage: one([ABSENT, usage()]), fromHook: one([ABSENT, true, false]), systemMessage: one([ABSENT, message("system", false)]), ...extra,
			});
		case "context_edit":
			return object({ ...base, targetId: target(), replacement: one([null, { content: text() }, { content: blocks(textBlock, image) }]), ...extra });
		case "label":
			return object({ ...base, targetId: target(), label: one(["l1", "l2", "", ABSENT, " ", ...(odd ? [null] : [])]), timestamp: one(TIMES), ...extra });
		case "session_info":
			return object({ ...base, name: one(["n", " n\n", "", "Ünï", ...(odd ? [ABSENT, null, "\ufeff x \u00a0"] : [])]), ...extra });
		case "branch_summary":
			return object({ ...base, fromId: odd && maybe(0.2) ? ABSENT : one([near(), "root", "gone"]), summary: one(["left", "", text()]), details: one([ABSENT, lists(), ...(odd ? [{ modifiedFiles: null }] : [])]), usage: one([ABSENT, usage()]), fromHook: one([ABSENT, true, false]), ...extra });
		case "model_change":
			return object({ ...base, provider: one(["lantern", "otherco"]), modelId: one(["lantern-small", "x/y"]), ...extra });
		case "thinking_level_change":
			return object({ ...base, thinkingLevel: one(["off", "high", "odd"]), ...extra });
		case "usage":
			return object({ ...base, kind: "cache_warm", provider: "lantern", model: "lantern-small", usage: usage(), ...some(0.3, "note", () => "why"), ...extra });
		case "custom":
			return object({ type: kind, customType: "st", data: one([ABSENT, { a: 1 }, null, [1e21, 1e-7, 0.1, 100]]), ...late, ...extra });
		default:
			return object({ ...base, data: { deep: [[[]]], 1: 2 }, ...extra });
	}
}

const HEADER = { type: "session", version: 3, id: "fixture-session-01", timestamp: "2025-01-15T09:00:00.000Z", cwd: "/work/demo" };
const header = (odd) => (odd && maybe(0.3) ? one([
	{ id: "odd", extra: 1, type: "session", version: 9 }, { ...HEADER, parentSession: "/work/p.jsonl" }, { ...HEADER, cwd: null }, { ...HEADER, cwd: "" }, { ...HEADER, cwd: "rel/x" }, { ...HEADER, version: 3.5 },
	{ ...HEADER, cwd: "/work/demo/../other/" }, { ...HEADER, id: "" }, { ...HEADER, timestamp: 5 }, { ...HEADER, version: "3" }, { ...HEADER, version: true, cwd: 3 },
]) : HEADER);
const JUNK = ["", "  \t", "{bad", "\r", "{\"type\":\"mess", "\u00a0", "nul", "null", "0", "false", "\"\"", "[1", "{\"a\":01}", "{'a':1}"];

/** Spelled in a way that is not JSON.stringify's. */
function respelled(line) {
	return line.replace(/:(\d+)([,}\]])/g, (all, digits, end) => (maybe(0.1) ? `:${digits}.0${end}` : maybe(0.05) ? `: ${digits}e0${end}` : all)).replace(/,"/g, (all) => (maybe(0.02) ? " , \"" : all));
}

/** A file: its text, its ids. */
function file({ odd = false, version = 3, most = 24 } = {}) {
	const length = below(maybe(0.1) ? 4 * most : most) + (odd ? 0 : 1);
	const ids = Array.from({ length }, (_, n) => (odd && maybe(0.03) ? one(["", " ", "é", "a b", "__proto__", "1", "x".repeat(40), "\"q\""]) + n : `e${n}`));
	let lines = [];
	const entries = ids.map((_, n) => entry(n, ids, odd));
	for (const made of entries) {
		if (version < 3) {
			if (made.message && maybe(0.2)) made.message.role = "hookMessage";
			if (version < 2 && !maybe(0.15)) {
				delete made.id;
				delete made.parentId;
			}
			if (made.type === "compaction") {
				if (version < 2 && maybe(0.8)) {
					delete made.firstKeptEntryId;
					made.firstKeptEntryIndex = one([below(length + 2), below(length + 2), 0, -1, 1.5, "1", null, 1e9]);
				}
			}
			if (version < 2 && maybe(0.05)) made.id = one([7, null, {}]);
		}
		lines.push(JSON.stringify(made));
	}
	if (odd) lines = lines.map((line) => (maybe(0.2) ? respelled(line) : line));
	if (odd) for (let at = lines.length; at >= 0; at--) if (maybe(0.06)) lines.splice(at, 0, one(JUNK));
	return { lines, ids };
}
function joined(lines, odd) {
	return lines.join(odd && maybe(0.15) ? "\r\n" : "\n") + (odd ? one(["\n", "\n", "\n", "", "\r\n", "\n\n", "\n{\"type\":\"mess", "\n  "]) : "\n");
}

// --- what is stated about a session ------------------------------------------------------------------------------------------

let sm;
const codes = [
	[/is not a valid .* session/, "INVALID_SESSION_FILE"], [/Entry [^]* is not on the active branch/, "NOT_ON_ACTIVE_BRANCH"], [/Entry [^]* does not contribute/, "NOT_EDITABLE"], [/Entry [^]* not found/, "ENTRY_NOT_FOUND"],
	[/replacement must be/, "INVALID_REPLACEMENT"], [/Cannot fork/, "FORK_SOURCE_INVALID"], [/Session id must/, "INVALID_SESSION_ID"], [/EEXIST/, "FILE_EXISTS"],
];
function code(error) {
	for (const [pattern, name] of codes) if (pattern.test(error?.message)) return name;
	if (error instanceof TypeError) return "INTERNAL_TYPE_ERROR";
	throw error;
}
/** Where pi throws on contents that are null, nothing is stated: it says so itself nowhere, and we read them as empty. */
const rows = (make) => [0, 1, 2].map(() => attempt(make)).filter((row) => !row["@throws"]);
const attempt = (make) => {
	try {
		return make();
	} catch (error) {
		return { "@throws": code(error) };
	}
};
const tree = (nodes) => nodes.map((node) => ({ id: node.entry.id, ...(node.label === undefined ? {} : { label: node.label, labelTimestamp: node.labelTimestamp }), children: tree(node.children) }));
const models = MODELS.flatMap(([provider, api, id]) => [{ provider, api, id, input: ["text", "image"] }, { provider, api, id, input: ["text"] }]);
const anthropic = (id) => id.replace(/[^a-zA-Z0-9_-]/g, "_").slice(0, 64);

function stated(asked) {
	const projection = attempt(() => sm.buildSessionProjection());
	const out = {
		header: sm.getHeader(), sessionId: sm.getSessionId(), cwd: sm.getCwd(), leafId: sm.getLeafId() ?? null, entryCount: sm.getEntryCount(), entriesLength: sm.getEntries().length,
		branch: sm.getBranch().map((e) => e.id), tree: tree(sm.getTree()), sessionName: attempt(() => sm.getSessionName() ?? null),
	};
	out.contextEntries = attempt(() => sm.buildContextEntries().map((e) => e.id));
	out.context = attempt(() => sm.buildSessionContext());
	if (projection["@throws"]) return out;
	out.projection = projection.entries.map((e) => ({ id: e.sourceEntry.id, roles: e.messages.map((m) => m.role) }));
	const messages = projection.messages;
	const llm = prose.convertToLlm(messages);
	out.llm = llm;
	if (asked.extra) {
		const branch = sm.getBranch();
		const ids = branch.map((e) => e.id);
		const extra = attempt(one([
			() => getCurrentSystemPrompt(messages) || { leaf: sm.getLeafId() }, () => ({ messages: collapseSystemMessages({ messages: llm }).messages }), () => compaction.estimateContextTokens(messages),
			() => ({ tokens: compaction.estimateProjectedContextTokens(projection, branch).tokens }), () => ({ roots: sm.getChildren(null).map((e) => e.id), words: compaction.serializeConversation(llm) }),
			() => ({ parent: sm.getEntry(one(ids))?.parentId ?? null, label: sm.getLabel(one(ids)) ?? null }), () => ({ children: sm.getChildren(one(ids)).map((e) => e.id), roles: messages.map((m) => m.role) }),
		]));
		if (extra && !extra["@throws"]) out.extra = extra;
	}
	const listed = (key, list) => list.length > 0 && (out[key] = list);
	const system = getCurrentSystemMessage(messages);
	if (system) out.currentSystem = system;
	if (asked.transform) {
		listed("transform", rows(() => {
			const [model, normalizer] = [one(models), one(["none", "anthropic"])];
			return { model, normalizer, messages: transformMessages(llm, model, normalizer === "none" ? undefined : anthropic) };
		}));
	}
	if (asked.prepareCompaction) {
		listed("prepareCompaction", rows(() => {
			const settings = { keepRecentTokens: one([0, 1, 5, 10, 20, 40, 60, 100, 150, 300, 1000, 20000]) };
			const plan = compaction.prepareCompaction(sm.getBranch(), { ...compaction.DEFAULT_COMPACTION_SETTINGS, ...settings });
			if (!plan) return { settings, result: null };
			const words = (list) => compaction.serializeConversation(prose.convertToLlm(list));
			return {
				settings,
				result: {
					firstKeptEntryId: plan.firstKeptEntryId, isSplitTurn: plan.isSplitTurn, tokensBefore: plan.tokensBefore, previousSummary: plan.previousSummary ?? null,
					toSummarize: plan.messagesToSummarize.map((m) => m.role), toSummarizeText: words(plan.messagesToSummarize), turnPrefix: plan.turnPrefixMessages.map((m) => m.role), turnPrefixText: words(plan.turnPrefixMessages),
					fileOps: { read: [...plan.fileOps.read].sort(), written: [...plan.fileOps.written].sort(), edited: [...plan.fileOps.edited].sort() }, fileLists: compaction.computeFileLists(plan.fileOps), estimates: messages.map(compaction.estimateTokens),
				},
			};
		}));
	}
	if (asked.branchSummary) {
		const ids = sm.getEntries().map((e) => e.id).filter((id) => typeof id === "string" && !asked.avoid?.includes(id));
		listed("branchSummary", ids.length === 0 ? [] : rows(() => {
			const [from, to] = [one(ids), one([...ids, ...ids, "ghost"])];
			const budget = one([undefined, 0, 5, 10, 30, 60, 100, 300, 1000]);
			const left = compaction.collectEntriesForBranchSummary(sm, from, to);
			const plan = compaction.prepareBranchEntries(left.entries, budget);
			const lists = compaction.computeFileLists(plan.fileOps);
			const result = {
				commonAncestorId: left.commonAncestorId, entries: left.entries.map((e) => e.id), messages: plan.messages.map((m) => m.role), totalTokens: plan.totalTokens, fileLists: lists,
				text: compaction.serializeConversation(prose.convertToLlm(plan.messages)), filesText: compaction.formatFileOperations(lists.readFiles, lists.modifiedFiles),
			};
			return { from, to, ...(budget === undefined ? {} : { budget }), result };
		}));
	}
	return out;
}

// --- placeholders -------------------------------------------------------------------------------------------------------------

const iso = new RealDate(NOW).toISOString();
const notices = ["(image omitted: model does not support images)", "(tool image omitted: model does not support images)"];
function normaliser(dir) {
	const sids = [];
	const fixed = [
		[prose.COMPACTION_SUMMARY_PREFIX, "{{COMPACTION_PREFIX}}"], [prose.BRANCH_SUMMARY_PREFIX, "{{BRANCH_PREFIX}}"], [prose.COMPACTION_SUMMARY_SUFFIX, "{{COMPACTION_SUFFIX}}"],
		[notices[0], "{{USER_IMAGE_NOTICE}}"], [notices[1], "{{TOOL_IMAGE_NOTICE}}"], [dir + "/session.jsonl", "@file"], [dir, "@dir"], [iso.replace(/[:.]/g, "-"), "@fts"], [iso, "@ts"], [process.cwd(), "@cwd"],
	];
	// The suffixes only follow their prefixes; a text of the conversation may hold the same words.
	const suffixes = (t) => t.replace(/(\{\{COMPACTION_PREFIX\}\}[^]*?)\n<\/summary>/g, "$1{{COMPACTION_SUFFIX}}").replace(/(\{\{BRANCH_PREFIX\}\}[^]*?)<\/summary>/g, "$1{{BRANCH_SUFFIX}}");
	const string = (given, line) => {
		let t = given;
		for (const [from, to] of fixed) if (from !== prose.COMPACTION_SUMMARY_SUFFIX) t = t.split(from).join(to);
		t = suffixes(t);
		t = t.replace(/[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/g, (sid) => {
			if (!sids.includes(sid)) sids.push(sid);
			return `@sid${sids.indexOf(sid) + 1}`;
		});
		drawn.forEach((uuid, n) => {
			t = t.split(uuid).join(`@${n + 1}`).split(`"${uuid.slice(0, 8)}"`).join(`"@${n + 1}"`);
			if (t === uuid.slice(0, 8)) t = `@${n + 1}`;
		});
		return line ? t.split(String(NOW)).join("\"@ms\"") : t;
	};
	const walk = (value, line) => {
		if (typeof value === "string") return string(value, line);
		if (value === NOW) return "@ms";
		if (Array.isArray(value)) return value.map((v) => walk(v, line));
		if (value && typeof value === "object") {
			if (value instanceof RealDate) return Number.isNaN(value.getTime()) ? "@InvalidDate" : value.toISOString();
			const out = Object.create(null);
			for (const [k, v] of Object.entries(value)) Object.defineProperty(out, string(k, false), { value: walk(v, line || k === "lines"), enumerable: true });
			return out;
		}
		return value;
	};
	return walk;
}
function fileValue(bytes) {
	const all = bytes.toString("utf8");
	const body = all.endsWith("\n") ? all.slice(0, -1) : all;
	return { lines: all === "" ? [] : body.split("\n"), endsWithNewline: all.endsWith("\n") };
}
function filesBelow(base, at = base) {
	const out = {};
	for (const item of readdirSync(at, { withFileTypes: true })) {
		const full = join(at, item.name);
		if (item.isDirectory()) Object.assign(out, filesBelow(base, full));
		else out[full.slice(base.length + 1)] = fileValue(readFileSync(full));
	}
	return out;
}

// --- kinds ------------------------------------------------------------------------------------------------------------------

const write = (name, bytes, expected) => {
	writeFileSync(join(folder, `${name}.jsonl`), bytes);
	writeFileSync(join(folder, `${name}.expected.json`), JSON.stringify(expected));
};

/** Forms that pi reads in a way of its own (docs/differences.md): one kind of them in a file. */
function peculiar() {
	halves = false;
	const made = file({ most: 14 });
	const { lines, ids } = made;
	const somewhere = () => 1 + below(lines.length);
	const plain = (id, parentId) => JSON.stringify({ type: "message", id, parentId, timestamp: one(TIMES), message: message("user", false) });
	let text;
	switch (below(8)) {
		case 6: { // a byte order mark in an old file
			const old = input("old");
			return { ...old, text: `\ufeff${old.text}` };
		}
		case 7: { // an edit without a usable replacement (S138)
			const target = one(ids);
			lines.push(JSON.stringify(object({ type: "context_edit", id: "x1", parentId: ids.at(-1), timestamp: TIMES[0], targetId: target, replacement: ABSENT })), plain("x2", "x1"));
			break;
		}
		case 0: // an id twice (S67)
			lines.splice(1 + below(lines.length), 0, plain(one(ids), null));
			break;
		case 1: // a cycle off every path that is looked at (S70)
			lines.splice(below(lines.length), 0, plain("x1", "x2"), plain("x2", one(["x1", "x3"])), plain("x3", "x1"));
			ids.push("x9");
			lines.push(plain("x9", ids[0]));
			made.avoid = ["x1", "x2", "x3"];
			break;
		case 2: // lines that are no entries (S55, S59)
			for (let n = 1 + below(3); n > 0; n--) lines.splice(somewhere(), 0, one(["5", "true", "[1]", "\"x\"", "{}", "{\"type\":\"note\"}", "{\"id\":7,\"type\":\"message\",\"message\":{\"role\":\"user\",\"content\":\"x\"}}", "[]"]));
			break;
		case 3: // its own parent (S69)
			lines.splice(below(lines.length), 0, plain("x1", "x1"));
			made.avoid = ["x1"];
			break;
		case 4: // without its message (S138)
			lines.push(JSON.stringify({ type: "message", id: "x1", parentId: ids.at(-1), timestamp: TIMES[0] }), plain("x2", "x1"));
			break;
		default: // a byte order mark (S53)
			text = "\ufeff";
	}
	return { text: (text ?? "") + joined([JSON.stringify(HEADER), ...lines], false), ids, avoid: made.avoid };
}

/** Files that are no sessions, or hardly (S49, S50, S52, S57). */
function broken() {
	const made = file({ most: 4 });
	const head = JSON.stringify(HEADER);
	const start = one([
		"", "\n", "  \n\t\n", "{bad\n", "null\n", `${head}\n`, head, `${head}\r\n`, `${JSON.stringify({ ...HEADER, id: 7 })}\n`, `${JSON.stringify({ ...HEADER, id: undefined })}\n`, `{"type":"other"}\n${head}\n`, `[]\n${head}\n`,
		`5\n${head}\n`, `0\n${head}\n`, `-0.0\n${head}\n`, `""\n${head}\n`, `{bad\n\n${head}\n`, `${head}${head}\n`, `${head.slice(0, -1)}\n`, `${head}\n${JSON.stringify({ ...HEADER, id: "second", version: 1 })}\n`, ` ${head} \n`, `\u00a0${head}\n`, `\u0000${head}\n`,
	]);
	const lines = start.endsWith("\n") && maybe(0.6) ? made.lines : [];
	return { text: start + lines.map((line) => `${line}\n`).join(""), ids: made.ids };
}

/** The text of an input file for a case: mostly version 3. */
function input(kind) {
	if (kind === "broken") return broken();
	if (kind === "peculiar") return peculiar();
	const odd = kind !== "calm";
	if (kind === "old") {
		const version = 1 + below(2);
		const made = file({ odd: maybe(0.5), version, most: 14 });
		const spelled = version === 1 ? one([undefined, undefined, 1, null, "1", 1.5, 0, -3, "", false]) : one([2, 2, 2, "2", 2.5, " 2 ", 2.999]);
		const head = { ...HEADER, version: spelled };
		if (spelled === undefined) delete head.version;
		const lines = [JSON.stringify(head), ...made.lines];
		if (maybe(0.1)) lines.splice(1 + below(lines.length), 0, JSON.stringify({ ...HEADER, id: "second", version: one([1, 2, 3]) }));
		if (maybe(0.1)) lines.unshift(one(["", "{bad", "null"]));
		return { text: joined(lines, odd), ids: version === 2 ? made.ids : [] };
	}
	const made = file({ odd });
	const lines = [JSON.stringify(header(odd)), ...made.lines];
	if (odd && maybe(0.05)) lines.splice(1 + below(lines.length), 0, JSON.stringify({ ...HEADER, id: "second", cwd: "/second" }));
	if (odd && maybe(0.05)) lines.unshift(one(["", "{bad", "null", "  ", "[]", "{\"type\":\"other\"}", "5"]));
	return { text: joined(lines, odd), ids: made.ids };
}

function load(name, kind) {
	const dir = mkdtempSync(join(tmpdir(), "sessions-"));
	const { text: content, avoid } = input(kind);
	const path = join(dir, "session.jsonl");
	writeFileSync(path, content);
	const bytes = readFileSync(path);
	const cwdOverride = one([null, "/work/demo", "/work/demo"]);
	const expected = { name, title: `generated: ${kind}`, rules: [], kind: "load", open: { cwdOverride } };
	let result;
	try {
		sm = SessionManager.open(path, undefined, cwdOverride ?? undefined);
		result = stated({ transform: true, prepareCompaction: true, branchSummary: drawn.length === 0, avoid, extra: kind === "calm" });
	} catch (error) {
		result = { error: code(error) };
	}
	const after = readFileSync(path);
	result.fileAfterLoad = after.equals(bytes) ? "unchanged" : fileValue(after);
	write(name, bytes, { ...expected, ...normaliser(dir)(result) });
	rmSync(dir, { recursive: true });
}

const given = (list) => list.map((v) => (v === undefined ? "@undefined" : v));
const unplaced = (list) => list.map((v) => (v === "@undefined" ? undefined : v));

function ops(name, kind) {
	const dir = mkdtempSync(join(tmpdir(), "sessions-"));
	const path = join(dir, "session.jsonl");
	const { text: content, ids, avoid = [] } = kind === "none" ? { text: "", ids: [] } : input(kind);
	if (kind !== "none") writeFileSync(path, content);
	const bytes = Buffer.from(content);
	const steps = [];
	sm = undefined;
	halves = false;
	let known = [...ids];
	const fileLines = () => {
		const at = sm.getSessionFile();
		return at && existsSync(at) ? fileValue(readFileSync(at)).lines.length : null;
	};
	function step(op, args, perform) {
		const made = { op, args: given(args) };
		try {
			const result = perform(...args);
			if (result !== undefined) made.returns = result;
		} catch (error) {
			made.throws = code(error);
		}
		if (sm) {
			made.leaf = sm.getLeafId() ?? null;
			made.fileLines = fileLines();
		}
		// As it is now: pi goes on changing what it gave.
		steps.push(JSON.parse(JSON.stringify(made)));
		return made;
	}
	const method = (op, ...args) => step(op, args, (...a) => sm[op](...a));
	const start = {
		open: () => step("open", [], () => void (sm = SessionManager.open(path, undefined, "/work/demo"))),
		create: () => step("create", maybe(0.3) ? [{ id: one(["my-id.1", "-bad", "ok"]) }] : [], (options) => (sm = SessionManager.create("/work/demo", dir, options)).getSessionFile()),
		forkFrom: () => step("forkFrom", [undefined, "/work/other", maybe(0.2) ? { id: one(["my-id.1", "bad-", "a"]) } : undefined], (_, cwd, options) => (sm = SessionManager.forkFrom(path, cwd, join(dir, "forked"), options)).getSessionFile()),
		inMemory: () => {
			const old = maybe(0.2);
			const parsed = parseSessionEntries(input(old ? "old" : "calm").text).filter((e) => e);
			const entries = maybe(0.7) ? parsed.slice(old || maybe(0.5) ? 0 : 1) : maybe(0.3) ? [] : undefined;
			known = entries ? entries.map((e) => e.id).filter((id) => id !== "fixture-session-01") : [];
			return step("inMemory", [undefined, entries], (options, list) => void (sm = SessionManager.inMemory("/work/demo", options, structuredClone(list))));
		},
	};
	start[kind === "none" ? one(["create", "create", "inMemory"]) : maybe(0.25) ? "forkFrom" : "open"]();
	if (sm) {
		known = sm.getEntries().map((e) => e.id);
		step("getEntries", [], () => known); // names the ids that a migration drew
		known = known.filter((id) => typeof id === "string" && !avoid.includes(id));
		const draw = () => (known.length === 0 || maybe(0.07) ? "ghost" : maybe(0.6) ? known[Math.max(0, known.length - 1 - below(6))] : one(known));
		const adds = (made) => {
			if (made.returns !== undefined && made.throws === undefined) known.push(typeof made.returns === "string" ? made.returns : made.returns.id);
		};
		const choices = [
			() => adds(method("appendMessage", message(roles(false), false))), () => adds(method("appendMessage", message(roles(false), false))), () => adds(method("appendMessage", message(roles(false), false))),
			() => adds(method("appendThinkingLevelChange", one(["off", "high"]))), () => adds(method("appendModelChange", "lantern", "lantern-large")),
			() => { const made = method("appendUsage", "cache_warm", "lantern", "lantern-small", usage(), one([undefined, "why", ""])); if (made.throws === undefined) { known.push(made.returns.id); steps.at(-1).returns = made.returns.id; } },
			() => adds(method("appendCustomEntry", "st", one([undefined, { a: 1, 2: 0 }, null, "x"]))), () => adds(method("appendSessionInfo", one(["Name", "  one\r\n\ntwo  ", "", "\u00a0x\ufeff"]))),
			() => adds(method("appendCustomMessageEntry", "note", maybe(0.5) ? text() : blocks(textBlock, image), maybe(0.5), one([undefined, { k: 1 }, null]))),
			() => adds(method("appendContextEdit", draw(), one([null, { content: text() }, { content: blocks(textBlock) }, { content: 5 }, {}, "x", undefined, { content: null }, { content: "kept", more: 1 }, []]))),
			() => adds(method("appendContextEdit", draw(), one([null, { content: text() }, { content: blocks(textBlock) }]))),
			() => adds(method("appendLabelChange", draw(), one(["lab", undefined, "", "l2"]))), () => adds(method("appendLabelChange", draw(), one(["lab", "l2"]))),
			() => adds(method("appendCompaction", one(["Sum", ""]), one([null, draw(), undefined]), one([77, 0]), one([undefined, { readFiles: [path_()], modifiedFiles: [] }, null]), one([undefined, false, true]), one([undefined, usage()]))),
			() => method("branch", draw()), () => method("branch", draw()), () => maybe(0.3) && method("resetLeaf"),
			() => adds(method("branchWithSummary", one([draw(), draw(), null]), one(["BS", "", text()]), one([undefined, { readFiles: [] }]), one([undefined, true, false]), one([undefined, usage()]))),
			() => step("getBranch", maybe(0.5) ? [] : [draw()], (id) => sm.getBranch(id).map((e) => e.id)), () => step("getChildren", [one([null, draw()])], (id) => sm.getChildren(id).map((e) => e.id)),
			() => step("getEntry", [draw()], (id) => sm.getEntry(id) ?? null), () => step("getLeafEntry", [], () => sm.getLeafEntry()?.id ?? null), () => step("getLabel", [draw()], (id) => sm.getLabel(id) ?? null),
			() => step("getSessionName", [], () => sm.getSessionName() ?? null), () => step("getSessionId", [], () => sm.getSessionId()), () => step("getEntryCount", [], () => sm.getEntryCount()), () => step("getEntries", [], () => sm.getEntries().map((e) => e.id)),
			() => step("usesDefaultSessionDir", [], () => sm.usesDefaultSessionDir()), () => step("isPersisted", [], () => sm.isPersisted()), () => step("getCwd", [], () => sm.getCwd()), () => step("getLeafId", [], () => sm.getLeafId() ?? null),
			() => step("buildSessionProjection", [], () => sm.buildSessionProjection()), () => step("buildSessionContext", [], () => sm.buildSessionContext()),
			() => step("getTree", [], () => tree(sm.getTree())), () => step("getHeader", [], () => sm.getHeader()), () => step("buildContextEntries", [], () => sm.buildContextEntries().map((e) => e.id)),
			() => step("contextAt", one([[], [null], [draw()], [draw()]]), (...a) => buildSessionContext(sm.getEntries(), ...a)), () => step("contextEntriesAt", one([[], [null], [draw()], [draw()]]), (...a) => buildContextEntries(sm.getEntries(), ...a).map((e) => e.id)),
			() => step("exportBranch", [], exportBranch), () => step("fileExists", [], () => { const at = sm.getSessionFile(); return at ? existsSync(at) : false; }),
			() => { if (maybe(0.5)) { const made = method("createBranchedSession", draw()); if (made.throws === undefined) known = sm.getEntries().map((e) => e.id).filter((id) => !avoid.includes(id)); } },
			() => { if (sm.getSessionFile() && existsSync(sm.getSessionFile()) && maybe(0.4)) step("reopen", [], () => void (sm = SessionManager.open(sm.getSessionFile(), undefined, sm.getCwd()))); },
			// Ids that collide, up to and beyond the hundredth draw (S13).
			() => {
				if (!maybe(0.2)) return;
				const uuid = `${hex(8)}-0000-4000-8000-${hex(12)}`;
				for (const times of [1, one([1, 2, 3, 99, 100, 101])]) {
					step("forceUuids", [Array.from({ length: times }, () => uuid)], (list) => void forced.push(...list));
					adds(method("appendSessionInfo", "forced"));
				}
			},
			() => { if (sm.isPersisted() && maybe(0.3)) step("findById", ["/work/demo", one(["fixture-session-01", "ghost", step("getSessionId", [], () => sm.getSessionId()).returns]), dir], (...a) => SessionManager.findById(...a) ?? null); },
			() => { if (sm.isPersisted() && maybe(0.2)) { const at = join(dir, one(["new.jsonl", "other.jsonl"])); step("setSessionFile", [at], (p) => sm.setSessionFile(p)); known = sm.getEntries().map((e) => e.id); } },
			() => { if (sm.isPersisted() && maybe(0.15)) { const at = join(dir, "other.jsonl"); step("writeFile", [at, one(["", JSON.stringify({ ...HEADER, id: "other" }) + "\n", JSON.stringify({ ...HEADER, id: "other" }), ])], (p, t) => writeFileSync(p, t)); step("setSessionFile", [at], (p) => sm.setSessionFile(p)); known = sm.getEntries().map((e) => e.id); } },
			() => step("parseSessionEntries", [input("calm").text.split("\n").slice(0, 3).join(one(["\n", "\n\n", "\nbad\n"]))], (t) => parseSessionEntries(t).map((e) => e.id)),
			() => { if (maybe(0.15)) { step("newSession", one([[], [{ id: "fresh" }], [{ parentSession: "/p.jsonl" }]]), (options) => sm.newSession(options)); known = []; } },
		];
		for (let n = 3 + below(14); n > 0; n--) one(choices)();
	}
	const expected = { name, title: `generated: ${kind}`, rules: [], kind: "ops", input: kind === "none" ? "none" : "file", steps };
	if (sm) {
		Object.assign(expected, { after: stated({}), sessionFile: sm.getSessionFile() ?? null, persisted: sm.isPersisted() });
	}
	expected.files = filesBelow(dir);
	const place = normaliser(dir);
	write(name, bytes, place(expected));
	rmSync(dir, { recursive: true });
}
const path_ = path;
function exportBranch() {
	let parentId = null;
	const lines = [JSON.stringify({ type: "session", version: 3, id: sm.getSessionId(), timestamp: iso, cwd: sm.getCwd() })];
	for (const e of sm.getBranch()) {
		lines.push(JSON.stringify({ ...e, parentId }));
		parentId = e.id;
	}
	return `${lines.join("\n")}\n`.split("\n");
}

async function dir(name) {
	const base = mkdtempSync(join(tmpdir(), "sessions-"));
	const at = join(folder, `${name}.dir`);
	mkdirSync(at, { recursive: true });
	const files = [];
	for (let n = 1 + below(8); n > 0; n--) {
		const stem = one(["a", "B", "b", "a-1", "a_1", "a.b", "Zed", "é", "Ω", "2025-01-15T09-00-00-000Z_x", "2025-01-15T09-00-00-000Z_X", "10", "9", "ab", "A b"]) + (maybe(0.5) ? below(3) : "");
		const fileName = stem + one([".jsonl", ".jsonl", ".jsonl", ".jsonl", ".jsonl", ".txt", ".JSONL"]);
		if (files.some((f) => f.name.toLowerCase() === fileName.toLowerCase())) continue;
		const odd = maybe(0.6);
		const made = file({ odd, most: 8 });
		const head = { ...HEADER, id: one(["one", "two", "three", stem, stem, stem]), cwd: one(["/work/demo", "/work/demo", "/work/demo", "/work/demo/", "/work/x/../demo", "/work/other", "", null, "work/demo"]), timestamp: one(["2025-01-15T09:00:00.000Z", "2025-01-15T09:00:50.000Z", "bad", "", 5, null, "2025-01-15"]) };
		if (maybe(0.1)) head.parentSession = one(["/work/p.jsonl", ""]);
		if (odd && maybe(0.15)) delete head[one(["id", "cwd", "timestamp", "version", "type"])];
		if (odd && maybe(0.05)) head.id = "";
		if (odd && maybe(0.03)) head.pad = "p".repeat(one([4000, 4096, 1048000, 1048576, 1100000]));
		const lines = [JSON.stringify(head), ...made.lines];
		if (odd && maybe(0.15)) lines.unshift(one(["", "{bad", "null", "\u00a0", "{}", "[]", "x".repeat(one([10, 1048500, 1048600]))]));
		const content = maybe(0.03) ? "" : joined(lines, odd);
		const mtime = one([1700000000, 1800000000, 1500000000, 1736931000]) + (maybe(0.7) ? below(1000) : 0);
		writeFileSync(join(at, fileName), content);
		writeFileSync(join(base, fileName), content);
		utimesSync(join(base, fileName), mtime, mtime);
		files.push({ name: fileName, mtime });
	}
	const show = (info) => ({ ...info, path: info.path, name: info.name ?? null, parentSessionPath: info.parentSessionPath ?? null });
	const results = {};
	results.list = (await SessionManager.list("/work/demo", base)).map(show);
	results.listAll = (await SessionManager.listAll(base)).map(show);
	const found = SessionManager.findById("/work/demo", "one", base);
	if (found) results.byId = found;
	const names = readdirSync(base);
	try {
		const recent = SessionManager.continueRecent("/work/demo", base).getSessionFile();
		results.picked = names.includes(recent.slice(base.length + 1)) ? recent : null;
	} catch (error) {
		code(error);
	}
	const expected = { name, title: "generated: dir", rules: [], kind: "dir", files, results };
	writeFileSync(join(folder, `${name}.expected.json`), JSON.stringify(normaliser(base)(expected)));
	rmSync(base, { recursive: true });
}

/** Pieces of error texts that mean something (S247, S249), and some that do not. */
const PIECES = [
	"overloaded", "server_busy", "rate limit", "rate_limit", "ratelimit", "too many requests", "429", "500", "503", "524", "529", "service unavailable", "service is temporarily unavailable", "server error", "internal error",
	"internal_error", "provider returned error", "provider returned an error", "upstream request failed", "network error", "network_error", "connection refused", "connection lost", "connection closed", "other side closed",
	"fetch failed", "request to x failed, reason: y", "getaddrinfo", "ECONNRESET", "xECONNRESET", "EPIPE", "ENOTFOUND", "socket hang up", "timed out", "time out", "timeout", "terminated", "websocket closed", "ended without",
	"retry delay", "please retry your request", "ResourceExhausted", "quota exceeded", "insufficient_quota", "billing", "available balance", "{\"code\":1308}", "\"code\": \"1308\"", "out of budget", "http2 stream failed", "http/2 stream failed",
	"prompt is too long", "prompt too long", "prompt exceeds max length", "request_too_large", "input is too long for requested model", "exceeds the context window", "exceeds the model's maximum context length of 5 tokens",
	"exceeds maximum context length of 1,000 tokens", "exceeds model's maximum context length (1,000)", "context window exceeded", "input token count (7) exceeds the maximum", "maximum prompt length is 9", "reduce the length of the messages",
	"maximum context length is 8 tokens", "exceeds the maximum allowed input length of 4,096 tokens", "the input (7 tokens) is longer than the model's context length (5 tokens)", "exceeds the limit of 5", "exceeds the available context size",
	"greater than the context length", "context window exceeds limit", "exceeded model token limit", "too large for model with 5 maximum context length", "prompt has 5 tokens, but the configured context size is 4 tokens",
	"model_context_window_exceeded", "range of input length should be", "context_length_exceeded", "context length exceeded", "too many tokens", "token limit exceeded", "413", "413: x", "Some API error (413): x", "400 (no body)",
	"413 status code (no body)", "Throttling error:", "Service unavailable:", "no idea", "bad request", "model not found",
];
const mixed = (t) => (maybe(0.15) ? t.toUpperCase() : maybe(0.1) ? t.replaceAll(" ", one(["_", "-", "", "  ", "\n"])) : t);
const errorText = () => Array.from({ length: 1 + below(3) }, () => mixed(one(PIECES))).join(one([" ", ": ", "", ", ", "\n", "x"]));
const setting = () => one([0, 1, 5, 16384, -1, 1.5, "9", null, 2 ** 53, 1e21, true, ABSENT]);
function settings() {
	const numbers = (...keys) => object(Object.fromEntries(keys.map((key) => [key, maybe(0.4) ? one([1, 5, 2000]) : ABSENT])));
	return object({
		compaction: maybe(0.6) ? object({ enabled: one([ABSENT, true, false]), reserveTokens: setting(), keepRecentTokens: maybe(0.5) ? ABSENT : setting(), modelOverrides: maybe(0.5) ? object({ "lantern/big": maybe(0.2) ? 5 : object({ reserveTokens: setting(), keepRecentTokens: setting() }) }) : ABSENT }) : ABSENT,
		retry: maybe(0.5) ? object({ enabled: one([ABSENT, true, false]), ...numbers("maxRetries", "baseDelayMs", "maxAgentDelayMs", "maxDelayMs"), provider: maybe(0.4) ? numbers("maxRetryDelayMs", "maxRetries") : ABSENT }) : ABSENT,
		branchSummary: maybe(0.3) ? object({ ...numbers("reserveTokens"), skipPrompt: one([ABSENT, true]) }) : ABSENT, queueMode: maybe(0.2) ? one(["all", "one-at-a-time"]) : ABSENT, steeringMode: maybe(0.2) ? one(["all", "one-at-a-time"]) : ABSENT, followUpMode: maybe(0.2) ? "all" : ABSENT,
	});
}
function table(name) {
	halves = false;
	const rows = {
		errors: () => {
			const text = errorText();
			const failed = (provider) => ({ role: "assistant", stopReason: "error", errorMessage: text, provider, usage: usage() });
			return { text, overflow: isContextOverflow(failed("lantern")), overflowForCerebras: isContextOverflow(failed("cerebras")), retryable: isRetryableAssistantError(failed("lantern")) };
		},
		overflow: () => {
			const contextWindow = one([0, 100, 120, 121, 122, 150]);
			const response = { ...message("assistant", false), stopReason: one(["stop", "length", "error", "toolUse"]), ...some(0.5, "errorMessage", errorText), usage: { ...usage(), output: one([0, 3]), cacheRead: one([0, 1, 30]) } };
			return { message: response, contextWindow, overflow: isContextOverflow(response, contextWindow) };
		},
		lengths: () => {
			const response = { ...message("assistant", false), stopReason: one(["length", "stop"]), usage: { ...usage(), output: one([0, 30, 31]) } };
			const maxTokens = one([0, 30, 31, 32]);
			return { message: response, maxTokens, recoverable: isRecoverableLength(response, maxTokens) };
		},
		sums: () => {
			const [a, b] = [usage(), usage()].map((u) => (maybe(0.3) ? { ...u, cost: { ...u.cost, totalFromProvider: maybe(0.7) } } : u));
			return { a, b, sum: combineUsage(a, b) };
		},
		totals: () => {
			const ids = Array.from({ length: below(12) }, (_, n) => `e${n}`);
			const entries = ids.map((_, n) => entry(n, ids, false));
			const breakdown = getUsageCostBreakdown(entries);
			// What costs the same may stand in either order.
			if (new Set(breakdown.map((group) => group.cost)).size < breakdown.length) return { a: usage(), b: usage(), sum: ABSENT };
			const totals = createUsageTotals();
			for (const e of entries) {
				const spent = e.type === "message" ? ["assistant", "toolResult"].includes(e.message.role) && e.message.usage : ["usage", "compaction", "branch_summary"].includes(e.type) && e.usage;
				if (spent) addUsageToTotals(totals, spent);
			}
			return { entries, totals, breakdown };
		},
		settings: () => {
			const given = settings();
			const model = one([null, { provider: "lantern", id: "big" }, { provider: "lantern", id: "Big" }]);
			const manager = SettingsManager.inMemory(structuredClone(given));
			const row = { settings: given, model };
			try {
				row.compaction = manager.getCompactionSettings(model ?? undefined);
			} catch {
				return { ...row, invalid: true };
			}
			return { ...row, steeringMode: manager.getSteeringMode(), followUpMode: manager.getFollowUpMode(), retry: manager.getRetrySettings(), branchSummary: manager.getBranchSummarySettings(), providerMaxRetryDelayMs: manager.getProviderRetrySettings().maxRetryDelayMs };
		},
	};
	const kind = one(Object.keys(rows));
	const results = Array.from({ length: 12 }, rows[kind]).filter((row) => row.sum !== ABSENT);
	const expected = { name, title: `generated: ${kind}`, rules: [], kind: "table", results: results.length > 0 ? results : [{ a: usage(), b: usage(), sum: combineUsage(usage(), usage()) }].slice(1) };
	writeFileSync(join(folder, `${name}.expected.json`), JSON.stringify(expected));
}

mkdirSync(folder, { recursive: true });
const kinds = {
	"load-calm": (name) => load(name, "calm"), "load-odd": (name) => load(name, "odd"), "load-old": (name) => load(name, "old"), "load-peculiar": (name) => load(name, "peculiar"), "load-broken": (name) => load(name, "broken"),
	"ops-calm": (name) => ops(name, "calm"), "ops-odd": (name) => ops(name, "odd"), "ops-old": (name) => ops(name, "old"), "ops-none": (name) => ops(name, "none"), "ops-peculiar": (name) => ops(name, "peculiar"), "ops-broken": (name) => ops(name, "broken"),
	dir: (name) => dir(name), table: (name) => table(name),
};
for (let seed = Number(firstSeed); seed < Number(firstSeed) + Number(count); seed++) {
	const names = only ? only.split(",") : Object.keys(kinds);
	const kind = names[seed % names.length];
	state = Math.imul(seed, 0x9e3779b1);
	below(1);
	drawn = [];
	forced = [];
	halves = true;
	try {
		await kinds[kind](`${kind}-${String(seed).padStart(6, "0")}`);
	} catch (error) {
		console.error(`seed ${seed}, ${kind}:`, error);
		process.exit(1);
	}
}

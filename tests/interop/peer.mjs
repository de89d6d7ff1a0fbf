// The real pi as a partner in tests: a session manager driven over stdin and stdout, one JSON object a line.
//
//   PI_ROOT=build/peer build/peer/node tests/interop/peer.mjs
//
//   {"do": "create", "cwd", "dir", "id"?}      a new session (it has no file before its first conversation message)
//   {"do": "open", "path", "dir"?}             an existing file
//   {"do": "fork", "path", "cwd", "dir"}       pi's forkFrom: the whole file copied into another project
//   {"do": "call", "method", "args"}           any of the methods below on the current session; gives its result
//   {"do": "state"}                            everything a reader can see of the current session
//   {"do": "list", "cwd", "dir"?}              the sessions of a directory
//   {"do": "agent", "dir"}                     another agent directory from now on
//   {"do": "listAll", "dir"?}                  the sessions of all working directories
//   {"do": "recent", "cwd", "dir"?}            the file that is gone on with; null when there is none
//   {"do": "find", "cwd", "id", "dir"?}        the file with a session id, or null
//
// Every request is answered by {"ok": true, "value"} or {"ok": false, "error"}. End of input ends the process.
import { existsSync } from "node:fs";
import { createInterface } from "node:readline";

const { SessionManager } = await import(`${process.env.PI_ROOT}/node_modules/@earendil-works/pi-coding-agent/dist/index.js`);

const METHODS = new Set([
	"appendMessage", "appendThinkingLevelChange", "appendModelChange", "appendUsage", "appendCompaction", "appendCustomEntry", "appendSessionInfo",
	"appendCustomMessageEntry", "appendContextEdit", "appendLabelChange", "branch", "resetLeaf", "branchWithSummary", "createBranchedSession", "newSession",
]);

let session;

/** The tree in preorder as rows [depth, id, label, label time]: paths are deeper than JSON parsers like to nest. */
function rows(roots) {
	const out = [];
	const stack = roots.map((n) => [n, 0]).reverse();
	while (stack.length) {
		const [n, depth] = stack.pop();
		out.push([depth, n.entry.id, n.label ?? null, n.labelTimestamp ?? null]);
		for (let i = n.children.length - 1; i >= 0; i--) stack.push([n.children[i], depth + 1]);
	}
	return out;
}

const state = () => ({
	file: session.getSessionFile(),
	header: session.getHeader(),
	leaf: session.getLeafId(),
	name: session.getSessionName() ?? null,
	count: session.getEntryCount(),
	entries: session.getEntries(),
	branch: session.getBranch().map((e) => e.id),
	tree: rows(session.getTree()),
	context: session.buildSessionContext(),
	// pi's own record of what each entry contributes, so that a difference names its entry
	sources: session.buildSessionProjection().entries.map((e) => [e.sourceEntry.id, e.messages.length]),
});

const actions = {
	create: ({ cwd, dir, id }) => void (session = SessionManager.create(cwd, dir, id && { id })),
	open: ({ path, dir }) => void (session = SessionManager.open(path, dir)),
	fork: ({ path, cwd, dir }) => void (session = SessionManager.forkFrom(path, cwd, dir)),
	call({ method, args = [] }) {
		if (!METHODS.has(method)) throw new Error(`no method ${method}`);
		return session[method](...args);
	},
	state,
	list: ({ cwd, dir }) => SessionManager.list(cwd, dir),
	agent: ({ dir }) => void (process.env.PI_CODING_AGENT_DIR = dir),
	listAll: ({ dir }) => SessionManager.listAll(dir),
	recent({ cwd, dir }) {
		const file = SessionManager.continueRecent(cwd, dir).getSessionFile();
		return existsSync(file) ? file : null;
	},
	find: ({ cwd, id, dir }) => SessionManager.findById(cwd, id, dir) ?? null,
};

for await (const line of createInterface({ input: process.stdin })) {
	let answer;
	try {
		const request = JSON.parse(line);
		answer = { ok: true, value: (await actions[request.do](request)) ?? null };
	} catch (e) {
		answer = { ok: false, error: String(e?.message ?? e) };
	}
	process.stdout.write(`${JSON.stringify(answer)}\n`);
}
process.exit(0);

// What every implementation words itself, in what pi says: replaced by {{NAME}}, so that the rest can be compared.
const words = await import(`${process.env.PI_ROOT}/node_modules/@earendil-works/pi-coding-agent/dist/core/messages.js`);

/** What an implementation words itself, as placeholders. */
export function neutral(text) {
	const swap = (from, name) => (text = text.split(from).join(`{{${name}}}`));
	swap(words.COMPACTION_SUMMARY_PREFIX, "COMPACTION_PREFIX");
	swap(words.BRANCH_SUMMARY_PREFIX, "BRANCH_PREFIX");
	if (/^\{\{COMPACTION_PREFIX\}\}/.test(text) && text.endsWith(words.COMPACTION_SUMMARY_SUFFIX))
		text = `${text.slice(0, -words.COMPACTION_SUMMARY_SUFFIX.length)}{{COMPACTION_SUFFIX}}`;
	if (/^\{\{BRANCH_PREFIX\}\}/.test(text) && text.endsWith(words.BRANCH_SUMMARY_SUFFIX))
		text = `${text.slice(0, -words.BRANCH_SUMMARY_SUFFIX.length)}{{BRANCH_SUFFIX}}`;
	return text
		.replace(/\n\n---\n\n\*\*[^\n]*\*\*\n\n/g, "\n\n---\n\n{{SPLIT_HEADING}}\n\n")
		.replace(/(^|\{\{COMPACTION_PREFIX\}\})No prior history\./g, "$1{{NO_HISTORY}}")
		.replace(/(^|\{\{BRANCH_PREFIX\}\})No content to summarize/g, "$1{{NOTHING_TO_SUMMARISE}}")
		.replace(/\{\{BRANCH_PREFIX\}\}[^\n]*\n[^\n]*\n\n/g, "{{BRANCH_PREFIX}}{{BRANCH_INTRO}}")
		.replace(/^Validation failed for tool[\s\S]*/, "{{VALIDATION_FAILURE}}")
		.replace(/^Tool call ".*" was not executed[\s\S]*/, "{{LENGTH_NOT_EXECUTED}}")
		.replace(/^Could not find[\s\S]*|^Edit tool input is invalid[\s\S]*/, "{{EDIT_FAILURE}}")
		.replace(/ failed: (Turn prefix s|S)ummarization (failed: (generation hit|Unknown error)[^]*|failed: |[^]*)/, " failed: {{SUMMARY_FAILURE}}")
		.replace(/ failed: Already compacted$/, " failed: {{ALREADY_COMPACTED}}")
		.replace(/: Nothing to compact[\s\S]*/, ": {{NOTHING_TO_COMPACT}}")
		.replace(/^Context overflow recovery failed after one[\s\S]*/, "{{OVERFLOW_RECOVERY_EXHAUSTED}}")
		.replace(/^Truncated response recovery failed after one[\s\S]*/, "{{LENGTH_RECOVERY_EXHAUSTED}}");
}

/** Applies `neutral` to every string of a value. */
export function neutralised(value) {
	if (typeof value === "string") return neutral(value);
	if (Array.isArray(value)) return value.map(neutralised);
	if (value === null || typeof value !== "object") return value;
	const out = Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, neutralised(inner)]));
	const summary = out.type === "branch_summary" || out.role === "branchSummary";
	if (summary) out.summary = out.summary.replace(/^[^\n]*\n[^\n]*\n\n/, "{{BRANCH_INTRO}}");
	return out;
}

/** A request for a summary without its instructions. */
export function summaryParts(text) {
	const part = (pattern) => text.match(pattern)?.[1] ?? null;
	const conversation = part(/^<conversation>\n([\s\S]*?)\n<\/conversation>\n\n/);
	const prefix = part(/^# Conversation\n([\s\S]*?)\n\n# Instructions\n/);
	const told = (conversation ?? prefix)?.replace(
		/^\[Tool result\]: (Could not find|Edit tool input is invalid|Tool call "[^"\n]*" was not executed)[^\n]*/gm,
		"[Tool result]: {{TOOL_FAILURE}}",
	);
	return {
		form: conversation !== null ? "conversation" : prefix !== null ? "turn prefix" : "other",
		conversation: told ?? null,
		previous: part(/<previous-summary>\n([\s\S]*?)\n<\/previous-summary>\n\n/),
		focus: part(/\n\nAdditional focus: ([\s\S]*)$/),
	};
}

// The real pi as a partner in tests of what people write for their models: texts, files and names go in, what pi makes of
// them comes out. One JSON object a line on stdin, one on stdout; end of input ends the process.
//
//   PI_ROOT=build/peer build/peer/node tests/interop/resources.mjs
//
//   {"do": "arguments", "text"}                   arguments of a prompt template
//   {"do": "substitute", "text", "arguments"}     a template's text with them
//   {"do": "expand", "text", "name", "content"}   a prompt, with one template there is
//   {"do": "document", "text"}                    frontmatter and body
//   {"do": "value", "text", "variables"}          a configured value
//   {"do": "skills", "dir"}                       skills below a directory
//   {"do": "context", "cwd", "agentDir"}          paths of context files
//   {"do": "discover", "cwd", "agentDir", "trusted"}   skills, templates and prompt files of the usual places and settings
//   {"do": "model", "models", "usable", "text"}   the model a text means
//   {"do": "scope", "models", "patterns"}         the models patterns mean
//   {"do": "store", "file", "provider", "key"}    a key stored in auth.json
//   {"do": "stored", "file", "provider"}          what is stored there
//   {"do": "models", "file"}                      models of the providers "p" and "q" by models.json, and the places it finds wrong
//
// Every request is answered by {"ok": true, "value"} or {"ok": false, "error"}.
import { createInterface } from "node:readline";

const core = `${process.env.PI_ROOT}/node_modules/@earendil-works/pi-coding-agent/dist`;
const { expandPromptTemplate, parseCommandArgs, substituteArgs } = await import(`${core}/core/prompt-templates.js`);
const { resolveModelReference, resolveModelScopeFromModels } = await import(`${core}/core/model-resolver.js`);
const { resolveConfigValueUncached } = await import(`${core}/core/resolve-config-value.js`);
const { AuthStorage } = await import(`${core}/core/auth-storage.js`);
const { ModelRuntime } = await import(`${core}/core/model-runtime.js`);
const { DefaultResourceLoader, SettingsManager, loadProjectContextFiles, loadSkills, parseFrontmatter } = await import(`${core}/index.js`);
process.removeAllListeners("warning");
process.on("warning", () => {});

const full = (model) => `${model.provider}/${model.id}`;

const answers = {
	arguments: ({ text }) => parseCommandArgs(text),
	substitute: (it) => substituteArgs(it.text, it.arguments),
	expand: (it) => expandPromptTemplate(it.text, [{ name: it.name, description: "", content: it.content, filePath: "x" }]),
	document: ({ text }) => {
		const { frontmatter, body } = parseFrontmatter(text);
		return { frontmatter, body };
	},
	value: (it) => resolveConfigValueUncached(it.text, it.variables) ?? null,
	skills: ({ dir }) => {
		const found = loadSkills({ cwd: dir, agentDir: `${dir}/none`, skillPaths: [dir], includeDefaults: false });
		return {
			skills: found.skills.map((it) => [it.name, it.description, it.filePath, it.disableModelInvocation]),
			problems: found.diagnostics.map((it) => `${it.path} ${it.type}`).sort(),
		};
	},
	context: (it) => loadProjectContextFiles(it).map((file) => file.path),
	discover: async ({ cwd, agentDir, trusted }) => {
		const settingsManager = SettingsManager.create(cwd, agentDir, { projectTrusted: trusted });
		const loader = new DefaultResourceLoader({ cwd, agentDir, settingsManager, noExtensions: true, noThemes: true, noContextFiles: true });
		await loader.reload();
		return {
			skills: loader.getSkills().skills.map((it) => [it.name, it.filePath]),
			templates: loader.getPrompts().prompts.map((it) => [it.name, it.filePath]),
			prompt: loader.getSystemPrompt() ?? null,
			behind: loader.getAppendSystemPrompt(),
		};
	},
	model: (it) => {
		const found = resolveModelReference({ text: it.text, thinkingSuffix: "strict", fuzzy: true }, it.models, (provider) => it.usable.includes(provider));
		if (found.status === "resolved") return [full(found.model), found.thinkingLevel ?? null];
		return found.status;
	},
	scope: (it) => resolveModelScopeFromModels(it.patterns, it.models).scopedModels.map((it) => [full(it.model), it.thinkingLevel ?? null]),
	store: async (it) => {
		await AuthStorage.create(it.file).modify(it.provider, async () => ({ type: "api_key", key: it.key }));
		return null;
	},
	stored: async (it) => (await AuthStorage.create(it.file).read(it.provider)) ?? null,
	models: async (it) => {
		const options = { modelsPath: it.file, authPath: `${it.file}.auth`, modelsStorePath: `${it.file}.store`, refreshOnCreate: false };
		const runtime = await ModelRuntime.create(options);
		const shown = (model) => [full(model), model.name, model.api, model.baseUrl, model.reasoning, model.input, model.contextWindow, model.maxTokens, model.cost.input];
		const error = runtime.getError();
		// One line for each complaint; a place may have several.
		const faults = [...(error ?? "").matchAll(/^ {2}- (.*?): /gm)].map((it) => it[1]);
		return { models: [...runtime.getModels("p"), ...runtime.getModels("q")].map(shown), error: error !== undefined, faults };
	},
};

for await (const line of createInterface({ input: process.stdin })) {
	let answer;
	try {
		const request = JSON.parse(line);
		answer = { ok: true, value: await answers[request.do](request) };
	} catch (error) {
		answer = { ok: false, error: String(error?.message ?? error) };
	}
	process.stdout.write(`${JSON.stringify(answer)}\n`);
}
process.exit(0);

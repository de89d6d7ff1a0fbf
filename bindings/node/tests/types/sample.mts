// Compiled, never run: the declarations as a host meets them. A line below `@ts-expect-error` must not compile.
import { BranchlineError, Budget, Engine, Replay, Session, Toolbox, listSessions, tool, type HostAnswer, type KeySource, type Message, type SessionEvent } from 'branchline'

const controller = new AbortController()
await using session = await Session.create({ cwd: '.', model: 'scripted/demo', durability: 'turn' })
const { text, usage, stopReason, leaf, messages } = await session.run('Hello', { signal: controller.signal })
const facts: [string, number, string | null, string | null, Message[]] = [text, usage.cost.total, stopReason, leaf, messages]

// The event's type tells its fields.
for await (const event of session.prompt('Again')) {
  if (event.type === 'message_update' && event.assistantMessageEvent.type === 'text_delta') {
    process.stdout.write(event.assistantMessageEvent.delta)
  }
  if (event.type === 'tool_execution_end') console.log(event.toolName, event.isError, event.sequence)
  if (event.type === 'message_end' && event.message.role === 'assistant') console.log(event.message.usage.output)
  // @ts-expect-error only tool events have a toolName
  event.toolName
}

function show(event: SessionEvent): string {
  switch (event.type) {
    case 'queue_update':
      return event.steering.join()
    case 'agent_settled':
      return String(event.aborted)
    default:
      return event.type
  }
}

for await (const event of session.events({ capacity: 16, signal: controller.signal })) show(event)

const entry = session.entry('0123abcd')
if (entry?.type === 'message' && entry.message.role === 'user') facts.push(entry.id)
const path: string[] = session.tree.branch(session.leaf)
for (const node of session.tree.walk()) console.log(' '.repeat(node.depth), node.type, node.label ?? '')
const bytes: Buffer | undefined = session.tree.raw('0123abcd')

const { editorText } = await session.navigate(path[0] ?? '', { label: 'here' })
const fork = await session.fork(path[0] ?? '', { position: 'at' })
const other: Session = fork.session
await (await other.clone()).close()
const id: string = await session.setLabel(path[0] ?? '', null)

const budget = new Budget({ requests: 5, cost: 0.5 })
await using careful = await Session.create({
  permissions: { preset: 'workspace', tools: { bash: 'deny' }, effects: { write: 'ask' }, root: ['src'], handler: async (request) => request.command === undefined },
  toolHooks: [{ before: (call) => (call.name === 'bash' ? 'no' : undefined), after: (_, result) => ({ isError: !result.isError }) }],
  budget,
})
budget.limits = { ...budget.limits, requests: budget.used.requests + 1 }
await Session.create({ permissions: (request) => ({ decision: 'allowAlways', scope: { below: request.cwd } }) })
console.log((await careful.runBash('ls', { id: 'a' })).exitCode)

const sibling: Session = await session.branch(null, { model: 'scripted/demo', tools: ['read'] })
const exploration = session.explore(['a', { text: 'b', thinkingLevel: 'high' }], { at: path[0], limit: 2, signal: controller.signal })
for await (const event of exploration) console.log(event.sibling, event.type)
const [best] = await exploration.results()
if (best?.isComplete) await session.adopt(best, { summarizeOthers: true })
console.log(best?.error?.code, best?.session.isSiblingOf(sibling), (await session.compact('short')).entryId)
const { costs } = await session.stats()
const bash: string | null = await session.recordBash({ command: 'ls', output: costs[0]?.model ?? '' })
await session.sendCustomMessage({ customType: 'note', content: bash ?? '' }, { delivery: 'nextTurn' })

try {
  await Session.open('missing.jsonl', { readOnly: true })
} catch (error) {
  if (error instanceof BranchlineError && error.code === 'invalid_session_file') console.log(error.path, editorText)
}

await using engine = new Engine({ workerThreads: 1 })
engine.addScriptedModel('hello', [{ content: [{ type: 'text', text: 'Hello.' }] }])
for (const info of await listSessions({ cwd: '.', engine })) console.log(info.path, info.modified, bytes, id)

// Tools, built in and of one's own.
const weather = tool({
  name: 'weather',
  description: 'Current weather.',
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  async execute({ city }: { city: string }, { signal, progress }) {
    progress(`asking for ${city}`)
    return signal.aborted ? '' : { city, temperature: 21 }
  },
})
engine.addTool(weather)
await Session.create({ engine, tools: ['read', weather, { name: 'inline', execute: () => 'text' }] })
const tools = new Toolbox({ cwd: '.', tools: [weather] })
const found = await tools.grep('TODO', { path: 'src', limit: 20, signal: controller.signal, onProgress: (partial) => partial.text })
console.log(found.text, found.isError, found.structuredContent, (await tools.call(weather, { city: 'Kyiv' })).content.length)
await tools.edit('a.txt', [['old', 'new'], { oldText: 'a', newText: 'b' }], { check: false })
// @ts-expect-error no such option
await tools.grep('TODO', { directory: 'src' })
// @ts-expect-error a tool needs a function
tool({ name: 'nothing' })

// Models, keys, replay, resources.
const keySource: KeySource = async ({ provider, baseUrl }, { signal }) => (signal.aborted ? null : { key: provider + baseUrl, bearer: true })
await using configured = new Engine({
  keySource,
  keys: { anthropic: 'key' },
  models: { providers: { ollama: { baseUrl: 'http://localhost:11434/v1', api: 'openai-completions', models: [{ id: 'qwen3:8b', contextWindow: 32768 }] } } },
  network: { proxy: 'direct', idleTimeoutMs: null, headers: { 'X-Team': 'a' } },
  record: 'wire.jsonl',
})
const echo: HostAnswer = async function* (request, { signal }) {
  if (signal.aborted) return
  yield `You said ${request.messages.length} things.`
  yield { type: 'toolcall', name: request.tools[0]?.name ?? 'none', arguments: { a: 1 } }
  yield { type: 'usage', usage: { input: 1, output: 2 } }
}
configured.addHostProvider('ide', ['echo', { id: 'big', contextWindow: 1_000_000, input: ['text', 'image'] }], echo)
configured.addHostProvider('short', ['a'], async ({ systemPrompt }) => systemPrompt)
configured.addHostProvider('list', ['a'], () => ['a', { type: 'done' }])
configured.addHostProvider('silent', ['a'], () => {})
const level: string | null = configured.findModel('sonnet:high').thinkingLevel
configured.setKey('openai', null)
configured.setKeySource((request) => request.model)
console.log(level, configured.availableModels()[0]?.cost.output, configured.modelProblems()[0]?.message)
const replay: Replay = await configured.addReplay('recorded.jsonl', { name: 'cassette', compareToolResults: false })
const informed = await configured.createSession({
  model: replay.models[0]?.name ?? '',
  tools: [...replay.tools, 'read'],
  resources: { contextFiles: true, skills: ['skills'], discover: 'user', sections: [{ name: 'house', text: '' }] },
})
await informed.run('/fix', { expand: false, forcedPrompt: 'Be brief.' })
const { skills, diagnostics } = informed.resources
console.log(skills[0]?.description, diagnostics[0]?.fault, (await informed.reloadResources()).promptTemplates[0]?.argumentHint, replay.divergence?.at)
// @ts-expect-error no such option
new Engine({ builtinModel: false })
// @ts-expect-error no such event
configured.addHostProvider('bad', ['a'], () => ({ type: 'nonsense' }))
// @ts-expect-error no such option
await configured.createSession({ resources: { contextFile: true } })
// @ts-expect-error a key is a text
configured.setKey('openai', 5)

// @ts-expect-error sessions are made by Session.create and its like
new Session()
// @ts-expect-error a prompt is a text
session.prompt(1)
// @ts-expect-error no such preset
await Session.create({ permissions: 'yolo' })
// @ts-expect-error no such option
await Session.create({ directory: '.' })
// @ts-expect-error no such word
await session.setThinkingLevel('enormous')
// @ts-expect-error prompts are a list
session.explore('a')
// @ts-expect-error no such delivery
await session.sendCustomMessage({ customType: 'note', content: '' }, { delivery: 'never' })
// @ts-expect-error no such decision
await Session.create({ permissions: () => 'maybe' })
// @ts-expect-error no such limit
new Budget({ request: 1 })

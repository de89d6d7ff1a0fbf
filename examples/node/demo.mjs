// The tour of branchline in Node: a session with the built-in scripted model, its events, a second branch, a fork.
//
//   sh bindings/node/build.sh && node examples/node/demo.mjs

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Session, Toolbox } from '../../bindings/node/index.mjs'

const sessionDir = mkdtempSync(join(tmpdir(), 'branchline-demo-'))
const session = await Session.create({ sessionDir, model: 'scripted/demo', permissions: 'allow' })

const run = session.prompt('What is in this folder?')
for await (const event of run) {
  if (event.type === 'tool_execution_start') console.log(`\n  [${event.toolName} ${JSON.stringify(event.args)}]`)
  if (event.type !== 'message_update') continue
  const { type, delta } = event.assistantMessageEvent
  if (type === 'text_delta') process.stdout.write(delta)
}
const { stopReason, usage } = await run.result()
console.log(`\n  stopped: ${stopReason}, ${usage.totalTokens} tokens`)

// The tools as functions, without a model.
const tools = new Toolbox()
console.log(`\nREADME.md: ${(await tools.grep('^#', { path: 'README.md', limit: 3 })).text.split('\n')[0]}`)

// Back to before the question, and another one: a second branch in the same file.
const question = [...session.tree].find((entry) => entry.message?.role === 'user').id
const answer = session.leaf
const moved = await session.navigate(question)
console.log(`\nback at ${moved.leaf}; it was asked: ${moved.editorText}`)
const { text } = await session.run('And what would you read first?')
console.log(text)
await session.setLabel(question, 'first question')

// The first question with its answer, in a file of its own.
const { session: fork } = await session.fork(answer, { position: 'at' })
console.log(`\nfork: ${fork.path}\n`)

// The tree; only forks of the road are indented.
const indents = new Map()
for (const node of session.tree.walk()) {
  const among = node.parentId === null ? 1 : session.tree.children(node.parentId).length
  const indent = (indents.get(node.parentId) ?? 0) + (among > 1 ? 2 : 0)
  indents.set(node.id, indent)
  const label = node.label ? `  "${node.label}"` : ''
  const mark = node.id === session.leaf ? '  <- leaf' : ''
  console.log(`${' '.repeat(indent)}${node.id} ${node.role ?? node.type}${label}${mark}`)
}

await Promise.all([session.close(), fork.close()])
rmSync(sessionDir, { recursive: true })

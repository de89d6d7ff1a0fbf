// What a session knows of its project, and tells the model.

import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { directory, hosted } from './support.mjs'

function project(t) {
  const dir = directory(t)
  writeFileSync(join(dir, 'AGENTS.md'), 'Use tabs, never spaces.\n')
  mkdirSync(join(dir, 'skills', 'release'), { recursive: true })
  writeFileSync(join(dir, 'skills', 'release', 'SKILL.md'), '---\nname: release\ndescription: Makes a release.\n---\nRun the tests first.\n')
  mkdirSync(join(dir, 'skills', 'empty'))
  writeFileSync(join(dir, 'skills', 'empty', 'SKILL.md'), '---\nname: empty\n---\nNo description.\n')
  mkdirSync(join(dir, 'prompts'))
  writeFileSync(join(dir, 'prompts', 'fix.md'), '---\ndescription: Fixes it.\nargument-hint: FILE\n---\nFix $1 now: ${2:-all of it}.\n')
  return dir
}

/** A session that tells what its model was told. */
async function told(t, dir, resources) {
  const requests = []
  const answer = (request) => {
    requests.push(request)
    return 'ok'
  }
  const s = await hosted(t, answer, { dir, inMemory: true, tools: ['read'], resources })
  return { s, prompt: () => requests.at(-1).systemPrompt, asked: () => JSON.stringify(requests.at(-1).messages.at(-1).content) }
}

test('nothing is read by itself', async (t) => {
  const { s, prompt } = await told(t, project(t))
  await s.run('/fix a')
  assert.doesNotMatch(prompt(), /tabs|release/)
  assert.deepEqual([s.resources.contextFiles, s.resources.skills, s.resources.promptTemplates], [[], [], []])
})

test('context files, skills and templates', async (t) => {
  const dir = project(t)
  const resources = {
    contextFiles: true,
    skills: ['skills'],
    promptTemplates: ['prompts'],
    appendSystemPrompt: 'Answer in German.',
    guidelines: ['Never push.'],
    sections: [{ name: 'house', text: 'Our house.' }],
    extraContext: [{ path: 'note', content: 'From the host.' }],
  }
  const { s, prompt, asked } = await told(t, dir, resources)
  const known = s.resources
  assert.ok(known.contextFiles.some(({ path, content }) => path === join(dir, 'AGENTS.md') && content.includes('tabs')))
  assert.deepEqual(known.skills.map(({ name, description, path }) => [name, description, path]), [['release', 'Makes a release.', join(dir, 'skills', 'release', 'SKILL.md')]])
  const [template] = known.promptTemplates
  assert.deepEqual([template.name, template.description, template.argumentHint], ['fix', 'Fixes it.', 'FILE'])
  assert.ok(known.diagnostics.some(({ path, fault }) => path.includes('empty') && fault === 'warning'))

  await s.run('Hi')
  for (const text of ['Use tabs', 'Makes a release.', 'Answer in German.', 'Never push.', 'Our house.', 'From the host.']) assert.ok(prompt().includes(text), text)
  await s.run('/fix parser.js "the second error"')
  assert.match(asked(), /Fix parser\.js now: the second error\./)
  await s.run('/skill:release 1.4')
  assert.match(asked(), /Run the tests first\..*1\.4/)
  await s.run('/fix parser.js', { expand: false })
  assert.match(asked(), /"\/fix parser\.js"/)
})

test('a prompt forced for one run', async (t) => {
  // S305, P777: it is the whole system prompt of its run; the next run has the session's own again.
  const { s, prompt } = await told(t, project(t), { contextFiles: true })
  await s.run('Hi', { forcedPrompt: 'Speak like a pirate.' })
  assert.equal(prompt(), 'Speak like a pirate.')
  await s.run('Again')
  assert.match(prompt(), /Use tabs/)
  assert.doesNotMatch(prompt(), /pirate/)
  await assert.rejects(s.run('x', { forcedPrompt: 1 }), { code: 'invalid_argument' })
  // A message of the host may have one as well; it is sent as it is, so there is nothing to expand.
  await s.promptCustom({ customType: 'note', content: 'Go on' }, { forcedPrompt: 'Speak like a bard.' }).result()
  assert.equal(prompt(), 'Speak like a bard.')
  await s.promptCustom({ customType: 'note', content: 'Go on' }).result()
  assert.match(prompt(), /Use tabs/)
  for (const given of [{ expand: false }, { images: [] }]) {
    await assert.rejects(s.promptCustom({ customType: 'note', content: 'x' }, given).result(), { code: 'invalid_argument' })
  }
})

test('resources are read again, and chosen anew', async (t) => {
  const dir = project(t)
  const { s, prompt } = await told(t, dir, { contextFiles: true })
  await s.run('Hi')
  writeFileSync(join(dir, 'AGENTS.md'), 'Use spaces after all.\n')
  await s.run('Again')
  assert.match(prompt(), /Use tabs/)
  const again = await s.reloadResources()
  assert.match(again.contextFiles.at(-1).content, /spaces after all/)
  await s.run('Again')
  assert.match(prompt(), /spaces after all/)
  const none = await s.setResources({ appendSystemPrompt: 'Be kind.' })
  assert.deepEqual([none.contextFiles, s.resources.appendSystemPrompt], [[], 'Be kind.'])
  await s.run('Again')
  assert.match(prompt(), /Be kind\./)
  assert.doesNotMatch(prompt(), /spaces after all/)
})

test('bad resources are typed', async (t) => {
  const dir = project(t)
  const bad = { name: 'BranchlineError', code: 'invalid_argument' }
  await assert.rejects(told(t, dir, { contextFile: true }), { ...bad, message: /contextFile/ })
  await assert.rejects(told(t, dir, { discover: 'everything' }), { ...bad, message: /everything/ })
  await assert.rejects(told(t, dir, { sections: [{ name: 'Bad Name', text: '' }] }), { ...bad, message: /Bad Name/ })
  const { s } = await told(t, dir)
  await assert.rejects(s.setResources({ skills: 'x' }), bad)
  await assert.rejects(s.setResources({ sections: [{ name: 'preamble', text: '' }] }), { ...bad, message: /preamble/ })
  await assert.rejects(s.run('x', { expand: 'no' }), bad)
  await s.close()
  await assert.rejects(s.reloadResources(), { code: 'closed' })
})

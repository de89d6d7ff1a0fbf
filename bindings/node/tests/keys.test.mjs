// Choosing models, keys, and how services are reached, with a service on loopback.

import assert from 'node:assert/strict'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Engine } from '../index.mjs'
import { collect, directory, service } from './support.mjs'

const SECRET = 'sk-test-5e6f7a8b9c0d'

/** An engine that knows the model `house/m` of a service, and has nothing else. */
function engineFor(test, url, options = {}) {
  const house = { baseUrl: url, api: 'openai-completions', models: [{ id: 'm', contextWindow: 1000, maxTokens: 100 }] }
  const engine = new Engine({ workerThreads: 2, environment: false, builtinModels: false, proxy: 'direct', models: { providers: { house } }, ...options })
  test.after(() => engine.shutdown())
  return engine
}

const open = (engine, options) => engine.createSession({ inMemory: true, tools: [], model: 'house/m', ...options })

test('a key source is asked before each request, and its key is seen by the service only', async (t) => {
  const dir = directory(t)
  const { url, requests } = await service(t)
  const asked = []
  const record = join(dir, 'wire.jsonl')
  const engine = engineFor(t, url, {
    record,
    keySource: async (request, { signal }) => {
      asked.push(request)
      assert.ok(signal instanceof AbortSignal)
      await sleep(1)
      return `${SECRET}-${asked.length}`
    },
  })
  const s = await open(engine, { inMemory: false, cwd: dir, sessionDir: dir })
  const events = await collect(s.prompt('Hi'))
  const result = await s.run('Again')
  assert.deepEqual([result.text, result.usage.input, result.errorMessage], ['Hello.', 3, null])
  assert.deepEqual(asked, Array(2).fill({ provider: 'house', model: 'm', baseUrl: url }))
  assert.deepEqual(requests.map(({ headers }) => headers.authorization), [`Bearer ${SECRET}-1`, `Bearer ${SECRET}-2`])
  await engine.shutdown()
  const wire = readFileSync(record, 'utf8')
  assert.match(wire, /Hello\./)
  for (const text of [JSON.stringify(events), JSON.stringify(result), readFileSync(s.path, 'utf8'), wire]) assert.ok(!text.includes(SECRET))
})

test('the forms of a key', async (t) => {
  const { url, requests } = await service(t)
  const engine = engineFor(t, url, { keySource: () => ({ key: 'from-source', bearer: true }) })
  const s = await open(engine)
  const header = async () => {
    assert.equal((await s.run('Hi')).stopReason, 'stop')
    return requests.at(-1).headers.authorization
  }
  assert.equal(await header(), 'Bearer from-source')
  engine.setKey('house', SECRET)
  assert.equal(await header(), `Bearer ${SECRET}`)
  engine.setKey('house', { key: 'other' })
  assert.equal(await header(), 'Bearer other')
  engine.setKey('house', null)
  engine.setKeySource(() => 'second source')
  assert.equal(await header(), 'Bearer second source')
  // A local service needs none.
  engine.setKeySource(null)
  assert.equal(await header(), undefined)
  engine.setKeySource(() => null)
  assert.equal(await header(), undefined)
  const given = engineFor(t, url, { keys: { house: { key: 'given', bearer: true } } })
  assert.equal((await (await open(given)).run('Hi')).stopReason, 'stop')
  assert.equal(requests.at(-1).headers.authorization, 'Bearer given')
})

test('what a key source throws or gives by mistake fails the request and tells no key', async (t) => {
  const { url, requests } = await service(t)
  const engine = engineFor(t, url)
  const s = await open(engine)
  const failures = [
    [() => { throw new Error('the vault is closed') }, /the vault is closed/],
    [() => Promise.reject(new Error('no token today')), /no token today/],
    [() => ({ token: SECRET }), /a key is/],
    [() => [SECRET], /a key is/],
    [() => '', /empty/],
  ]
  for (const [source, message] of failures) {
    engine.setKeySource(source)
    const { stopReason, errorMessage } = await s.run('Hi')
    assert.equal(stopReason, 'error')
    assert.match(errorMessage, message)
    assert.ok(!errorMessage.includes(SECRET))
  }
  assert.equal(requests.length, 0)
})

test('a refusal that quotes the key is stored without it', async (t) => {
  const { url } = await service(t, { status: 401, body: JSON.stringify({ error: { message: `bad key ${SECRET}` } }) })
  const engine = engineFor(t, url, { keys: { house: SECRET } })
  const s = await open(engine)
  const { stopReason, errorMessage } = await s.run('Hi')
  assert.equal(stopReason, 'error')
  assert.match(errorMessage, /bad key/)
  assert.ok(!errorMessage.includes(SECRET))
})

test('an abort ends the wait for a key', async (t) => {
  const { url } = await service(t)
  let aborted
  const heard = new Promise((resolve) => (aborted = resolve))
  const asked = new Promise((resolve) => {
    t.keySource = (_, { signal }) => {
      signal.addEventListener('abort', aborted)
      resolve()
      return new Promise(() => {})
    }
  })
  const s = await open(engineFor(t, url, { keySource: t.keySource }))
  const run = s.prompt('Hi')
  await asked
  await s.abort()
  await heard
  assert.equal((await run.result()).aborted, true)
})

test('models are chosen, found and configured', async (t) => {
  const { url } = await service(t)
  const engine = engineFor(t, url, { builtinModels: true, keys: { anthropic: SECRET } })
  const names = (models) => models.map((model) => model.name)
  assert.ok(names(engine.models()).length > 20)
  const available = new Set(engine.availableModels().map((model) => model.provider))
  assert.ok(available.has('anthropic') && available.has('house') && !available.has('openai'))
  const { model, thinkingLevel } = engine.findModel('claude-sonnet:high')
  assert.deepEqual([model.provider, thinkingLevel], ['anthropic', 'high'])
  assert.equal(engine.findModel('house/m').thinkingLevel, null)
  assert.throws(() => engine.findModel('no such thing'), { code: 'unknown_model' })

  engine.configureModels({ providers: { house: { modelOverrides: { m: { maxTokens: 77 } } } } })
  assert.equal(engine.findModel('house/m').model.maxTokens, 77)
  engine.configureModels(`{ "providers": { "lab": { "baseUrl": "${url}", "api": "openai-completions", "models": [{ "id": "x" },] } } } // more`)
  assert.ok(names(engine.models()).includes('lab/x'))
  const before = names(engine.models())
  assert.throws(() => engine.configureModels({ providers: { bad: { models: [{ name: 'no id' }] } } }), { code: 'invalid_argument', message: /bad/ })
  assert.throws(() => engine.configureModels('{'), { code: 'invalid_argument' })
  assert.throws(() => engine.configureModels(5), { code: 'invalid_argument' })
  assert.deepEqual(names(engine.models()), before)
  assert.deepEqual(engine.modelProblems(), [])
})

test('files of an agent directory, and what is wrong in them', async (t) => {
  const { url, requests } = await service(t)
  const dir = directory(t)
  const models = { providers: { house: { baseUrl: url, api: 'openai-completions', models: [{ id: 'm' }] }, broken: { models: [{ id: 'x' }] } } }
  writeFileSync(join(dir, 'models.json'), JSON.stringify(models))
  writeFileSync(join(dir, 'auth.json'), JSON.stringify({ house: { type: 'api_key', key: SECRET } }))
  for (const options of [{ agentFiles: dir }, { agentDir: dir, agentFiles: true }, { modelsFile: join(dir, 'models.json'), authFile: join(dir, 'auth.json') }]) {
    const engine = engineFor(t, url, { models: undefined, ...options })
    assert.equal((await (await open(engine)).run('Hi')).stopReason, 'stop')
    assert.equal(requests.at(-1).headers.authorization, `Bearer ${SECRET}`)
    const [problem] = engine.modelProblems()
    assert.deepEqual([problem.provider, problem.path], ['broken', join(dir, 'models.json')])
  }
})

test('network options reach the service', async (t) => {
  const { url, requests } = await service(t)
  const network = { proxy: 'direct', headers: { 'X-Team': 'tests' }, connectTimeoutMs: 5000, idleTimeoutMs: null, maxRequestsPerOrigin: 2 }
  const engine = engineFor(t, url, { proxy: undefined, network })
  await (await open(engine)).run('Hi')
  assert.equal(requests[0].headers['x-team'], 'tests')
  // Nobody is at this proxy.
  const lost = engineFor(t, url, { proxy: 'http://user:pass-word@127.0.0.1:9' })
  const s = await open(lost)
  const run = s.prompt('Hi')
  const events = []
  for await (const event of run) {
    events.push(event)
    if (event.type === 'auto_retry_start') s.abortRetry()
  }
  assert.equal((await run.result()).stopReason, 'error')
  assert.ok(!JSON.stringify(events).includes('pass-word'))
})

test('bad options are typed and tell no key', (t) => {
  const bad = [
    [{ builtinModel: false }, /builtinModel/],
    [{ network: { proxi: 'direct' } }, /proxi/],
    [{ network: { proxy: 'direct' }, proxy: 'direct' }, /same option/],
    [{ network: { proxy: SECRET } }, /proxy/],
    [{ keys: { house: { token: SECRET } } }, /house/],
    [{ keys: SECRET }, /keys/],
    [{ keys: [SECRET] }, /keys/],
    [{ keySource: 'x' }, /key source must be a function/],
    [{ models: { providers: { house: { models: 5, apiKey: SECRET } } } }, /house/],
    [{ record: join(directory(t), 'no', 'such', 'directory', 'x.jsonl') }, /./],
    [{ agentFiles: 5 }, /./],
  ]
  for (const [options, message] of bad) {
    let error
    assert.throws(() => new Engine(options), (thrown) => ((error = thrown), true), JSON.stringify(options))
    assert.equal(error.name, 'BranchlineError')
    assert.match(error.message, message)
    assert.ok(!error.message.includes(SECRET), error.message)
    assert.ok(['invalid_argument', 'storage_failed'].includes(error.code), error.code)
  }
  const engine = new Engine({ workerThreads: 1 })
  t.after(() => engine.shutdown())
  assert.throws(() => engine.setKey('house', [SECRET]), { code: 'invalid_argument', message: /a key is/ })
  assert.throws(() => engine.setKey('house'), { code: 'invalid_argument' })
  assert.throws(() => engine.setKey(5, 'x'), { code: 'invalid_argument' })
  assert.throws(() => engine.setKeySource('x'), { code: 'invalid_argument' })
})

test('a recording is never written over', async (t) => {
  const { url } = await service(t)
  const record = join(directory(t), 'wire.jsonl')
  const engine = engineFor(t, url, { record })
  await (await open(engine)).run('Hi')
  await engine.shutdown()
  const lines = readFileSync(record, 'utf8').trim().split('\n').map((line) => JSON.parse(line))
  assert.ok(lines.length >= 2)
  assert.throws(() => engineFor(t, url, { record }), { code: 'file_exists' })
  assert.ok(existsSync(record))
})

test('an id that nobody described, and patterns', async (t) => {
  const { url } = await service(t)
  const engine = engineFor(t, url, { keys: { house: SECRET } })
  assert.equal(engine.findModelOrCustom('house/m').warning, undefined)
  assert.throws(() => engine.findModel('house/new'), { code: 'unknown_model' })
  const { model, thinkingLevel, warning } = engine.findModelOrCustom('house/new:high')
  assert.deepEqual([model.name, model.contextWindow, thinkingLevel], ['house/new', 1000, 'high'])
  assert.match(warning, /nothing is known of the model house\/new/)
  assert.equal(engine.findModel('house/new').model.name, 'house/new')
  assert.throws(() => engine.findModelOrCustom('nobody/none'), { code: 'unknown_model' })
  assert.throws(() => engine.findModelOrCustom(5), { code: 'invalid_argument' })
  const scope = engine.modelsInScope(['HOUSE/*:low', 'nobody/*'])
  assert.deepEqual(scope.models.map((choice) => [choice.model.name, choice.thinkingLevel]), [['house/m', 'low'], ['house/new', 'low']])
  assert.match(scope.warnings.join(), /nobody\/\*/)
  assert.deepEqual(engine.modelsInScope('house/m').models.map((choice) => choice.model.name), ['house/m'])
  assert.deepEqual(engine.modelsInScope([]), { models: [], warnings: [] })
  for (const wrong of [5, undefined, [5]]) assert.throws(() => engine.modelsInScope(wrong), { code: 'invalid_argument' })
})

test('keys are stored for other programs too', async (t) => {
  const { url, requests } = await service(t)
  const authFile = join(directory(t), 'auth.json')
  const read = () => JSON.parse(readFileSync(authFile, 'utf8'))
  writeFileSync(authFile, JSON.stringify({ other: { type: 'api_key', key: 'k', more: 1 } }))
  const engine = engineFor(t, url, { authFile })
  await engine.storeKey('house', `$$1-${SECRET}`)
  assert.deepEqual(await engine.storedKeys(), [{ provider: 'other', type: 'api_key' }, { provider: 'house', type: 'api_key' }])
  assert.deepEqual(read().other, { type: 'api_key', key: 'k', more: 1 })
  const s = await open(engine)
  const header = async () => {
    assert.equal((await s.run('Hi')).stopReason, 'stop')
    return requests.at(-1).headers.authorization
  }
  assert.equal(await header(), `Bearer $$1-${SECRET}`)
  await engine.storeKey('house', '$MINE', { configured: true, variables: { MINE: SECRET } })
  assert.equal(await header(), `Bearer ${SECRET}`)
  await engine.storeKey('house', null, { variables: { MINE: 'x' } })
  assert.deepEqual(read().house, { type: 'api_key', env: { MINE: 'x' } })
  assert.deepEqual([await engine.forgetStored('house'), await engine.forgetStored('house')], [true, false])
  const none = engineFor(t, url)
  const wrong = [
    () => engine.storeKey('', 'k'),
    () => engine.storeKey('a', ''),
    () => engine.storeKey('a'),
    () => engine.storeKey('a', SECRET, { bearer: true }),
    () => engine.storeKey('a', SECRET, { variables: [SECRET] }),
    () => engine.storeLogin('a', [SECRET]),
    () => engine.forgetStored(5),
    () => none.storeKey('a', 'k'),
    () => none.storedKeys(),
  ]
  for (const call of wrong) {
    await assert.rejects(call, (error) => error.name === 'BranchlineError' && error.code === 'invalid_argument' && !error.message.includes(SECRET))
  }
})

test('a stored login is made anew by the host, once, and stored', async (t) => {
  const { url, requests } = await service(t)
  const authFile = join(directory(t), 'auth.json')
  const asked = []
  const loginSource = async (request, { signal }) => {
    assert.ok(signal instanceof AbortSignal)
    asked.push(request)
    await sleep(1)
    return { ...request.login, access: `${SECRET}-${asked.length}`, expires: Date.now() + 3_600_000 }
  }
  const engine = engineFor(t, url, { authFile, loginSource })
  const aged = { access: 'old', refresh: 'r', expires: 1, mine: [1] }
  await engine.storeLogin('house', aged)
  const s = await open(engine)
  for (let n = 0; n < 2; n++) assert.equal((await s.run('Hi')).stopReason, 'stop')
  assert.deepEqual(requests.map(({ headers }) => headers.authorization), Array(2).fill(`Bearer ${SECRET}-1`))
  assert.deepEqual(asked, [{ provider: 'house', login: { ...aged, type: 'oauth' } }])
  const { access, mine, type } = JSON.parse(readFileSync(authFile, 'utf8')).house
  assert.deepEqual([access, mine, type], [`${SECRET}-1`, [1], 'oauth'])
  assert.deepEqual(await engine.storedKeys(), [{ provider: 'house', type: 'oauth' }])

  const failures = [
    [() => { throw new Error('the door is shut') }, /could not be made anew: the door is shut/],
    [() => Promise.reject(new Error('not today')), /not today/],
    [() => ({ access: SECRET }), /a login is an object/],
    [() => undefined, /a login is an object/],
  ]
  for (const [source, message] of failures) {
    await engine.storeLogin('house', aged)
    engine.setLoginSource(source)
    const { stopReason, errorMessage } = await s.run('Hi')
    assert.equal(stopReason, 'error')
    assert.match(errorMessage, message)
    assert.ok(!errorMessage.includes(SECRET))
  }
  // Who makes a login anew has the lock of the file: storing something else there is refused, not waited for.
  let later
  await engine.storeLogin('house', aged)
  engine.setLoginSource(async ({ login }) => {
    const refused = { code: 'would_deadlock' }
    await assert.rejects(engine.storeLogin('house', aged), refused)
    await assert.rejects(engine.storeKey('other', 'k'), refused)
    await assert.rejects(engine.forgetStored('other'), refused)
    await assert.rejects(engine.storedKeys(), refused)
    later = sleep(200).then(() => engine.storeKey('later', 'k')) // what it began may store when it has ended
    return { ...login, access: SECRET, expires: Date.now() + 3_600_000 }
  })
  assert.equal((await s.run('Hi')).stopReason, 'stop')
  await later
  assert.deepEqual((await engine.storedKeys()).map(({ provider }) => provider), ['house', 'later'])
  await engine.storeLogin('house', aged)
  engine.setLoginSource(null)
  assert.match((await s.run('Hi')).errorMessage, /no source of logins/)
  assert.throws(() => engine.setLoginSource('x'), { code: 'invalid_argument' })
  assert.throws(() => new Engine({ loginSource: 'x' }), { code: 'invalid_argument' })
})

test('a session that goes on with another model says why', async (t) => {
  const { url } = await service(t)
  const dir = directory(t)
  const engine = engineFor(t, url, { keys: { house: SECRET } })
  engine.addHostProvider('ide', ['gone'], () => 'one')
  const s = await engine.createSession({ cwd: dir, sessionDir: dir, model: 'ide/gone' })
  await s.run('Hi')
  assert.equal(s.state.modelNotice, undefined)
  await s.close()
  const other = engineFor(t, url, { keys: { house: SECRET } })
  const again = await other.openSession(s.path)
  assert.equal(again.state.model, 'house/m')
  assert.match(again.state.modelNotice, /ide\/gone/)
  await again.setModel('house/m')
  assert.equal(again.state.modelNotice, undefined)
})

test('bodies are seen and replaced before they are sent', async (t) => {
  const { url, requests } = await service(t)
  const seen = []
  const payloadHook = async (request, { signal }) => {
    assert.ok(signal instanceof AbortSignal)
    seen.push(request)
    await sleep(1)
    return { ...request.body, tenant: seen.length }
  }
  const engine = engineFor(t, url, { keys: { house: SECRET }, payloadHook })
  const s = await open(engine)
  assert.equal((await s.run('Hi')).text, 'Hello.')
  const { body, ...rest } = seen[0]
  assert.deepEqual(rest, { provider: 'house', model: 'm', api: 'openai-completions' })
  assert.deepEqual(requests[0].body, { ...body, tenant: 1 })
  assert.ok(!JSON.stringify(seen).includes(SECRET))
  engine.setPayloadHook((request) => { request.body = {} })
  assert.equal((await s.run('Again')).stopReason, 'stop')
  assert.ok(requests[1].body.model === 'm' && !('tenant' in requests[1].body))
  const failures = [
    [() => { throw new Error('no such tenant') }, /no such tenant/],
    [() => Promise.reject(new Error('not today')), /not today/],
    [() => [1], /the body of a request is an object/],
  ]
  for (const [hook, message] of failures) {
    engine.setPayloadHook(hook)
    const { stopReason, errorMessage } = await s.run('No')
    assert.equal(stopReason, 'error')
    assert.match(errorMessage, message)
  }
  assert.equal(requests.length, 2)
  engine.setPayloadHook(null)
  assert.equal((await s.run('Hi')).stopReason, 'stop')
  assert.throws(() => engine.setPayloadHook('x'), { code: 'invalid_argument' })
  assert.throws(() => new Engine({ payloadHook: 'x' }), { code: 'invalid_argument' })
})

test('an abort ends the wait for a payload hook', async (t) => {
  const { url, requests } = await service(t)
  let begun
  const asked = new Promise((resolve) => (begun = resolve))
  const payloadHook = (_, { signal }) => new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason))
    begun()
  })
  const s = await open(engineFor(t, url, { payloadHook }))
  const run = s.prompt('Hi')
  await asked
  await s.abort()
  assert.equal((await run.result()).aborted, true)
  assert.equal(requests.length, 0)
})

test('settings of an engine hold for its sessions', async (t) => {
  const engine = new Engine({ settings: { defaultTools: ['read', 'ls'], defaultThinkingLevel: 'off' } })
  t.after(() => engine.shutdown())
  const session = await engine.createSession({ inMemory: true, model: 'scripted/demo' })
  assert.deepEqual(session.state.tools, ['read', 'ls'])
  assert.equal(session.state.thinkingLevel, 'off')
  assert.throws(() => new Engine({ settings: [] }), { code: 'invalid_argument' })
})

// Text on its way to a person's screen.

import assert from 'node:assert/strict'
import test from 'node:test'
import { sanitizeForDisplay } from '../index.mjs'

test('what a terminal would obey is taken out', () => {
  assert.equal(sanitizeForDisplay('\x1b[31mred\x1b[0m \x1b]0;title\x07user\u202etxt\r\n\tü\0'), 'red usertxt\n\tü')
  assert.equal(sanitizeForDisplay('half \ud83d'), 'half \ufffd')
  assert.equal(sanitizeForDisplay(''), '')
  assert.throws(() => sanitizeForDisplay(5), { code: 'invalid_argument' })
})

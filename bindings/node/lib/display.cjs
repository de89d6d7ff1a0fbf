'use strict'
const { bridge } = require('./native.cjs')
const { text } = require('./errors.cjs')

/** Text as it may be shown on a terminal. */
const sanitizeForDisplay = (given) => bridge.sanitizeForDisplay(text(given, 'text'))

module.exports = { sanitizeForDisplay }

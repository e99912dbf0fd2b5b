import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { ensureHostKey } from '../../../edge/management/ssh-server.ts'
import { newKey } from '../../../protocol/management/new-key.ts'

const never = (sentence: string): void => expect.unreachable(sentence)

let folder: string
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), 'larder-host-key-'))))
afterEach(() => rmSync(folder, { recursive: true }))

test('the host key is created at the first start, readable only by its owner, and kept', () => {
  const path = join(folder, 'deep', 'host-key')
  const first = ensureHostKey(path, never)
  expect(statSync(path).mode & 0o777).toBe(0o600)
  expect(readdirSync(join(folder, 'deep'))).toEqual(['host-key'])
  expect(first.publicKey).toMatch(/^ssh-ed25519 /)
  expect(ensureHostKey(path, never)).toEqual(first)
  expect(readFileSync(path, 'utf8')).toBe(first.privateKey)
})

test('a host key that others may read is refused', () => {
  const path = join(folder, 'host-key')
  ensureHostKey(path, never)
  chmodSync(path, 0o640)
  expect(() => ensureHostKey(path, never)).toThrow(/others may read/)
})

test.each([
  ['no key', 'hello'],
  ['a public key', newKey('x').publicKey],
])('the host key file with %s is refused and left unchanged', (_what, text) => {
  const path = join(folder, 'host-key')
  writeFileSync(path, text, { mode: 0o600 })
  expect(() => ensureHostKey(path, never)).toThrow(/no private key/)
  expect(readFileSync(path, 'utf8')).toBe(text)
})

test('an empty file of the host key is replaced by a new key, with a warning', () => {
  const path = join(folder, 'host-key')
  writeFileSync(path, '', { mode: 0o600 })
  const said: string[] = []
  const made = ensureHostKey(path, (sentence) => said.push(sentence))
  expect(said).toEqual([expect.stringContaining('host-key was empty')])
  expect(ensureHostKey(path, never)).toEqual(made)
})

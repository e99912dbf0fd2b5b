import { readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { storeFirst, readStored } from '../../../../cloud/platform/settings/stored-file.ts'
import { ensureSigningKey } from '../../../../cloud/platform/identity/open-issuer.ts'
import { ensureStoreSecret } from '../../../../cloud/platform/store/sealer.ts'
import { ensureMediaSecret } from '../../../../cloud/platform/media/addresses.ts'
import { systemRuntime } from '../../../../protocol/system-runtime.ts'
import { emptyFolder } from '../../support/media.ts'

const { random } = systemRuntime()
const never = (sentence: string): void => expect.unreachable(sentence)

test('the first stored secret stays, and only its owner can read it', () => {
  const folder = join(emptyFolder(), 'new')
  const path = join(folder, 'secret')
  expect(readStored(path)).toBeUndefined()
  expect(storeFirst(path, 'one', never)).toBe('one')
  expect(storeFirst(path, 'two', never)).toBe('one')
  expect(readStored(path)).toBe('one')
  expect(statSync(path).mode & 0o777).toBe(0o600)
  expect(statSync(folder).mode & 0o777).toBe(0o700)
  expect(readdirSync(folder)).toEqual(['secret'])
})

test('the secret of file addresses survives a restart, and differs between installations', () => {
  const folder = emptyFolder()
  const secret = ensureMediaSecret(folder, random, never)
  expect(secret).toMatch(/^[0-9a-f]{64}$/)
  expect(ensureMediaSecret(folder, random, never)).toBe(secret)
  expect(ensureMediaSecret(emptyFolder(), random, never)).not.toBe(secret)
})

test.each([
  [
    'media-secret',
    (folder: string, say: (sentence: string) => void) => ensureMediaSecret(folder, random, say),
  ],
  [
    'store-secret',
    (folder: string, say: (sentence: string) => void) => ensureStoreSecret(folder, random, say),
  ],
  ['identity-key.json', (folder: string, say: (sentence: string) => void) => ensureSigningKey(folder, say)],
])('an empty %s is replaced by a new secret, and a warning is logged', async (name, keep) => {
  const folder = emptyFolder()
  writeFileSync(join(folder, name), '', { mode: 0o644 })
  const said: string[] = []
  const made = await keep(folder, (sentence) => said.push(sentence))
  expect(said).toEqual([expect.stringContaining(`${name} was empty`)])
  expect(statSync(join(folder, name)).size).toBeGreaterThan(32)
  expect(statSync(join(folder, name)).mode & 0o777).toBe(0o600)
  expect(await keep(folder, never)).toEqual(made)
})

import { readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { keepFirst, readKept } from '../../../../cloud/platform/settings/kept-file.ts'
import { keptMediaSecret } from '../../../../cloud/platform/media/addresses.ts'
import { systemRuntime } from '../../../../protocol/system-runtime.ts'
import { emptyFolder } from '../../support/media.ts'

test('the first text that is kept stays, readable by its owner alone', () => {
  const folder = join(emptyFolder(), 'new')
  const path = join(folder, 'secret')
  expect(readKept(path)).toBeUndefined()
  expect(keepFirst(path, 'one')).toBe('one')
  expect(keepFirst(path, 'two')).toBe('one')
  expect(readKept(path)).toBe('one')
  expect(statSync(path).mode & 0o777).toBe(0o600)
  expect(readdirSync(folder)).toEqual(['secret'])
})

test('an empty secret is refused, and says what to do', () => {
  const folder = emptyFolder()
  writeFileSync(join(folder, 'media-secret'), '')
  expect(() => keptMediaSecret(folder, systemRuntime().random)).toThrow(/media-secret is empty: .*remove it/)
  expect(() => keepFirst(join(folder, 'media-secret'), 'one')).toThrow('is empty')
})

test('the secret of file addresses outlives a restart, and is another one elsewhere', () => {
  const { random } = systemRuntime()
  const folder = emptyFolder()
  const secret = keptMediaSecret(folder, random)
  expect(secret).toMatch(/^[0-9a-f]{64}$/)
  expect(keptMediaSecret(folder, random)).toBe(secret)
  expect(keptMediaSecret(emptyFolder(), random)).not.toBe(secret)
})

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { lockFolder } from '../../../simulator/demo/places.ts'

let folder: string
let socket: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'larder-lock-'))
  socket = join(folder, 'lock')
})
afterEach(() => rmSync(folder, { recursive: true }))

test('a folder lock has one holder until it is released', async () => {
  const release = await lockFolder(socket)
  expect(release).not.toBeNull()
  expect(await lockFolder(socket)).toBeNull()
  expect(await lockFolder(socket)).toBeNull()
  release!()
  const next = await lockFolder(socket)
  expect(next).not.toBeNull()
  next!()
})

test('the lock of a killed process is free', async () => {
  const script = `require('node:net').createServer().listen(${JSON.stringify(socket)}, () => console.log('up'))`
  const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
  await once(child.stdout, 'data')
  expect(await lockFolder(socket)).toBeNull()
  child.kill('SIGKILL')
  await once(child, 'exit')
  expect(existsSync(socket)).toBe(true)
  const release = await lockFolder(socket)
  expect(release).not.toBeNull()
  release!()
})

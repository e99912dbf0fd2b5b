import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { CleaningThread, threadFileOf } from '../../../../cloud/platform/media/clean/cleaning-thread.ts'
import { cleaned, ownCleaning, type Cleaning } from '../../../../cloud/platform/media/clean/cleaning.ts'
import { RefusedFile } from '../../../../cloud/platform/media/clean/parts.ts'
import { packageRoot } from '../../../support/programs.ts'
import { virtualRuntime } from '../../../world/clock.ts'
import { systemRuntime } from '../../../../protocol/system-runtime.ts'
import { gif, jpeg, mp4, png } from '../../support/media-samples.ts'

const LIMITS = { parts: 20_000, pixels: 1_000_000, processorMs: 10_000 }

/** The thread's program, bundled as in the build. */
async function bundled(): Promise<URL> {
  const { rolldown } = await import('rolldown')
  const folder = mkdtempSync(join(tmpdir(), 'larder-thread-'))
  const input = join(packageRoot(), 'cloud/platform/media/clean/thread.ts')
  const bundle = await rolldown({ input, platform: 'node', logLevel: 'silent' })
  await bundle.write({ dir: folder, format: 'esm', entryFileNames: 'thread.mjs' })
  await bundle.close()
  return pathToFileURL(join(folder, 'thread.mjs'))
}

let file: URL
let thread: CleaningThread
beforeAll(async () => {
  file = await bundled()
  thread = new CleaningThread(file, systemRuntime().clock)
})
afterAll(() => thread.stop())

async function clean(cleaning: Cleaning, extension: string, content: Buffer, spent = (_ms: number) => {}) {
  // eslint-disable-next-line require-await
  async function* chunks() {
    for (let at = 0; at < content.length; at += 10_000) yield content.subarray(at, at + 10_000)
  }
  const kept: Uint8Array[] = []
  for await (const part of cleaned(cleaning, extension, chunks(), { limits: LIMITS, spent }))
    kept.push(Buffer.from(part))
  return Buffer.concat(kept)
}

const grown = (head: Buffer): Buffer => Buffer.concat([head, Buffer.alloc(300_000, 7)])

test('the cleaning thread returns the same result as the caller’s thread, for several files at once', async () => {
  const files = [
    ['png', grown(png)],
    ['jpg', grown(jpeg)],
    ['gif', grown(gif)],
    ['mp4', Buffer.concat([mp4, Buffer.alloc(8)])],
    ['webm', Buffer.alloc(200_000, 3)],
  ] as const
  const [own, threads] = await Promise.all(
    [ownCleaning, thread].map((cleaning) =>
      Promise.all(files.map(([extension, content]) => clean(cleaning, extension, content))),
    ),
  )
  expect(threads).toEqual(own)
})

test('the cleaning thread reports the processor time of each block, and a refused file', async () => {
  let sum = 0
  await clean(thread, 'png', grown(png), (ms) => (sum += ms))
  expect(sum).toBeGreaterThan(0)
  await expect(clean(thread, 'png', Buffer.alloc(100))).rejects.toThrow(RefusedFile)
  await expect(
    clean(thread, 'png', grown(png), () => {
      throw new Error('used up')
    }),
  ).rejects.toThrow('used up')
})

test('a cleaning thread that hangs or dies fails its files, and the next file gets another thread', async () => {
  const runtime = virtualRuntime(1)
  const one = new CleaningThread(new URL('data:text/javascript,for(;;);'), runtime.clock)
  const hung = clean(one, 'png', grown(png))
  const outcome = expect(hung).rejects.toThrow('the thread that cleans files hangs')
  await new Promise((resolve) => setTimeout(resolve, 50))
  runtime.clock.advance(LIMITS.processorMs * 10 + 1)
  await outcome
  await one.stop()
  const dying = new CleaningThread(
    new URL('data:text/javascript,throw new Error("no memory")'),
    runtime.clock,
  )
  await expect(clean(dying, 'png', grown(png))).rejects.toThrow('no memory')
  await dying.stop()
  expect(await clean(thread, 'png', png)).toEqual(png)
})

test('the file of the cleaning thread is found in the sources, for any place of the bundled module', () => {
  for (const module of [
    'main.js',
    'cloud.js',
    'parts/cleaning-thread.js',
    'platform/media/clean/cleaning-thread.js',
  ])
    expect(threadFileOf(`file:///usr/lib/larder/cloud/cloud/${module}`).href).toBe(
      'file:///usr/lib/larder/cloud/cloud/platform/media/clean/thread.js',
    )
})

import * as fc from 'fast-check'
import { describe, expect, onTestFinished, test } from 'vitest'
import { selectBytes, fileHandlers } from '../../../../cloud/platform/http/file-handlers.ts'
import { listen } from '../../../../cloud/platform/http/listen.ts'
import { defaultLimits } from '../../../../cloud/platform/settings/limits.ts'
import { systemRuntime } from '../../../../protocol/system-runtime.ts'
import { folderStore } from '../../../../cloud/platform/media/folder-store.ts'
import type { Media } from '../../../../cloud/platform/media/media.ts'
import { errorOf, openCloud } from '../../../world/cloud.ts'
import { onEachDatabase, type OpenDatabase } from '../../../world/database.ts'
import { sendRaw } from '../../../support/raw-http.ts'
import { emptyFolder, testSigner } from '../../support/media.ts'
import { png } from '../../support/media-samples.ts'

async function served(open: OpenDatabase) {
  let media: Media | undefined
  const app = await openCloud({
    db: await open(),
    mediaStore: folderStore(emptyFolder()),
    handlersOf(context, made) {
      media = made
      return fileHandlers(context, made, testSigner(context))
    },
  })
  const { key } = await media!.store({
    folder: 'banners',
    number: undefined,
    type: { kind: 'image', mimeType: 'image/png', extension: 'png' },
    content: (async function* () {
      yield png
    })(),
  })
  await app.context.db.transact((tx) => media!.keep(tx, [key]))
  const address = media!.addressOf(key).slice('http://larder.test'.length)
  const get = async (path = address, headers: Record<string, string> = {}, method = 'GET') => {
    const answer = await app.app.request(path, { method, headers })
    return { status: answer.status, headers: answer.headers, bytes: Buffer.from(await answer.arrayBuffer()) }
  }
  return { ...app, media: media!, key, address, get }
}

onEachDatabase('a file', (open) => {
  test('a caller with the address of a file gets it with its true type', async () => {
    const { get } = await served(open)
    const { status, headers, bytes } = await get()
    expect([status, bytes]).toEqual([200, png])
    expect(Object.fromEntries(headers)).toMatchObject({
      'content-type': 'image/png',
      'content-length': String(png.length),
      'accept-ranges': 'bytes',
      'x-content-type-options': 'nosniff',
      'content-security-policy': "default-src 'none'; sandbox; frame-ancestors 'none'",
      'content-disposition': expect.stringMatching(/^inline; filename="[0-9a-f-]{36}\.png"$/) as string,
      'cache-control': expect.stringMatching(/^private, max-age=\d+, immutable$/) as string,
      etag: expect.stringMatching(/^"[0-9a-f]{64}"$/) as string,
    })
    const head = await get(undefined, {}, 'HEAD')
    expect([head.status, head.headers.get('Content-Length'), head.bytes.length]).toEqual([
      200,
      String(png.length),
      0,
    ])
  })

  test('a file can be read in part, and is not sent again if unchanged', async () => {
    const { get } = await served(open)
    const part = await get(undefined, { Range: 'bytes=1-3' })
    expect([part.status, part.bytes.toString(), part.headers.get('Content-Range')]).toEqual([
      206,
      'PNG',
      `bytes 1-3/${png.length}`,
    ])
    const etag = part.headers.get('ETag')!
    const same = await get(undefined, { 'If-None-Match': etag })
    expect([same.status, same.bytes.length, same.headers.get('ETag')]).toEqual([304, 0, etag])
    expect((await get(undefined, { Range: 'bytes=1-3', 'If-Range': etag })).status).toBe(206)
    expect((await get(undefined, { Range: 'bytes=1-3', 'If-Range': '"other"' })).status).toBe(200)
    const beyond = await get(undefined, { Range: `bytes=${png.length}-` })
    expect([beyond.status, beyond.headers.get('Content-Range')]).toEqual([416, `bytes */${png.length}`])
  })

  test('a file is refused without its signature, with another file’s signature, and after its expiry', async () => {
    const { call, address, key, media, runtime, get } = await served(open)
    const other = new URL(media.addressOf(key.replace(/[0-9a-f]\.png$/, 'x.png')))
    const { pathname, searchParams } = new URL(address, 'http://larder.test')
    const expires = searchParams.get('expires')!
    const signature = searchParams.get('signature')!
    const forged = [
      pathname,
      `${pathname}?expires=${expires}`,
      `${pathname}?signature=${signature}`,
      `${pathname}?expires=${Number(expires) + 1}&signature=${signature}`,
      `${pathname}?expires=0${expires}&signature=${signature}`,
      `${pathname}?expires=${expires}&signature=${signature}x`,
      `${pathname}?expires=${expires}&signature=${signature.toLowerCase()}`,
      `${pathname}?expires=${expires}&signature=${encodeURIComponent('ü'.repeat(43))}`,
      `${pathname}${other.search}`,
      '/files/banners/../../etc/passwd?expires=1&signature=x',
      `/files/..%2f..%2fetc%2fpasswd?expires=${expires}&signature=${signature}`,
    ]
    for (const path of forged) {
      const answer = await call('GET', path)
      if (path.startsWith('/files/banners/..')) expect(answer.status).toBe(404)
      else expect([path, answer.status, errorOf(answer).error.code]).toEqual([path, 403, 'forbidden'])
    }
    runtime.clock.advance(24 * 3_600_000 - 1000)
    expect((await get()).status).toBe(200)
    runtime.clock.advance(6 * 3_600_000 + 2000)
    expect((await get()).status).toBe(403)
  })

  test('a file has one address, and other spellings are refused', { timeout: 20_000 }, async () => {
    const { app, address, get } = await served(open)
    const server = await listen(app, {
      host: '127.0.0.1',
      port: 0,
      runtime: systemRuntime(),
      bounds: defaultLimits.http,
    })
    onTestFinished(() => server.close(0))
    const status = async (target: string) =>
      (
        await sendRaw(server.port, `GET ${target} HTTP/1.1\r\nHost: larder.test\r\nConnection: close\r\n\r\n`)
      ).slice(9, 12)
    expect((await get()).status).toBe(200)
    expect(await status(address)).toBe('200')
    expect(await status(`http://larder.test${address}`)).toBe('200')
    const [path, query] = address.split('?') as [string, string]
    for (const other of [
      path.replace('/files/', '/files/./'),
      path.replace('/files/', '/x/../files/'),
      path.replace('/files/', '/files//'),
      path.replace(/\/(?=[^/]*$)/, '%2F'),
      path.replace('banners', '%62anners'),
      `${path}/`,
    ])
      expect([other, await status(`${other}?${query}`)]).toEqual([other, '403'])
  })

  test('a file does not exist before it is kept and after it is removed', async () => {
    const { media, key, get, context, call } = await served(open)
    const { key: pending } = await media.store({
      folder: 'banners',
      number: undefined,
      type: { kind: 'image', mimeType: 'image/png', extension: 'png' },
      content: (async function* () {
        yield png
      })(),
    })
    const code = async (fileKey: string) => {
      const answer = await call('GET', media.addressOf(fileKey).slice('http://larder.test'.length))
      return [answer.status, errorOf(answer).error.code]
    }
    expect(await code(pending)).toEqual([404, 'not_found'])
    expect((await get()).status).toBe(200)
    await context.db.transact((tx) => media.remove(tx, key))
    expect(await code(key)).toEqual([404, 'not_found'])
  })
})

test('an address stays the same for hours, so that caches keep it, and is valid for at least a day', async () => {
  const { context, runtime } = await openCloud()
  const signer = testSigner(context)
  const key = 'banners/x.png'
  const seen = new Set<string>()
  for (let hour = 0; hour < 48; hour += 1) {
    const { searchParams } = new URL(signer.addressOf(key))
    const expires = searchParams.get('expires')!
    seen.add(expires)
    const left = Number(expires) * 1000 - runtime.clock.now()
    expect(left).toBeGreaterThanOrEqual(24 * 3_600_000)
    expect(left).toBeLessThanOrEqual(30 * 3_600_000 + 1000)
    expect(signer.check(key, { expires, signature: searchParams.get('signature')! })).toBe(
      Number(expires) * 1000,
    )
    runtime.clock.advance(3_600_000)
  }
  expect(seen.size).toBeLessThanOrEqual(9)
})

describe('byte ranges of a file', () => {
  const none = { range: undefined, ifRange: undefined, ifNoneMatch: undefined }
  const file = { size: 100, etag: '"e"' }
  test.each([
    [undefined, 'whole'],
    ['bytes=0-99', [0, 99]],
    ['bytes=0-', [0, 99]],
    ['bytes=99-', [99, 99]],
    ['bytes=10-19', [10, 19]],
    ['bytes=90-500', [90, 99]],
    ['bytes=-10', [90, 99]],
    ['bytes=-500', [0, 99]],
    ['bytes=100-', 'unsatisfiable'],
    ['bytes=100-200', 'unsatisfiable'],
    ['bytes=-0', 'unsatisfiable'],
    ['bytes=-', 'whole'],
    ['bytes=20-10', 'whole'],
    ['bytes=0-1,5-6', 'whole'],
    ['bytes=a-b', 'whole'],
    ['items=0-1', 'whole'],
    ['bytes=0-9999999999999999', 'whole'],
  ] as const)('the Range header is followed or ignored: %s', (range, expected) => {
    const selected = selectBytes({ ...none, range }, file)
    if (typeof expected === 'string') expect(selected).toEqual({ kind: expected })
    else expect(selected).toEqual({ kind: 'part', range: { first: expected[0], last: expected[1] } })
  })

  test('a part is within the file for any Range header', () => {
    const range = fc.oneof(
      fc.tuple(fc.option(fc.nat(300)), fc.option(fc.nat(300))).map(([a, b]) => `bytes=${a ?? ''}-${b ?? ''}`),
      fc.string(),
    )
    fc.assert(
      fc.property(range, fc.nat(200), (header, size) => {
        const selected = selectBytes({ ...none, range: header }, { size, etag: '"e"' })
        if (selected.kind !== 'part') return
        expect(selected.range.first).toBeGreaterThanOrEqual(0)
        expect(selected.range.first).toBeLessThanOrEqual(selected.range.last)
        expect(selected.range.last).toBeLessThan(size)
      }),
    )
  })

  test.each([
    ['"e"', true],
    ['W/"e"', true],
    ['"a", "e"', true],
    ['*', true],
    ['"a"', false],
    ['e', false],
  ])('the If-None-Match header is compared with the ETag: %s', (ifNoneMatch, matches) => {
    expect(selectBytes({ ...none, ifNoneMatch }, file).kind === 'not-modified').toBe(matches)
  })
})

import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { folderStore } from '../../../../cloud/platform/media/folder-store.ts'
import type { MediaStore } from '../../../../cloud/platform/media/store.ts'
import { silentLog, type Log } from '../../../../protocol/model/log.ts'
import { errorOf, openCloud } from '../../../world/cloud.ts'
import { emptyFolder, filesIn } from '../../support/media.ts'
import { fileOf, grown, png } from '../../support/media-samples.ts'

const systemError = (code: string): Error =>
  Object.assign(new Error(`${code}: something of the system, write`), { code })
const s3Error = (status: number): Error => Object.assign(new Error(`S3 answered ${status}`), { status })
const timedOut = new DOMException('The operation was aborted due to timeout', 'TimeoutError')

/** A store with a write that fails before the first byte, or after `afterBytes`. */
const failing = (error: unknown, afterBytes: number): MediaStore => ({
  async write(_key, _type, content) {
    let bytes = 0
    if (afterBytes === 0) throw error
    for await (const chunk of content) if ((bytes += chunk.length) >= afterBytes) throw error
    throw error
  },
  read: () => Promise.reject(error),
  remove: () => Promise.resolve(),
})

async function appWith(mediaStore: MediaStore) {
  const lines: { fields: Record<string, unknown>; text: string }[] = []
  const error: Log['error'] = (fields: unknown, text?: string) =>
    void lines.push({ fields: fields as Record<string, unknown>, text: text ?? '' })
  const app = await openCloud({ mediaStore, log: { ...silentLog, error } })
  const token = await app.issuer.token({ sub: 'ada' })
  await app.call('POST', '/users/user/bootstrap', { token, body: { email: 'ada@example.org' } })
  const send = (file: Buffer) =>
    app.call('PATCH', '/users/user/profile/image', { token, form: [['file', fileOf(file, 'a.png')]] })
  return { app, lines, send }
}

const faults: [string, unknown, string][] = [
  ...['ENOSPC', 'EDQUOT', 'EROFS', 'EACCES', 'EIO', 'EMFILE', 'EBUSY'].map(
    (code): [string, unknown, string] => [code, systemError(code), code],
  ),
  ...[403, 404, 500, 503].map((status): [string, unknown, string] => [
    `S3 ${status}`,
    s3Error(status),
    `S3 answered ${status}`,
  ]),
  ['a silent S3 store', timedOut, 'timeout'],
  [
    'an S3 store that is away',
    new TypeError('fetch failed', { cause: systemError('ECONNREFUSED') }),
    'fetch failed',
  ],
]

describe('an upload to an unusable media store', () => {
  test.each(faults)(
    'a failed upload is 503, is logged with MEDIA_URL and the cause, and leaves nothing: %s',
    async (_name, fault, cause) => {
      for (const afterBytes of [0, 1, 100_000]) {
        const { app, lines, send } = await appWith(failing(fault, afterBytes))
        const answer = await send(grown(png, 300_000))
        expect([answer.status, errorOf(answer).error.code]).toEqual([503, 'service_unavailable'])
        expect(answer.headers.get('Retry-After')).not.toBeNull()
        expect(JSON.stringify(answer.json)).not.toContain(cause)
        expect(lines.map(({ text }) => text)).toEqual([expect.stringContaining('MEDIA_URL')])
        expect(lines[0]!.fields['reason']).toContain(cause)
        expect(await app.context.db.kysely.selectFrom('media').select('key').execute()).toEqual([])
      }
    },
  )
})

test('an upload is 503 if a file is in the place of the media folder, and succeeds after its removal', async () => {
  const root = join(emptyFolder(), 'media')
  writeFileSync(root, 'no folder')
  const { send } = await appWith(folderStore(root))
  expect((await send(png)).status).toBe(503)
  rmSync(root)
  expect((await send(png)).status).toBe(200)
})

test('a refused picture keeps its own error, and leaves no part in the folder', async () => {
  const root = emptyFolder()
  const { send } = await appWith(folderStore(root))
  const huge = Buffer.from(png)
  huge.writeUInt32BE(60_000, 16)
  huge.writeUInt32BE(60_000, 20)
  expect((await send(huge)).status).toBe(413)
  expect(filesIn(root)).toEqual([])
})
